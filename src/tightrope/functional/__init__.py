"""The one idea: an estimator is a function of the weights of the episodes, so that resampling is a matrix product."""
