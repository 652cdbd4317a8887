# make demo        a first look, on a fresh machine
# make test        style, types and all quick tests
# make test-all    the slow tests too
# make bench       the speed table of the README
.DEFAULT_GOAL := help
.PHONY: help setup demo style test test-all bench clean

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

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: style
	$(BIN)/python -m pytest -n 2 -m "not slow" -q

test-all: style
	$(BIN)/python -m pytest -n 2 -q

bench: setup
	$(BIN)/python -m benchmarks.cpu

clean:
	rm -rf $(VENV) build dist
