"""The public calls as people use them: visible keywords, typos that are answered, bounds that are looked up."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

import tightrope
from tests.logs import POLICY, columns, dataset
from tightrope import TightropeError
from tightrope.domains import small
from tightrope.evaluation import settings

BOUNDS = (tightrope.lower_bound, tightrope.upper_bound, tightrope.interval)
ASKING = (*BOUNDS, tightrope.evaluate, tightrope.advise)
CALLS = (*ASKING, tightrope.estimate, tightrope.statistic, tightrope.read, tightrope.softened, tightrope.draw_weights)
WALKER = small("walker")


@pytest.fixture(scope="module")
def logs():
    return WALKER.logs(60, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def result(logs):
    return tightrope.evaluate(logs, WALKER.candidate, n_resamples=50)


@pytest.fixture(scope="module")
def two_sided(logs):
    return tightrope.evaluate(logs, WALKER.candidate, n_resamples=50, side="both")


# -- keywords --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ASKING, ids=lambda call: call.__name__)
def test_every_setting_is_a_keyword_with_its_default(call):
    parameters = inspect.signature(call).parameters
    assert {field.name: field.default for field in fields(settings.Settings)}.items() <= {
        name: parameter.default for name, parameter in parameters.items()
    }.items()
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


SETTINGS = {
    "confidence": 0.8,
    "n_resamples": 60,
    "seed": 5,
    "resampling": tightrope.Poisson(),
    "max_ratio": 4.0,
    "behavior": "tabular",
    "precision": "float32",
    "progress": print,
}


@pytest.mark.parametrize("call", ASKING, ids=lambda call: call.__name__)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_reaches_the_settings(call, name, monkeypatch):
    made = []
    init = settings.Settings.__post_init__
    monkeypatch.setattr(settings.Settings, "__post_init__", lambda self: (init(self), made.append(self))[0])
    few = dataset(reward_range=(-1, 2))
    enough = few.take(np.arange(12) % few.n_trajectories)  # for bounds that resample
    call(enough, POLICY, **{"n_resamples": 50, "progress": None, name: SETTINGS[name]})
    assert getattr(made[0], name) == SETTINGS[name]
    others = {field.name for field in fields(settings.Settings)} - {name, "n_resamples"}
    assert {other: getattr(made[0], other) for other in others} == {
        other: getattr(settings.Settings(), other) for other in others
    }


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_keyword_with_a_typo_is_answered_by_the_right_one(call):
    keyword = list(inspect.signature(call).parameters)[-1]
    with pytest.raises(TypeError, match=rf'{call.__name__}\(\) has no keyword .*\. Did you mean "{keyword}"\?$'):
        call(**{keyword[:-1]: 1})


def test_a_keyword_that_is_like_no_other_is_answered_by_all_of_them():
    with pytest.raises(TypeError, match=r"estimate\(\) has no keyword 'zzz'; it takes dataset, policy, estimator"):
        tightrope.estimate(dataset(), POLICY, zzz=1)


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "wrd"}, r'estimator must be "is", .*; got \'wrd\'. Did you mean "wdr"\?$'),
        ({"estimator": "PDIS"}, r'Did you mean "pdis"\?$'),
        ({"method": "studentised"}, r'method must be "percentile", .*; got .*. Did you mean "studentized"\?$'),
        ({"method": "empirical_bernstein"}, r'Did you mean "empirical-bernstein"\?$'),
        ({"estimator": "mb", "model": "lineal"}, r'model must be .*"linear".*; got .*. Did you mean "linear"\?$'),
        ({"behavior": "tabula"}, r'behavior must be "logged", "auto".*. Did you mean "tabular"\?$'),
        ({"resampling": "poison"}, r'resampling must be "multinomial".*. Did you mean "poisson"\?$'),
        (
            {"precision": "float23"},
            r'precision must be "float64" or "float32"; got \'float23\'. Did you mean "float32"\?$',
        ),
    ],
    ids=str,
)
def test_a_name_with_a_typo_is_answered_by_the_right_one(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.lower_bound(dataset(), POLICY, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": "lowr"}, r'^side must be "lower", "upper" or "both"; got \'lowr\'. Did you mean "lower"\?$'),
        ({"side": "x"}, r'^side must be "lower", "upper" or "both"; got \'x\'$'),
        ({"baseline": "behaviour"}, r'^baseline must be "behavior" or None; got .*. Did you mean "behavior"\?$'),
    ],
    ids=str,
)
def test_a_word_with_a_typo_is_answered_by_the_right_one(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.evaluate(dataset(), POLICY, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"behaviour_prob": "p"}}, r'. Did you mean "behavior_prob"\?'),
        ({"columns": {"reward": "reword"}}, r'. Did you mean "reward"\?'),
        ({"eval_column": "behavior_prop"}, r'. Did you mean "behavior_prob"\?'),
        ({"incomplete": "dropp"}, r'incomplete must be "error", "terminate" or "drop"; .* Did you mean "drop"\?'),
    ],
    ids=str,
)
def test_a_column_with_a_typo_is_answered_by_the_right_one(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.read(columns(), **options)


def test_a_missing_column_is_answered_by_the_one_that_looks_like_it():
    with pytest.raises(TightropeError, match=r'Did you mean "rewards_"\?'):
        tightrope.read({("rewards_" if name == "reward" else name): values for name, values in columns().items()})


# -- results ---------------------------------------------------------------------------------------------------------


def test_bounds_are_looked_up_by_their_names(result, two_sided):
    assert result["wdr", "bca"] is next(
        bound for bound in result.bounds if (bound.estimator, bound.method) == ("wdr", "bca")
    )
    assert result["wdr"] == tuple(bound for bound in result.bounds if bound.estimator == "wdr")
    assert {bound.side for bound in two_sided["wdr"]} == {"lower", "upper"}
    for side in ("lower", "upper"):
        found = two_sided["is", "betting", side]
        assert (found.estimator, found.method, found.side) == ("is", "betting", side)
    assert len(result) == len(result.bounds) == len(list(result))
    assert list(result) == list(result.bounds)


def test_what_is_in_a_result(result, two_sided):
    assert "wdr" in result
    assert ("wdr", "bca") in result
    assert ("wdr", "bca") in two_sided
    for key in ("xyz", ("wdr", "xyz"), ("wdr", "bca", "upper"), 3):
        assert key not in result


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("wrd", r'estimator must be "is", .*; got \'wrd\'. Did you mean "wdr"\?$'),
        (("wdr", "bac"), r'method must be .*; got \'bac\'. Did you mean "bca"\?$'),
        (("wdr", "bca", "lowr"), r'side must be "lower"; got \'lowr\'. Did you mean "lower"\?$'),
        (("wdr", "bca", "upper"), r'side must be "lower"; got \'upper\'$'),
        (("wdr", "betting"), r"there is no betting bound on WDR"),
        (0, r'look bounds up by name, such as result\["wdr", "bca"\]; got 0'),
        (("a", "b", "c", "d"), r"look bounds up by name"),
    ],
    ids=str,
)
def test_a_bound_that_is_not_there(result, key, message):
    with pytest.raises(KeyError, match=message) as caught:
        result[key]
    assert isinstance(caught.value, TightropeError)


def test_two_sides_are_told_apart(two_sided):
    with pytest.raises(KeyError, match=r"result\['wdr', 'bca'\] is not one bound: name estimator, method and side"):
        two_sided["wdr", "bca"]


def test_a_pair_that_was_left_out_says_why(logs):
    result = tightrope.evaluate(logs, WALKER.candidate, estimators=["is"], methods=["bca", "hoeffding"], n_resamples=20)
    with pytest.raises(KeyError, match=r"there is no hoeffding bound on IS: .*max_ratio"):
        result["is", "hoeffding"]


def test_believed_holds_the_bounds_themselves(result, two_sided):
    assert all(any(bound is one for one in result.bounds) for bound in result.believed)
    assert len(result.believed) == 1
    assert [bound.side for bound in two_sided.believed] == ["lower", "upper"]
    assert result.to_dict()["believed"] == [result.believed[0].to_dict()]
    again = tightrope.Evaluation.from_json(result.to_json())
    assert again.believed == result.believed
    assert again == result


def test_a_result_shows_itself_in_a_few_lines(result, two_sided):
    for one in (result, two_sided):
        lines = repr(one).splitlines()
        assert 2 <= len(lines) <= 5
        assert f"{len(one)} bounds" in lines[0]
        assert "60 episodes" in lines[0]
        for bound in one.believed:
            assert f"{bound.value:.6g}" in repr(one)
            assert bound.estimator.upper() in repr(one)
    nothing = tightrope.evaluate(dataset(), POLICY, n_resamples=20, strict=True)
    assert nothing.believed == ()
    assert "believed: none" in repr(nothing)


def test_one_word_for_the_seed(result):
    assert result.settings["seed"] == 0
    assert result["wdr", "bca"].seed == 0
    assert "seed" in inspect.signature(tightrope.draw_weights).parameters
