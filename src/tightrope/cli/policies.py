"""``--policy`` and what goes with it: the policy in the form that was asked for, and that form in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tightrope.cli.terminal import say

if TYPE_CHECKING:
    from tightrope.base.policy import Policy


def named_policy(
    policy: str | None,
    policy_class: str | None,
    epsilon: float | None,
    sigma: list[float] | None,
    onnx_output: str | None,
    deterministic: bool,
) -> Policy | None:
    """The policy that the options name; None where it is a column of the logs."""
    from tightrope.adapters import load_policy
    from tightrope.adapters.load import is_column
    from tightrope.adapters.pickled import runs_code
    from tightrope.base.errors import PolicyError

    if policy is None or is_column(policy):
        if (epsilon, sigma, policy_class, onnx_output, deterministic) != (None, None, None, None, False):
            raise PolicyError(
                "--epsilon, --sigma, --deterministic, --policy-class and --onnx-output need a policy in a file or "
                "module; a column of the logs already holds the probabilities"
            )
        return None
    if runs_code(policy):
        say(f"policy: loading {policy} runs the code in it; name only files whose maker you trust", err=True)
    return load_policy(
        policy,
        epsilon=epsilon,
        sigma=sigma[0] if sigma and len(sigma) == 1 else sigma,
        deterministic=deterministic,
        policy_class=policy_class,
        onnx_output=onnx_output,
    )


def policy_sha256(policy: str | None) -> str:
    """A hash of the policy's file, or of the module it comes from; empty where it is a column of the logs."""
    from tightrope.adapters.load import is_column, named_digest, named_file
    from tightrope.evaluation.provenance import sha256_of

    if policy is None or is_column(policy):
        return ""
    file = named_file(policy)
    return named_digest(policy) if file is None else sha256_of(file)


def form(policy: str | None, epsilon: float | None, sigma: list[float] | None, deterministic: bool) -> str:
    """Which policy it is, and in which form, in words."""
    from tightrope.adapters.load import is_column

    if policy is None or is_column(policy):
        return f"the candidate whose probabilities the logs hold{f' in column {policy}' if policy else ''}"
    noise = "" if epsilon is None else f", with an action at random at rate {epsilon:g}"
    noise += "" if sigma is None else f", with normal noise of standard deviation {', '.join(f'{x:g}' for x in sigma)}"
    if deterministic:
        return f"{policy} in its greedy form (--deterministic){noise}"
    return f"{policy} as it acts, with its own probabilities{noise}"
