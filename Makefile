# Every target makes its own .venv and installs what it needs: Python, git and make are enough.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
OLD := build/oldest

.DEFAULT_GOAL := help
.PHONY: help demo test test-oldest coverage lint bench docs clean browser servers

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Only pip 25.1 and newer know dependency groups, and a new environment may come with an older one.
.venv/.made:
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --upgrade "pip>=25.1"
	@touch $@

# One stamp for each dependency group, so that a target installs no more than it needs.
.venv/.ready-%: pyproject.toml | .venv/.made
	@echo "installing incrowd and the group '$*' into .venv"
	@$(PIP) --editable ".[all]" --group $*
	@touch $@

.venv/.ready: pyproject.toml | .venv/.made
	@echo "installing incrowd into .venv"
	@$(PIP) --editable ".[web]"
	@touch $@

demo: .venv/.ready ## build a synthetic crowd, assess one member, open the report
	@$(BIN)/incrowd demo --out build/demo

test: .venv/.ready-dev browser servers ## run every test on two cores
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# uv resolves to the lower bounds of pyproject.toml; pip cannot. The tests themselves use today's pytest, and that old
# packages are warned about by newer ones below them is no failure of ours.
test-oldest: browser servers ## the same with the oldest versions that pyproject.toml allows
	@test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	@$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(OLD)/bin/uv pip install --quiet --python $(OLD)/bin/python --only-binary :all: --no-binary incrowd \
	  --resolution lowest-direct --editable ".[all]"
	@$(OLD)/bin/uv pip freeze --quiet --python $(OLD)/bin/python --exclude-editable > $(OLD)/pins.txt
	@$(OLD)/bin/uv pip install --quiet --python $(OLD)/bin/python --constraint $(OLD)/pins.txt --group test
	$(OLD)/bin/python -m pytest --numprocesses 2 --dist worksteal -W ignore::DeprecationWarning \
	  -W ignore::PendingDeprecationWarning $(TESTS)

coverage: .venv/.ready-dev browser servers ## the same as test, slower, with the lines no test reaches
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

# The collector is tested against Bluesky's own server (npm) and a real news server (Debian's INN, unpacked, not
# installed). Where one cannot be had its tests are skipped and say so.
PDS := build/servers/pds
INN := build/servers/inn
servers: $(PDS)/.ready $(INN)/.ready
$(PDS)/.ready: tests/collect/pds/package.json
	@mkdir -p $(PDS) && cp $< $(PDS)/
	@command -v npm >/dev/null 2>&1 || { echo "no npm: the tests with Bluesky's server will be skipped"; exit 0; }; \
	  echo "installing Bluesky's server from npm (some minutes, once)"; \
	  (cd $(PDS) && npm install --silent --no-audit --no-fund --ignore-scripts && JOBS=max npm rebuild --silent better-sqlite3) \
	  > $(PDS)/install.log 2>&1 || echo "it could not be installed: its tests will be skipped (see $(PDS)/install.log)"
	@touch $@
$(INN)/.ready:
	@mkdir -p $(INN)
	@command -v apt-get >/dev/null 2>&1 || { echo "no apt-get: the tests with INN will be skipped"; exit 0; }; \
	  echo "unpacking INN from Debian's packages"; \
	  (cd $(INN) && { apt-get download inn2 inn2-inews libcanlock3 || \
	  { apt-get update -qq && apt-get download inn2 inn2-inews libcanlock3; }; } && \
	  for package in *.deb; do dpkg-deb -x $$package root; done) \
	  > $(INN)/install.log 2>&1 || echo "it could not be unpacked: its tests will be skipped (see $(INN)/install.log)"
	@touch $@

clean: ## remove the environment and everything built
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .coverage
