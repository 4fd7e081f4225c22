# make demo    the main job on real input, without a model and without the network
# make demo-model  agents that think: what each lacks is found and supplied (MODEL=provider/name for a real one, API_BASE=URL of a server of your own: a small size)
# make test    the tests
# make examples  each example from end to end, as its page tells it
# make quick   the tests that need no sandbox, no engine, no browser and no daemon, without the slow ones
# make check   what CI asks for: format, lint, types, tests, examples
# make coverage  the tests with branch coverage, which takes a third longer
# make bench   the speed table
# make torture  kills at aimed points and at random, KILLS=1000 of each, and all invariants after them
# make month   a simulated month on one home: disk, memory, start, lists (ARGS="--days 7")
# make mutants  small changes of the last gates, which the nearest tests have to notice (ARGS="--sample 30")
# make clean   forget the environment and all caches

VENV := .venv
BIN := $(VENV)/bin
# Twice the cores of CI: tests wait for a good part of their time.
WORKERS ?= 4
KILLS ?= 1000
# Where there is room, files of tests are in memory: half of what it costs to make them and to have them lie safely.
MEMORY := $(shell test -w /dev/shm && df --output=avail -k /dev/shm | awk 'NR == 2 && $$1 > 3000000 {print "/dev/shm"}')
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -o tmp_path_retention_policy=failed
export PYTEST_DEBUG_TEMPROOT := $(MEMORY)

# What is compiled once is not compiled again in each process that a test starts; pytest's own modules too.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-model test examples quick check coverage lint types bench torture month mutants setup compiled bubblewrap docker clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(VENV)/installed bubblewrap

# The stamp is younger than what decides what is installed, so a second call costs nothing.
$(VENV)/installed: pyproject.toml constraints.txt
	@scripts/setup.sh environment $(VENV)
	@touch $@

bubblewrap:
	@scripts/setup.sh bubblewrap

# Who types it wants one; as a part of `make test` it starts none on somebody's own machine.
docker:
	@$(if $(filter docker,$(MAKECMDGOALS)),AGENTOS_REQUIRE=docker) .ci/docker-up.sh

demo: setup
	@$(BIN)/python examples/demo/run.py $(ARGS)

demo-model: setup
	@MODEL=$(MODEL) API_BASE=$(API_BASE) $(BIN)/python examples/demo-model/run.py $(ARGS)

# A box sees the package read-only: what is not compiled before is compiled in each template.
compiled: setup
	@$(BIN)/python -m compileall -q agentos

test: compiled docker
	@$(PYTEST) -m 'not example'

# Only these files: collecting the others takes longer than it should for four tests. On a real disk, as a home is.
examples: export PYTEST_DEBUG_TEMPROOT :=
examples: compiled
	@$(PYTEST) -m example $$(grep -rl --include='*.py' 'mark\.example' tests)

quick: compiled
	@$(PYTEST) -m 'not sandbox and not docker and not browser and not slow and not daemon'

lint: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@PYTHONPATH=. $(BIN)/lint-imports --no-logo

types: setup
	@$(BIN)/mypy

check: lint types test examples

coverage: compiled docker
	@$(PYTEST) --cov --cov-report=term

mutants: setup
	@$(BIN)/python scripts/mutants.py $(ARGS)

torture: setup
	@PYTHONPATH=. $(BIN)/python -m tests.torture.aimed --kills $(KILLS)
	@PYTHONPATH=. $(BIN)/python -m tests.torture.engine
	@PYTHONPATH=. $(BIN)/python -m tests.torture.storm --kills $(KILLS) --log torture.jsonl

month: setup
	@$(BIN)/python benchmarks/month.py --svg month.svg --json month.json $(ARGS)

bench: setup
	@$(BIN)/python benchmarks/run.py $(ONLY)

clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
