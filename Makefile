# make demo        neighbours of ambiguous words, on a fresh machine
# make test        style, types and quick tests, at the same time
# make test-all    all tests, the slow ones too
# make test-integrations  tests with other libraries, oldest and newest, in environments of their own
# make course      run the chapters of the course and store their output in the notebooks
# make docs        build the documentation, English and Chinese, into build/docs
# make bench       measure the speed table of the README
# make stub        write the type stub of the public functions, after a setting has changed
.DEFAULT_GOAL := help
.PHONY: help setup demo stub course lint types tests test test-all test-integrations docs bench clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# folder of public data sets; tests that need it are skipped without it
export POLYSEME_DATA ?= $(wildcard ../shared/data)

# compiled modules and rewritten tests are kept between runs, also where the shell says otherwise
export PYTHONDONTWRITEBYTECODE :=

help:
	@sed -n 's/^# make/make/p' Makefile

setup: $(VENV)/ready

# the second distribution, which a copy without the large files may lack
MODELS := $(wildcard models/pyproject.toml)

# Playwright is for tests of the page, where the system has a browser
# torch first and pinned: a newer version would install gigabytes of CUDA packages
$(VENV)/ready: pyproject.toml constraints.txt $(MODELS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch hatchling editables
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[dev]' $(MODELS:%/pyproject.toml=-e ./%)
	if command -v chromium chromium-browser >/dev/null; then $(BIN)/python -m pip install --quiet 'playwright>=1.49'; fi
	touch $@

demo: setup
	$(BIN)/python examples/senses.py

stub: setup
	$(BIN)/python -m scripts.write_stub

course: setup
	$(BIN)/python -m scripts.course

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# the tests of a file in one process, which shares what they train
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

tests: setup
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" -q

# style, types and tests at the same time; each prints its output when it is done
test: setup
	$(MAKE) --no-print-directory -j 3 -O lint types tests

test-all: lint types
	$(BIN)/python -m pytest $(PARALLEL) -q

# libraries that exclude each other, or whose oldest and newest versions are tested; torch first, as above
INTEGRATIONS := newest oldest flair

.venv-integrations/%/ready: tests/integrations/environments/%.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -c constraints.txt torch hatchling editables
	$(@D)/bin/python -m pip install --quiet -r $<
	$(@D)/bin/python -m pip install --quiet --no-build-isolation -e .
	touch $@

test-integrations: $(INTEGRATIONS:%=.venv-integrations/%/ready)
	set -e; for name in $(INTEGRATIONS); do .venv-integrations/$$name/bin/python -m pytest -q tests/integrations tests/compat; done

# Sphinx and its parts, beside what the tests need
$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[docs]'
	touch $@

# the two languages at the same time; a warning (a broken link, a page in no section) is an error
docs: $(VENV)/docs-ready
	$(BIN)/python -m scripts.translations
	$(MAKE) --no-print-directory -j 2 -O build/docs/en build/docs/zh
	cp docs/languages.html build/docs/index.html
	@echo "the site: build/docs/index.html"

.PHONY: build/docs/en build/docs/zh
build/docs/en build/docs/zh:
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -t $(@F) -c docs -d build/docs/trees-$(@F) docs/$(@F) $@

bench: setup
	$(BIN)/python -m benchmarks.cpu

clean:
	rm -rf $(VENV) .venv-integrations build dist
