# `make demo` shows the main job on the sample run; `make test` installs what the tests need and runs them.
# Everything is installed into .venv. PYTHON names another interpreter (3.11 or newer); PYTEST_ARGS goes to pytest,
# which starts one worker more than cores (PYTEST_ARGS=-n0: one process, as a debugger wants it).

VENV ?= .venv
BIN := $(VENV)/bin
DEMO_DB ?= demo.duckdb
PARALLEL := -n auto --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	if $$name -c '$(SUITABLE)' >/dev/null 2>&1; then echo $$name; break; fi; done)

.PHONY: help demo test check lint sql-lint format docs bench clean

help:
	@echo "make demo    install tracedb and report on the sample run of examples/run"
	@echo "make test    install what the tests need and run them"
	@echo "make check   format, lint, types, layers, SQL, tests with branch coverage"
	@echo "make format  format the code    make docs   write what is generated in the docs"
	@echo "make bench   all benchmarks     make clean  remove what the above left"

demo: $(VENV)/installed
	rm -f $(DEMO_DB)
	$(BIN)/tracedb ingest examples/run --db $(DEMO_DB)
	$(BIN)/tracedb report gemm-variance --db $(DEMO_DB) --by channels --top 5

test: $(VENV)/ready
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

check: lint sql-lint
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest $(PARALLEL) --cov --cov-branch --cov-report=term-missing:skip-covered $(PYTEST_ARGS)

lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

sql-lint: $(VENV)/ready
	$(BIN)/python tests/sql_lint.py

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/ready
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/console.py

bench: $(VENV)/ready
	$(BIN)/python benchmarks/all.py --out build/BENCHMARKS.md

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f $(DEMO_DB) $(DEMO_DB).wal

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer with venv was found; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A development install serves the demo as well; it is not replaced.
$(VENV)/installed: | $(BIN)/python
	@test -e $(VENV)/ready || $(PIP) install .
	@touch $@

# Dependency groups need pip 25.1.
$(VENV)/ready: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --constraint constraints.txt --editable . --group dev
	@touch $@
