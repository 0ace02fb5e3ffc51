"""The command that makes logs: a policy acts in a Gymnasium environment, and its probabilities are logged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.cli.options import Deterministic, Epsilon, OnnxOutput, PolicyClass, SeedOption, Sigma
from tightrope.cli.policies import form, named_policy
from tightrope.cli.shared import errors, progress_bar
from tightrope.cli.terminal import say


def log(
    env: Annotated[
        str,
        typer.Option(help="A Gymnasium environment: its id, module:id, or module:object (a class or a function)."),
    ],
    policy: Annotated[str, typer.Option(help="The policy that acts: a file or module:object, as in evaluate.")],
    episodes: Annotated[int, typer.Option(help="How many episodes to log.")],
    out: Annotated[Path, typer.Option(help="Where the logs go (.parquet or .csv).")],
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    horizon: Annotated[
        int | None, typer.Option(help="How many steps count. Default: the environment's own limit.")
    ] = None,
    discount: Annotated[float, typer.Option(help="γ, kept in a Parquet file for evaluate.")] = 1.0,
    seed: SeedOption = 0,
) -> None:
    """Let a policy act in a Gymnasium environment, and log its episodes with the probabilities of their actions."""
    with errors():
        import tightrope
        from tightrope.base.errors import PolicyError
        from tightrope.io.write import check_target

        check_target(out)
        behavior = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        if behavior is None:
            raise PolicyError(f"--policy must be a file or module:object, because it has to act; got {policy!r}")
        with progress_bar("logging") as progress:
            logs = tightrope.log_episodes(
                _environment(env),
                behavior,
                episodes=episodes,
                horizon=horizon,
                discount=discount,
                seed=seed,
                progress=progress,
            )
        tightrope.write(logs, out)
    settings = "" if out.suffix == ".parquet" else f" --horizon {logs.horizon} --discount {logs.discount:g}"
    say(
        f"{out}: {logs.n_trajectories} episodes, {logs.n_steps} steps of {env}; horizon {logs.horizon}, discount "
        f"{logs.discount:g}; {int(logs.terminated.sum())} terminated, the others reached the horizon.\n"
        f"Logged: {form(policy, epsilon, sigma, deterministic)}. Its value: {logs.returns.mean():.5g}, the mean "
        f"return.\nNext:\n  tightrope evaluate {out}{settings} --policy CANDIDATE"
    )


def _environment(spec: str) -> Any:
    """What to make the environments of: an id as it is, or the object that ``module:object`` names."""
    import sys

    from tightrope.adapters import load_object
    from tightrope.base.errors import PolicyError

    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # where the user's modules are
    if not spec.partition(":")[2].isidentifier():
        return spec
    try:
        return load_object(spec)
    except PolicyError:  # no such object: it may be the id of an environment that the module registers
        return spec
