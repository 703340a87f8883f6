# Every target makes its own .venv and installs what it needs: Python, git and make are enough.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := $(shell find src -name '*.py' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage lint bench docs clean browser

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One stamp per set of extras, so that a target installs no more than it needs.
.venv/.ready-%: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing incrowd[$*] into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

.venv/.ready: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing incrowd into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

demo: .venv/.ready-web ## build a synthetic crowd, assess one member, open the report
	@$(BIN)/incrowd demo --out build/demo

test: .venv/.ready-dev browser ## run every test on two cores
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

coverage: .venv/.ready-dev browser ## the same, slower, with the lines no test reaches
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --cov --cov-report=term

lint: .venv/.ready-dev ## ruff, mypy --strict, the arrows between layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -s tests/test_layers.py

bench: .venv/.ready-dev .venv/.ready-bench ## speed and memory beside peers, as ratios
	$(BIN)/python -m benchmarks

docs: .venv/.ready-docs ## build the documentation into build/docs
	$(BIN)/python docs/generate.py
	$(BIN)/sphinx-build -q -W --keep-going docs build/docs
	@echo "open build/docs/index.html"

# The browser tests need a real Chromium; Debian's package is used when none is there.
browser:
	@command -v chromium >/dev/null 2>&1 || { echo "installing chromium from Debian's packages"; \
	  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

clean: ## remove the environment and everything built
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .coverage
