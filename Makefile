# Every target prepares the machine first (scripts/provision.sh; well under a second when nothing
# changed). As root, or with sudo: the fabric is made of the kernel's network namespaces.
FABRICLAB_VENV ?= $(CURDIR)/.venv
export FABRICLAB_VENV
BIN := $(FABRICLAB_VENV)/bin

# Those that need neither root nor Mininet run in parallel, and so do those in a guest, whose time is
# its own; those that measure on this machine run one after the other.
QUICK := tests/unit tests/generative tests/repo
ON_THE_MACHINE := tests/integration tests/validation
IN_A_GUEST := tests/virtual $(ON_THE_MACHINE)

.DEFAULT_GOAL := help
.PHONY: help provision demo test test-unit test-virtual check format clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

provision: ## prepare this machine: Debian packages and the virtual environment
	@scripts/provision.sh

demo: provision ## training beside inference, under two settings, and the report
	@$(BIN)/fabriclab demo

test: provision ## all tests; those that need root, or the guest's kernel, are skipped without it
	@$(BIN)/python -m pytest -n auto $(QUICK) $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -n auto --dist loadscope -m guest $(IN_A_GUEST) $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -m 'not guest' $(ON_THE_MACHINE) $(PYTEST_ARGS)

test-virtual: provision ## the tests in a guest, under the virtual clock; they need no root
	@$(BIN)/fabriclab kernel build
	@$(BIN)/python -m pytest -n auto --dist loadscope -m guest $(IN_A_GUEST) $(PYTEST_ARGS)

test-unit: provision ## the tests that need neither root nor Mininet
	@$(BIN)/python -m pytest -n auto $(QUICK) $(PYTEST_ARGS)

check: provision ## formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: provision ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what interrupted runs left on this machine, and caches; results stay
	@if [ -x $(BIN)/fabriclab ]; then $(BIN)/fabriclab clean; fi
	rm -rf build .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find controller emulator tests topologies traffic -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## as clean, and the virtual environment
	rm -rf $(FABRICLAB_VENV) $(FABRICLAB_VENV).log $(FABRICLAB_VENV).lock fabriclab.egg-info
