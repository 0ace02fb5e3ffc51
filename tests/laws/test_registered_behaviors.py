"""Laws of every registered estimate of the behaviour policy, driven by the registry, with the mistakes they are for.

An estimate is asked about all logs that it can be fitted to: numbered states and actions, states of two numbers with
named actions, or with actions of two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.laws.test_behaviors import wandering
from tightrope.base.behavior import DiscreteBehavior, GaussianBehavior, SmoothBehavior
from tightrope.base.errors import TightropeError
from tightrope.behaviors import BEHAVIORS
from tightrope.domains import small

WALKER = small("walker")
EXACT, CLOSE = 1e-9, 1e-5  # rounding; what an iterated fit leaves


def all_logs():
    """Logs of every kind, 30 episodes each."""
    numbered = WALKER.logs(30, rng=np.random.default_rng(3))
    return [numbered, wandering(30, 4, discrete=True)[0], wandering(30, 4, discrete=False)[0]]


def fitted(behavior):
    """The logs that the estimate takes, and it prepared for them."""
    made = []
    for data in all_logs():
        try:
            made.append((data, behavior.prepare(data)))
        except TightropeError:
            continue
    assert made, f"{behavior.name} can be fitted to none of the logs that the laws have"
    return made


def weights_of(n=30):
    return np.random.default_rng(5).integers(1, 4, n).astype(float)


def near(left, right, tolerance=CLOSE):
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


def law_answers(behavior):
    """Every logged action has a log-probability, whatever the weights, as long as all count."""
    for data, prepared in fitted(behavior):
        for weights in (np.ones(30), weights_of()):
            parameters = prepared.fit(weights)
            assert isinstance(parameters, np.ndarray)
            found = prepared.log_probs(parameters)
            assert found.shape == (data.n_steps,)
            assert np.isfinite(found).all()


def law_nothing_to_fit(behavior):
    """Weights of zero determine nothing: no logged action gets a finite log-probability."""
    for _, prepared in fitted(behavior):
        with np.errstate(all="ignore"):
            found = prepared.log_probs(prepared.fit(np.zeros(30)))
        assert not np.isfinite(found).any()


def law_probabilities(behavior):
    """Over a finite set of actions probabilities sum to one, and those of logged actions are the ones that count."""
    for data, prepared in fitted(behavior):
        parameters = prepared.fit(weights_of())
        found = prepared.log_probs(parameters)
        if isinstance(prepared, DiscreteBehavior):
            probs = prepared.probs(parameters)
            near(probs.sum(axis=1), np.ones(data.n_steps), EXACT)
            near(np.exp(found), probs[np.arange(data.n_steps), prepared.choices], EXACT)
            levels = np.unique(data.actions)
            np.testing.assert_array_equal(levels[prepared.choices], data.actions)
        if isinstance(prepared, GaussianBehavior):
            residuals = prepared.residuals(parameters)
            constant = found + 0.5 * np.square(residuals).sum(axis=1)  # of a normal density, the rest is the same
            near(constant, np.full(data.n_steps, constant.mean()), EXACT)


def law_likely(behavior):
    """The fit makes the logs it was fitted to likelier than a fit to others does: it follows its weights."""
    for data, prepared in fitted(behavior):
        mine = (np.arange(30) < 15) + 1e-3
        own, other = (prepared.log_probs(prepared.fit(w)) for w in (mine, mine[::-1].copy()))
        steps = np.repeat(mine, data.lengths)
        assert own @ steps > other @ steps + 1e-6


def law_proportions(behavior):
    """Only proportions of weights matter."""
    for _, prepared in fitted(behavior):
        one, many = (prepared.log_probs(prepared.fit(c * weights_of())) for c in (1.0, 4.0))
        near(one, many)


def law_refit(behavior):
    """Whole-number weights are repeats."""
    for data, prepared in fitted(behavior):
        weights = weights_of().astype(int)
        episodes = np.repeat(np.arange(30), weights)
        repeated = data.take(episodes)
        rebuilt = behavior.prepare(repeated)
        found = prepared.log_probs(prepared.fit(weights.astype(float)))
        again = rebuilt.log_probs(rebuilt.fit(np.ones(len(episodes))))
        near(found[data.steps_of(episodes)], again)


def law_order(behavior):
    """Which trajectory comes first does not matter."""
    for data, prepared in fitted(behavior):
        order = np.random.default_rng(1).permutation(30)
        turned = behavior.prepare(data.take(order))
        found = prepared.log_probs(prepared.fit(weights_of()))
        again = turned.log_probs(turned.fit(weights_of()[order]))
        near(found[data.steps_of(order)], again)


def law_rewards_do_not_matter(behavior):
    """What was earned says nothing of how actions were chosen."""
    for data, prepared in fitted(behavior):
        other = behavior.prepare(replace(data, rewards=-data.rewards, reward_range=None, return_range=None))
        near(*(one.log_probs(one.fit(weights_of())) for one in (prepared, other)), EXACT)


def law_slopes(behavior):
    """What an estimate says of its derivative is its derivative."""
    smooth = [(data, one) for data, one in fitted(behavior) if isinstance(one, SmoothBehavior)]
    if not smooth:
        pytest.skip("an estimate that gives no derivative")
    for data, prepared in smooth:
        weights, step = weights_of(), 1e-3
        gradient = np.random.default_rng(2).normal(size=data.n_steps)
        slopes = prepared.pull_back(prepared.fit(weights), weights, gradient)
        for i in range(0, 30, 7):
            up, down = (
                prepared.log_probs(prepared.fit(weights + sign * step * (np.arange(30) == i))) @ gradient
                for sign in (1, -1)
            )
            assert abs((up - down) / (2 * step) - slopes[i]) < 1e-3 * np.abs(slopes).max(), i


LAWS = [
    law_answers,
    law_nothing_to_fit,
    law_probabilities,
    law_likely,
    law_proportions,
    law_refit,
    law_order,
    law_rewards_do_not_matter,
    law_slopes,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", BEHAVIORS)
def test_behavior_law(name, law):
    law(BEHAVIORS[name]())


# -- mutants -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A registered estimate whose prepared form is spoilt."""

    of: Any
    spoilt: Any
    name: str = "mutant"

    def prepare(self, dataset):
        return self.spoilt(self.of.prepare(dataset), dataset)


