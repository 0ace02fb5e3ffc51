"""Importing the package stays light: what is heavy loads when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "sklearn",
    "joblib",
    "stable_baselines3",
    "gymnasium",
    "onnxruntime",
    "numba",
    "scipy",
    "pyarrow",
    "pandas",
    "polars",
    "torch",
    "matplotlib",
    "rich",
    "typer",
)


@pytest.fixture(scope="module")
def loaded():
    code = "import sys, tightrope; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_check_sees_modules(loaded):
    assert {"tightrope", "tightrope.api", "numpy"} <= loaded


@pytest.mark.parametrize("name", HEAVY)
def test_import_does_not_load(loaded, name):
    assert name not in loaded


def test_public_names_exist():
    import tightrope

    assert all(hasattr(tightrope, name) for name in tightrope.__all__)
    assert sorted(tightrope.__all__) == list(tightrope.__all__)
