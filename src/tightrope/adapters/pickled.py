"""Models in files that are programs: Stable-Baselines3 archives and pickles.

Loading one runs whatever code its maker put into it. It is done only for a file that the user names as the policy,
never for data.
"""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

from tightrope.base.errors import PolicyError, TightropeError
from tightrope.base.extras import load_extra
from tightrope.base.names import must_be_one_of

PICKLES = (".pkl", ".pickle", ".joblib")
ARCHIVES = (".zip",)
CLASSES = ("PPO", "A2C", "SAC", "TD3", "DDPG", "DQN")


def runs_code(spec: str) -> bool:
    """Whether loading what is named runs code in the file."""
    return spec.lower().endswith((*PICKLES, *ARCHIVES))


def load_pickled(path: Path, policy_class: str | None = None) -> Any:
    """The object in the file; this runs code in it."""
    if not os.path.isfile(path):
        raise PolicyError(f"policy {path}: no such file")
    if path.suffix.lower() in ARCHIVES:
        return _stable_baselines(path, policy_class or _class_of(path))
    try:
        if path.suffix.lower() == ".joblib":
            return load_extra("joblib", "sklearn", f"policy {path}").load(path)
        with path.open("rb") as file:
            return pickle.load(file)
    except TightropeError:
        raise
    except Exception as error:  # whatever the code in it raises
        raise PolicyError(f"policy {path} cannot be unpickled: {type(error).__name__}: {error}") from error


def _stable_baselines(path: Path, name: str) -> Any:
    if name not in CLASSES:
        raise PolicyError(must_be_one_of("policy_class", name, CLASSES))
    library = load_extra("stable_baselines3", "sb3", f"policy {path}")
    try:
        return getattr(library, name).load(path, device="cpu")
    except Exception as error:  # whatever the code in it raises
        raise PolicyError(f"policy {path} cannot be loaded as {name}: {type(error).__name__}: {error}") from error


def _class_of(path: Path) -> str:
    """The class of the model, by the settings that Stable-Baselines3 writes in plain text."""
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("data"))
        module = settings["policy_class"]["__module__"]
    except Exception as error:  # whatever a cut or corrupted archive makes zipfile raise
        raise PolicyError(
            f"policy {path} does not say what it is, as archives of Stable-Baselines3 do ({error!r}); if it is one, "
            f"name its class: --policy-class {'|'.join(CLASSES)}"
        ) from error
    by_module = {"sac": "SAC", "td3": "TD3", "dqn": "DQN"}  # DDPG's policy is TD3's
    family = str(module).removeprefix("stable_baselines3.").split(".")[0]
    return by_module.get(family) or ("PPO" if "clip_range" in settings else "A2C")
