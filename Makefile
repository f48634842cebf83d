# The daily commands. `make help` lists them.
ROBOT ?= tensebot
PYTHON ?=
TESTS ?= test
BIN := .venv/bin

.PHONY: help setup setup-tests setup-benchmarks sim test test-long lint format benchmark clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## what the project needs, into .venv (minutes at first, then seconds)
	@PYTHON="$(PYTHON)" sh scripts/setup.sh

setup-tests:
	@PYTHON="$(PYTHON)" sh scripts/setup.sh --with-tests

sim: setup ## the main job: ROBOT (tensebot) in simulation, driven through its tour, with the browser view
	@$(BIN)/tensegrity up sim $(ROBOT) --tour

setup-benchmarks:
	@PYTHON="$(PYTHON)" sh scripts/setup.sh --with-benchmarks

test: setup-tests ## every check and test
	@sh scripts/test.sh $(TESTS)

test-long: setup-tests ## what takes long: storms, soaks, sweeps, all examples of every law (an hour and more)
	@TEST_EXAMPLES=all .venv/bin/python -m pytest -n $${TEST_WORKERS:-2} -m "long or hypothesis" $(TESTS)

lint: setup-tests ## style and types
	@sh scripts/lint.sh

format: setup-tests ## put the code into its style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

benchmark: setup-benchmarks ## speed beside other programs; the results go to benchmarks/results
	@for program in benchmarks/*.py; do echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

clean: ## remove what the set-up and the builds made
	rm -rf .venv build install log dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
