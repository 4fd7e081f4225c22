# make demo    the main job on real input, without a model and without the network
# make demo-model  agents that think: what each lacks is found and supplied (MODEL=provider/name for a real one)
# make test    the tests
# make quick   the tests that need no sandbox, no engine and no daemon
# make check   what CI asks for: format, lint, types, tests
# make coverage  the tests with branch coverage, which takes a third longer
# make bench   the speed table
# make clean   forget the environment and all caches

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo demo-model test quick check coverage lint types bench setup bubblewrap docker clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(VENV)/installed bubblewrap

# The stamp is younger than what decides what is installed, so a second call costs nothing.
$(VENV)/installed: pyproject.toml constraints.txt
	@scripts/setup.sh environment $(VENV)
	@touch $@

bubblewrap:
	@scripts/setup.sh bubblewrap

docker:
	@.ci/docker-up.sh

demo: setup
	@$(BIN)/python examples/demo/run.py $(ARGS)

demo-model: setup
	@MODEL=$(MODEL) $(BIN)/python examples/demo-model/run.py $(ARGS)

test: setup docker
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

quick: setup
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not sandbox and not docker and not slow'

lint: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@PYTHONPATH=. $(BIN)/lint-imports --no-logo

types: setup
	@$(BIN)/mypy

check: lint types test

coverage: setup docker
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term

bench: setup
	@$(BIN)/python benchmarks/run.py $(ONLY)

clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