class Spoilt:
    """As it is, but for what a mutant changes."""

    def __init__(self, real, data):
        self.real, self.data = real, data

    def fit(self, weights):
        return self.real.fit(weights)

    def log_probs(self, parameters):
        return self.real.log_probs(parameters)

    def __getattr__(self, name):
        return getattr(self.real, name)


class Missing(Spoilt):
    """One of the steps has no probability."""

    def log_probs(self, parameters):
        found = self.real.log_probs(parameters).copy()
        found[3] = np.nan
        return found


class Certain(Spoilt):
    """Where nothing was fitted, every action was certain."""

    def log_probs(self, parameters):
        return np.nan_to_num(self.real.log_probs(parameters), nan=0.0, neginf=0.0)


class Unnormalized(Spoilt):
    """Densities or probabilities that do not belong to what is said of all actions."""

    def log_probs(self, parameters):
        return self.real.log_probs(parameters) * 1.1


class Frozen(Spoilt):
    """Fitted once, to all the logs."""

    def fit(self, weights):
        return self.real.fit(np.ones(len(weights)) if weights.any() else weights)


class Prior(Spoilt):
    """Pseudo-counts that weigh as much as a trajectory of weight one."""

    def fit(self, weights):
        return self.real.fit(weights + weights.any())


class First(Spoilt):
    """The first trajectory counts twice."""

    def fit(self, weights):
        return self.real.fit(weights * np.where(np.arange(len(weights)) == 0, 2.0, 1.0))


class ByReward(Spoilt):
    """Good episodes count more."""

    def fit(self, weights):
        return self.real.fit(weights * (1.0 + (self.data.returns > np.median(self.data.returns))))


class Half(Spoilt):
    """Half the derivative."""

    def pull_back(self, parameters, weights, gradient):
        return 0.5 * self.real.pull_back(parameters, weights, gradient)


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (Missing, law_answers),
        (Certain, law_nothing_to_fit),
        (Unnormalized, law_probabilities),
        (Frozen, law_likely),
        (Prior, law_proportions),
        (Frozen, law_refit),
        (First, law_order),
        (ByReward, law_rewards_do_not_matter),
        (Half, law_slopes),
    ],
    ids=lambda value: value.__name__,
)
@pytest.mark.parametrize("name", BEHAVIORS)
def test_behavior_mutant_is_caught(name, mutant, law):
    law(Mutant(BEHAVIORS[name](), Spoilt))
    with pytest.raises(AssertionError):
        law(Mutant(BEHAVIORS[name](), mutant))
