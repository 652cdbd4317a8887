# make demo        a first look, on a fresh machine
# make test        style, types and all quick tests
# make test-all    the slow tests too
# make bench       the speed table of the README
# make stub        the type stub of the public functions, after a setting has changed
.DEFAULT_GOAL := help
.PHONY: help setup demo stub lint types tests test test-all bench clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# public data sets to measure on, where they are; tests that need them skip without them
export POLYSEME_DATA ?= $(wildcard ../shared/data)

help:
	@sed -n 's/^# //p' Makefile

setup: $(VENV)/ready

# torch first and pinned: a range that admits a newer one would pull gigabytes of CUDA packages
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch hatchling editables
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/python examples/senses.py

stub: setup
	$(BIN)/python -m scripts.write_stub

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

tests: setup
	$(BIN)/python -m pytest -n 2 -m "not slow" -q

# style, types and tests at the same time; each prints its output when it is done
test: setup
	$(MAKE) --no-print-directory -j 3 -O lint types tests

test-all: lint types
	$(BIN)/python -m pytest -n 2 -q

bench: setup
	$(BIN)/python -m benchmarks.cpu

clean:
	rm -rf $(VENV) build dist
