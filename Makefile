# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
D3RLPY := .venv-d3rlpy

.PHONY: demo test test-d3rlpy check browser mutants coverage reproduce bias bench fuzz docs clean

demo: $(VENV)/.installed
	$(BIN)/tightrope demo

test: check browser docs
	$(BIN)/python -m pytest
	$(MAKE) test-d3rlpy

# d3rlpy pins gymnasium 1.0.0, which clashes with everything else here: an environment of its own.
test-d3rlpy: $(D3RLPY)/.installed
	$(D3RLPY)/bin/python -m pytest tests_d3rlpy

# The tests look at reports in a real browser; on a bare Debian machine it is fetched.
browser:
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1 || { \
		if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
			apt-get update -qq && apt-get install -y -qq chromium; \
		else \
			echo "The tests need a browser: install chromium (Debian: apt-get install chromium)." >&2; exit 1; \
		fi; }

check: $(VENV)/.dev
	$(BIN)/ruff check src tests tests_d3rlpy benchmarks docs
	$(BIN)/ruff format --check src tests tests_d3rlpy benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports

# Plants every mistake of tests/mutants/planted into a copy of the package and runs the tests that must notice it: long, and it goes
# on where it was stopped. `make mutants ONLY=betting` plants some.
mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants --page docs/mutants.md --only "$(ONLY)"

coverage: $(VENV)/.dev
	$(BIN)/python -m tightrope.studies.coverage --out docs/coverage.md
	$(BIN)/python -m tightrope.studies.behavior_coverage --out docs/behavior.md

reproduce: $(VENV)/.dev
	$(BIN)/tightrope reproduce all --out docs/reproduction --page docs/reproduction.md

bias: $(VENV)/.dev
	$(BIN)/python -m tightrope.studies.bias --out docs/bias.md

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/bootstrap.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/default.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/wdr.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/tabular.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/regression.py --out docs/benchmarks.md

# Hours: random valid logs in strange clothes against slow oracles. It goes on where it was stopped; a part of it is
# `python -m tests.fuzz --first SEED --questions COUNT`.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --out docs/fuzzing.md

# The examples in the pages are run and compared by `make test`; `docs/refresh.py` writes their outputs anew.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tightrope needs Python 3.11 or later: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

$(D3RLPY)/.installed: pyproject.toml
	$(PYTHON) -m venv $(D3RLPY)
	$(D3RLPY)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(D3RLPY)/bin/python -m pip install --quiet --disable-pip-version-check d3rlpy==2.8.1 "pytest>=8" -e .
	touch $@

clean:
	rm -rf $(VENV) $(D3RLPY) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
