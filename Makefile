# The commands of kai-fleet. `make up` is the first one to run.
STACK ?= sandbox
PYTHON ?= python3
FLEET := .venv/bin/python -m fleet
UV := .venv/bin/uv

.PHONY: up preview down setup check format test unit soak bench schema

up: setup          ## everything set up, the sandbox started, the stack made (STACK=dev: your cluster)
	@$(FLEET) up --stack $(STACK)

preview: setup     ## what `make up` would change, with every rule's verdict
	@$(FLEET) preview --stack $(STACK)

down: setup        ## stop the sandbox; no process and no state is left
	@$(FLEET) sandbox down

setup: .venv/.synced  ## the Python environment only

.venv/.synced: pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("kai-fleet needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=python3.12, for example." if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv"
	@test -x $(UV) || { $(PYTHON) -m venv .venv && .venv/bin/python -m pip install --quiet 'uv==0.13.9'; }
	@$(UV) sync --quiet --frozen --inexact --compile-bytecode
	@.venv/bin/python -m compileall -q __main__.py components fleet policies provider sandbox
	@touch $@

check: setup       ## format, lint, types, licences and known vulnerabilities of what is used
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/python -m fleet.supply

format: setup      ## put the format right
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

test: check        ## all tests, engine tests on the sandbox included; builds what they need
	.venv/bin/python -m pytest

unit: setup        ## the tests that need no engine, in under a minute
	.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m 'not engine and not faults'

soak: setup        ## the long form of tests/faults: everything is killed at 30 random moments
	KAI_FLEET_SOAK=1 .venv/bin/python -m pytest -m faults tests/faults

bench: setup       ## the program beside bare helm and kubectl, in one run, into docs/benchmarks.md
	.venv/bin/python -m bench --write

schema: setup      ## write the schema that the stack files point at
	@$(FLEET) schema > fleet/stack.schema.json
