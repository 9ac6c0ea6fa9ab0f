# The commands of kai-fleet. `make up` is the first one to run.
STACK ?= sandbox
PYTHON ?= python3
DETAILS ?=
CHARTS ?=
FLEET := .venv/bin/fleet
UV := .venv/bin/uv

.PHONY: up preview down setup check format test unit test-all bench reference texts

up: setup          ## everything set up, the sandbox started, the stack made (STACK=dev: your cluster)
	@$(FLEET) up --stack $(STACK)

preview: setup     ## what `make up` would change, with every rule's verdict (DETAILS=1: every property)
	@$(FLEET) preview --stack $(STACK) $(if $(DETAILS),--details)

down: setup        ## stop the sandbox; no process and no state is left
	@$(FLEET) sandbox down --yes

setup: .venv/.synced  ## the Python environment only

.venv/.synced: pyproject.toml */pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("kai-fleet needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=python3.12, for example." if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv"
	@test -x $(UV) || { $(PYTHON) -m venv .venv && .venv/bin/python -m pip install --quiet 'uv==0.13.9'; }
	@$(UV) sync --quiet --frozen --inexact --compile-bytecode
	@.venv/bin/python -m compileall -q __main__.py usage kubectl components policies stack cli sandbox
	@touch $@

check: setup       ## format, lint, types, licences and known vulnerabilities of what is used
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/mypy examples/python
	.venv/bin/mypy examples/other-program
	@$(UV) sync --quiet --frozen --inexact --group examples
	.venv/bin/pyright
	.venv/bin/pip-licenses >/dev/null
	.venv/bin/uv audit --frozen --no-progress || [ $$? = 2 ] # 2: osv.dev cannot be reached

format: setup      ## put the format right
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

test: check        ## unit tests, engine tests and faults, on two sandboxes at once: about 12 minutes
	@$(FLEET) sandbox tools
	.venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

test-all: check    ## these and the slow proofs: an hour
	@$(FLEET) sandbox tools
	.venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

unit: setup        ## the tests that need no engine and take no seconds each: a minute
	.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m 'not engine and not faults and not slow and not long'

bench: setup       ## the program beside bare helm and kubectl, in one run, into docs/benchmarks.md (CHARTS=FOLDER)
	.venv/bin/python -m bench --teams 20 --write $(if $(CHARTS),--charts $(CHARTS))

reference: setup   ## write what is generated from the code: the schema of stack files, pages of docs/
	@.venv/bin/python docs/reference.py

texts: setup       ## write anew the sentences that tests expect, in tests/texts: read the diff
	.venv/bin/python -m pytest -m texts --write-texts
