# `make help` lists what there is to make. Needs Python 3.11 or newer (with venv) and nothing else.

# The interpreter that `.venv` is made with, as in: make PYTHON=python3.12 venv
PYTHON ?= python3
# The repository whose history `make demo` replays.
REPO ?= .
# `make bench QUICK=1 DATA=folder`: short runs; another folder of recordings.
QUICK ?=
DATA ?=
# `make test ARGS='-k settings -x'`: anything for pytest.
ARGS ?=

# llama.cpp is compiled on the first `make test`, some minutes; with native code it would run on this processor alone.
export CMAKE_ARGS ?= -DGGML_NATIVE=OFF

# Tests wait for the disk thousands of times. Where there is room for them in memory, they run there.
export PYTEST_DEBUG_TEMPROOT ?= $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null \
	&& echo /dev/shm)

PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: help venv models browser llama-server demo test bench docs lint types clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    replay a git history through the memory and show what it keeps (REPO=path, default: here)'
	@echo 'make test    run all tests (ARGS=... goes to pytest; ARGS=--cov tells the share of lines they reach)'
	@echo 'make bench   run all benchmarks (QUICK=1: under a minute each; DATA=folder: other recordings)'
	@echo 'make lint    check style and format'
	@echo 'make types   check types'
	@echo 'make docs    build the documentation into site/; a broken link or a missing page fails'
	@echo 'make models  fetch the models that tests and benchmarks run (600 MB, into the cache folder of the user)'
	@echo 'make llama-server  build the server of llama.cpp, so that the tests that need it run (a quarter of an hour)'
	@echo 'make venv    make .venv with the package and all tools'
	@echo 'make clean   remove .venv, caches and builds'

# Everything is made within .venv by relative names, so that the checkout may stand in a folder with spaces.
.venv/bin/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'orchestra-mem needs Python 3.11 or newer; "$(PYTHON)" is not.' >&2; \
		echo 'Install one, then name it: make PYTHON=python3.12 venv' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' || { \
		echo '"$(PYTHON)" lacks venv. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	"$(PYTHON)" -m venv .venv || { rm -rf .venv; exit 1; }

# The stamps: what was installed last is younger than what it was installed from.
.venv/package.stamp: pyproject.toml | .venv/bin/python
	$(PIP) install --editable .
	@touch $@

.venv/tools.stamp: pyproject.toml | .venv/bin/python
	$(PIP) install --editable '.[test]'
	@touch .venv/package.stamp $@

venv: .venv/tools.stamp

models: venv
	.venv/bin/python tools/models.py

# Debian's Chromium, where this can put it there; without one the tests of the pages are skipped and say so.
browser:
	@command -v chromium >/dev/null || \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo 'installing chromium for the tests of the pages'; \
		{ apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } \
			>/dev/null 2>&1 || echo 'chromium could not be installed: the tests of the pages are skipped' >&2; \
	fi

llama-server: venv
	.venv/bin/python tools/llama_server.py

demo: .venv/package.stamp
	.venv/bin/orchestra-mem demo --repo "$(REPO)"

test: venv models browser
	.venv/bin/python -m pytest --numprocesses auto --dist loadfile $(ARGS)

bench: venv models
	@failed=; \
	for script in benchmarks/[!_]*.py; do \
		[ -e "$$script" ] || { echo 'there are no benchmarks' >&2; exit 1; }; \
		echo "== $$script"; \
		.venv/bin/python "$$script" $(if $(QUICK),--quick) $(if $(DATA),--data "$(DATA)") || failed="$$failed $$script"; \
	done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

docs: venv
	.venv/bin/python tools/reference.py --check
	.venv/bin/zensical build --strict --clean
	.venv/bin/python tools/check_site.py

lint: venv
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .

types: venv
	.venv/bin/python -m mypy

clean:
	rm -rf .venv build dist site .cache .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
