# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
D3RLPY := .venv-d3rlpy

.PHONY: demo test quick test-d3rlpy check browser mutants coverage field reproduce bias bench conformance fuzz docs pictures package clean

demo: $(VENV)/.installed
	$(BIN)/tightrope demo

# What uses one core each runs side by side; then pytest has all cores. More than eight processes would only fill the memory.
test: browser
	$(MAKE) --jobs=2 $(VENV)/.all test-d3rlpy
	$(MAKE) --jobs=2 --output-sync=target check docs
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal

# While you work, in less than 30 s: ruff, and the laws of one estimator, one bound and one model.
# `make quick LAWS="wdr or bca or linear"` takes others, by any words in the names of their tests.
LAWS := pdwis or anderson or tabular
quick: $(VENV)/.dev
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/python -m pytest -k "$(LAWS)" tests/laws

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
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

# Plants every mistake of tests/mutants/planted into a copy of the package and runs the tests that must notice it: long, and it goes
# on where it was stopped. `make mutants ONLY=betting` plants some.
mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants --page docs/mutants.md --only "$(ONLY)"

coverage: $(VENV)/.dev
	$(BIN)/python -m tightrope.studies.coverage --out docs/coverage.md
	$(BIN)/python -m tightrope.studies.exact --out docs/coverage.md
	$(BIN)/python -m tightrope.studies.advice --out docs/coverage.md
	$(BIN)/python -m tightrope.studies.behavior_coverage --out docs/behavior.md
	$(BIN)/python -m tightrope.studies.comparing --out docs/decisions.md
	$(BIN)/python -m tightrope.studies.planning --out docs/decisions.md

# The map of who wins where, and the error rates of the estimators that are not usual.
field: $(VENV)/.dev
	$(BIN)/python -m tightrope.studies.field_map --out docs/field.md
	$(BIN)/python docs/field_map_picture.py
	$(BIN)/python -m tightrope.studies.field --out docs/field.md
	$(BIN)/python -m tightrope.studies.limited --out docs/field.md
	$(BIN)/python -m tightrope.studies.choosing --out docs/field.md

reproduce: $(VENV)/.dev
	$(BIN)/tightrope reproduce all --out docs/reproduction --page docs/reproduction.md

bias: $(VENV)/.dev
	$(BIN)/python -m tightrope.studies.bias --out docs/bias.md

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/bootstrap.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/default.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/wdr.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/tether.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/tabular.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/regression.py --out docs/benchmarks.md
	$(BIN)/python benchmarks/fqe.py --out docs/benchmarks.md

# Our laws on the estimators of other libraries, each in an environment of its own under build/conformance: several GB and, the
# first time, half an hour. `make conformance ONLY="scope_rl obp"` asks some, and writes no page.
conformance: $(VENV)/.dev
	$(BIN)/python benchmarks/conformance/run.py $(if $(ONLY),--only $(ONLY),--out docs/conformance.md)

# Hours: random valid logs in strange clothes against slow oracles. It goes on where it was stopped; a part of it is
# `python -m tests.fuzz --first SEED --questions COUNT`.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --out docs/fuzzing.md

# The examples in the pages are run and compared by `make test`; `docs/refresh.py` writes their outputs anew.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

# Builds what would be published, installs each of the two into an empty environment, and tries it from another folder.
package: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf dist build/empty
	$(BIN)/python -m build --outdir dist
	for file in dist/*.whl dist/*.tar.gz; do \
		$(PYTHON) -m venv --clear build/empty && \
		build/empty/bin/python -m pip install --quiet --disable-pip-version-check "$$file" && \
		(cd build/empty && bin/tightrope --version && bin/tightrope demo) || exit 1; \
	done

# Every picture of the documentation anew; the browser takes photographs of the report and of a notebook.
pictures: $(VENV)/.dev browser
	$(BIN)/python docs/pictures.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tightrope needs Python 3.11 or later: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

# All that the tests need, resolved once.
$(VENV)/.all: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tightrope needs Python 3.11 or later: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,docs]"
	touch $(VENV)/.installed $(VENV)/.dev $(VENV)/.docs $@

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
