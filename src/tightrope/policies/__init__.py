"""Policies of other libraries and by what the user names: importing this package teaches ``as_policy`` to know them."""

from tightrope.policies.acting import from_actor
from tightrope.policies.functions import StatePolicy, from_function
from tightrope.policies.load import from_name, load_object, load_policy
from tightrope.policies.onnx_files import onnx_policy
from tightrope.policies.scikit_learn import from_classifier
from tightrope.policies.soften import from_learner, softened
from tightrope.policies.torch_modules import from_module, torch_policy
from tightrope.policy import ADAPTERS

ADAPTERS[:] = [from_name, from_classifier, from_learner, from_actor, from_module, from_function]

__all__ = ["StatePolicy", "load_object", "load_policy", "onnx_policy", "softened", "torch_policy"]
