# Two commands: `make book` and `make test`. Each makes .venv first where it is missing or out of date, with plain pip and
# the exact versions in constraints.txt. Everything but that installation works without a network.
#
#   PYTHON=/path/to/python3.11   the interpreter that makes .venv (default: the first of python3.11, python3.12, ... >= 3.11)
#   PYTEST_ARGS="-m 'not slow'"  more arguments for pytest
#   WORKERS=4                    processes that pytest uses (default: cores + 1, at most 5)
#   PIP_EXTRA_INDEX_URL=...      pip's own settings apply, e.g. to choose the CPU build of torch: see book/setup.md
#
# `make test` also needs Chromium and, on Linux, bubblewrap: as root with apt-get it installs them, else it says how.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help student book test test-grading check-records lowest programs lint site dist serve setup clean distclean
.NOTPARALLEL: # prerequisites run in the order in which they are written, also under `make -j`

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
READY := $(VENV)/.ready
PYTHON ?=
PYTEST_ARGS ?=
# One more than there are cores, since tests wait for kernels and browsers; each takes up to 2 GB.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? cores + 1 : 5)))

# Nothing that is built or tested here reaches for the network behind your back, or for a window on a screen.
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
export MPLBACKEND ?= agg

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Python compiles a module when it is first imported; compiling all of them here takes twice as long as installing them.
# Figures are shown in the notebooks and models are fetched from the hub there, so two of the settings above do not apply.
student: ## Set up what a student needs, and open the assignments in JupyterLab
	@$(find_python)
	$(PIP) install --constraint constraints.txt pip setuptools
	$(PIP) install --no-compile --constraint constraints.txt --no-build-isolation --editable '.[student]'
	env -u MPLBACKEND -u HF_HUB_OFFLINE $(BIN)/course start

book: setup ## Build the whole site, executing every chapter, into _build/html
	$(BIN)/course release
	$(BIN)/course build

# One thread in each of the worker processes: more would only wait for one another. A file stays with one
# worker, so that what its tests share (a graded class, a site in a browser) is made once, and files begin in the order of
# tests/conftest.py.
test: programs lint site ## Check everything, the grader in part; ends with pytest's closing line
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  -m "not records" $(PYTEST_ARGS)

# What takes long. `make test` takes a representative of each kind (tests/whole.py), which is not repeated here.
# `COURSE_TESTS=whole make test` is both in one, and `COURSE_TESTS=every make test` takes every known answer, too.
test-grading: programs site ## Check in full: every attack, many answers and probes, a large class, stock nbgrader, every page, the GPU's steps
	COURSE_TESTS=rest OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  $$(grep -rlE --include='test_*.py' '^from (whole|known_answers) import' tests) $(PYTEST_ARGS)

# Figures that `course record` and the benchmarks left in book/results: they change when something is recorded anew.
check-records: setup ## Check what the recorded results say
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m records tests/benchmarks tests/lab tests/tools $(PYTEST_ARGS)

# Change a bound in pyproject.toml and type this: an environment of its own, several gigabytes with torch.
lowest: setup ## Run the library's fast tests on the lowest versions that pyproject.toml allows
	rm -rf _build/lowest && mkdir -p _build/lowest
	$(BIN)/python tests/house/lowest.py >_build/lowest/lowest.txt
	$(BIN)/python -m venv _build/lowest/venv
	_build/lowest/venv/bin/python -m pip --no-input install --requirement _build/lowest/lowest.txt
	_build/lowest/venv/bin/python -m pip --no-input install --no-deps --editable .
	OMP_NUM_THREADS=1 _build/lowest/venv/bin/python -m pytest tests/library -m "not slow"

# First of all, so that nobody waits for the site to be told that its tests cannot run.
programs: ## Install what pip cannot and test needs: Chromium and bubblewrap
	@$(install_programs)

define install_programs
missing=""; \
command -v chromium chromium-browser google-chrome >/dev/null || missing="chromium"; \
if [ "$$(uname)" = Linux ]; then command -v bwrap >/dev/null || missing="$$missing bubblewrap"; fi; \
if [ -z "$$missing" ]; then exit 0; fi; \
if command -v apt-get >/dev/null && [ "$$(id -u)" -eq 0 ]; then \
  export DEBIAN_FRONTEND=noninteractive; \
  apt-get update </dev/null; \
  apt-get install --yes --no-install-recommends $$missing </dev/null; \
else \
  remedy="install it with this system's package manager"; \
  if command -v brew >/dev/null; then remedy="type: brew install --cask $$missing"; fi; \
  if command -v dnf >/dev/null; then remedy="type: sudo dnf install $$missing"; fi; \
  if command -v apt-get >/dev/null; then remedy="type: sudo make programs"; fi; \
  echo "The tests need $${missing# }, which is not here; $$remedy" >&2; exit 1; \
fi
endef

lint: setup ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests that open the site need it built. The exercises are not released anew here: a test compares the
# committed ones with what the sources give, and a fresh release would hide the difference.
site: setup
	$(BIN)/course build

dist: programs book ## Write what a release hands out: site, book and slides as PDF, notebooks, checksums: _build/dist
	$(BIN)/course dist

serve: book ## Build the site and serve it on this machine
	$(BIN)/course serve

setup: $(READY) ## Make .venv with the pinned set (book and test do this themselves)

# Repeated only when a pin or a requirement changes. An environment left half-made by an interrupted run is made anew.
# What packages build with comes first: seqeval has no wheel, and without setuptools-scm it takes itself for 0.0.0.
$(READY): pyproject.toml constraints.txt
	@$(find_python)
	$(PIP) install --constraint constraints.txt pip setuptools setuptools-scm
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	$(PIP) check
	@touch $@

define find_python
if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
  chosen=""; \
  for candidate in $(if $(PYTHON),"$(PYTHON)",python3.11 python3.12 python3.13 python3); do \
    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then chosen="$$candidate"; break; fi; \
  done; \
  if [ -z "$$chosen" ]; then \
    echo "No Python 3.11 or newer found$(if $(PYTHON), at PYTHON=$(PYTHON)). Install Python 3.11," \
         "or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; \
  fi; \
  if ! "$$chosen" -c 'import venv, ensurepip' >/dev/null 2>&1; then \
    echo "$$chosen has no venv module. On Debian and Ubuntu: apt-get install python3-venv; then run make again." >&2; exit 1; \
  fi; \
  echo "$$chosen -m venv $(VENV)"; \
  "$$chosen" -m venv --clear $(VENV); \
fi
endef

clean: ## Remove what was built; keep .venv
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache

distclean: clean ## Remove .venv too
	rm -rf $(VENV) course_lib.egg-info
