# Two commands matter: `make demo` shows it, `make test` proves it. Both set everything up first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 4
LIVE_WORKERS ?= 3
ONLY ?=
PIN := uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header
PINNED := agents/requirements agents/tool_servers/requirements bench/locks/gateway bench/locks/meter
PIN_NPM := npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
PINNED_NPM := agents agents/tool_servers bench/locks/gateway-npm

.DEFAULT_GOAL := help
.PHONY: help setup agents servers sandbox demo test live quick check format bench docs lock clean

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the locked dependencies and the command .venv/bin/remuda

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "remuda needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "setup: installing the locked dependencies into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

agents: setup .agents/.ready ## Install the real coding agents that the live tests drive into .agents/

.agents/.ready: agents/install agents/requirements.lock agents/package-lock.json
	@agents/install $(PYTHON)

servers: setup .tool_servers/.ready ## Install the real tool servers that the live tests put behind the gateway

.tool_servers/.ready: agents/tool_servers/install agents/tool_servers/requirements.lock agents/tool_servers/package-lock.json
	@agents/tool_servers/install $(PYTHON)

demo: setup ## Run the demo: scripted agents, a hard kill in the middle, and a report
	@$(BIN)/remuda demo

sandbox: ## Install bubblewrap for the tests of the sandbox, where apt and root can; they are skipped without it
	@command -v bwrap >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null \
		|| apt-get install -y -qq bubblewrap >/dev/null 2>&1 || true

test: check sandbox agents servers ## Check, then run the whole test suite, the live tests with no network but loopback
	$(BIN)/python -m pytest -n $(WORKERS) -m "not live" --cov=remuda.domain --cov-branch --cov-fail-under=100 --cov-report=term:skip-covered
	agents/loopback $(BIN)/python -m pytest -n $(LIVE_WORKERS) -m live

live: agents servers ## Run only the tests that drive real coding agents: make live [ONLY=goose]
	agents/loopback $(BIN)/python -m pytest -n $(LIVE_WORKERS) -m live -k "$(ONLY)"

quick: setup ## Run the tests that take seconds
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long and not live"

check: setup ## Format, lint, strict types, import law
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Rewrite the files as the formatter wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## Run the benchmarks: make bench [ONLY=kernel]
	@$(BIN)/python -m bench $(ONLY)

docs: setup ## Redraw the parts of docs/ that come from the tables
	@$(BIN)/python -m remuda.cli.entry dev diagrams --write docs/lifecycle.md

lock: ## Resolve the dependencies anew, those of the live tests and of the benchmarks too (needs uv and npm)
	$(PIN) --group dev pyproject.toml --output-file requirements.lock
	set -e; for each in $(PINNED); do $(PIN) $$each.in --output-file $$each.lock; done
	set -e; for each in $(PINNED_NPM); do (cd $$each && $(PIN_NPM)); done

clean: ## Remove what the targets above made
	rm -rf .venv .agents .tool_servers .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
