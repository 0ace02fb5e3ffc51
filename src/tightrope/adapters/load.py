"""``--policy``: a table of probabilities, ``module:object``, an ONNX file, or a file that holds a model.

Importing a module and loading a pickled model run their code: it is done only for what the user names as the policy.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.adapters.greedy import greedy
from tightrope.adapters.onnx_files import onnx_policy
from tightrope.adapters.pickled import ARCHIVES, PICKLES, load_pickled, runs_code
from tightrope.adapters.soften import softened
from tightrope.adapters.table_files import TABLES, is_table, load_table
from tightrope.base.content import files_digest, imported_digest
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Policy, as_policy

FILES = (*TABLES, ".onnx", *ARCHIVES, *PICKLES)


def load_policy(
    spec: str,
    *,
    epsilon: float | None = None,
    sigma: Sequence[float] | float | None = None,
    deterministic: bool = False,
    policy_class: str | None = None,
    onnx_output: str | None = None,
) -> Policy:
    """The policy that a file or ``module:object`` names, in the form that is asked for (see ``formed``).

    ``.zip`` (Stable-Baselines3; ``policy_class`` names its class if it is unclear), ``.pkl`` and ``.joblib`` run
    code in the file: name only files whose maker you trust. ``onnx_output`` says what an ONNX file's output holds.

    - ``spec``: a file, or ``module:object``.
    - ``epsilon``: how often a random action replaces the policy's own, for discrete actions.
    - ``sigma``: standard deviations of noise on continuous actions.
    - ``deterministic``: whether to take the greedy form of the policy.
    """
    policy = _find(spec, policy_class, onnx_output)
    return formed(policy, epsilon=epsilon, sigma=sigma, deterministic=deterministic)


def formed(
    policy: Any,
    *,
    epsilon: float | None = None,
    sigma: Sequence[float] | float | None = None,
    deterministic: bool = False,
) -> Policy:
    """The policy as it is, or (``deterministic``) in its greedy form; then with noise, if that is given."""
    if isinstance(policy, (str, Path)):
        policy = _find(str(policy), None, None)
    form = greedy(policy) if deterministic else policy
    return as_policy(form) if epsilon is None and sigma is None else softened(form, epsilon=epsilon, sigma=sigma)


def named_digest(spec: str) -> str:
    """A hash of what the text names now: the file's bytes, or the module's source and what it imports from its folder.

    What a module reads while it is imported is not in its source, only in what the policy then does.
    """
    file = named_file(spec)
    if file is not None:
        return files_digest([file])
    load_object(spec)
    return imported_digest(spec.partition(":")[0])


def named_file(spec: str) -> Path | None:
    """The file that the text names; None where it names a module's object."""
    if is_table(spec) or spec.lower().endswith(FILES):
        return Path(spec.partition(":")[0] if ".npz:" in spec.lower() else spec)
    return None


def from_name(spec: Any) -> Policy | None:
    """A path, or ``module:object`` as text, where a policy is expected."""
    return load_policy(str(spec)) if isinstance(spec, (str, Path)) else None


def _find(spec: str, policy_class: str | None, onnx_output: str | None) -> Any:
    if is_table(spec):
        return load_table(spec)
    if spec.lower().endswith(".onnx"):
        return onnx_policy(spec, output=onnx_output)
    if runs_code(spec):
        return load_pickled(Path(spec), policy_class)
    if ":" in spec:
        return load_object(spec)
    raise PolicyError(
        f"policy must be a file ({', '.join(FILES)}, file.npz:array) or module:object; got {spec!r}. For a column of "
        "the logs: read(..., eval_column=...), then policy=None"
    )


def is_column(spec: str) -> bool:
    """Whether the text can only be the name of a column of the logs."""
    return not (":" in spec or spec.lower().endswith(FILES))


def load_object(spec: str) -> Any:
    """The object that ``spec``, ``module:object``, names; the current folder comes first. Importing runs its code."""
    module, _, name = spec.partition(":")
    if not module or not name:
        raise PolicyError(f"the name must be module:object, such as my_policies:candidate; got {spec!r}")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the code in it raises; a script may end the process
        raise PolicyError(
            f"{spec!r}: module {module!r} cannot be imported from here: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(here)
    try:
        return getattr(imported, name)
    except AttributeError as error:
        raise PolicyError(f"{spec!r}: module {module!r} has no {name!r}") from error
