# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check coverage bias bench clean

demo: $(VENV)/.installed
	$(BIN)/tightrope demo

test: check
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(VENV)/.dev
	$(BIN)/python -m tightrope.experiments.coverage --out docs/coverage.md

bias: $(VENV)/.dev
	$(BIN)/python -m tightrope.experiments.bias --out docs/bias.md

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/bootstrap.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/tabular.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/regression.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tightrope needs Python 3.11 or later: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
