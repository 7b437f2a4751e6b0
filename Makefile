# `make demo` shows the main job, `make test` proves it, `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
# full: 300 examples a property, traced for the coverage gate. ci: 100, not traced, for slow machines.
PROFILE ?= full
TRACED := $(if $(filter full,$(PROFILE)),--cov --cov-report=)
CHECKED := fabric tests benchmarks playbooks/action_plugins compile_engine.py hatch_build.py
UNIT := tests/unit tests/property
CORE := hatch_build.py $(wildcard fabric/engine/transport/block/*.[ch])

.PHONY: help venv demo test sweep image vm programs proved unit lint style types cov docs-check bars soak wheel compiled clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# Two stamps: what runs, and what tests. A change of what they depend on makes them anew.
.venv/.stamp: pyproject.toml constraints.txt $(CORE)
	@.ci/venv && touch $@

.venv/.stamp-dev: pyproject.toml constraints.txt $(CORE)
	@.ci/venv dev && touch .venv/.stamp $@

venv: .venv/.stamp ## set up .venv with what fabricctl needs

demo: .venv/.stamp ## run the main job over real SSH against emulated switches on this machine
	@$(BIN)/fabricctl demo

# Types are checked beside the tests: mypy runs on one core. What processes run is compiled once, not each time.
test: programs .venv/.stamp-dev style docs-check ## lint, types, layers, tests (300 examples a property), the coverage gate
	@$(MAKE) --no-print-directory -j 2 types proved

proved: export PYTHONDONTWRITEBYTECODE :=
proved: .venv/.stamp-dev
	rm -f .coverage .coverage.*
	HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/pytest -n $(JOBS) --dist worksteal $(TRACED) --junit-xml=build/junit.xml
ifneq ($(TRACED),)
	$(BIN)/coverage json -q -o build/coverage.json
	$(BIN)/python tests/coverage_gate.py build/coverage.json
endif

sweep: programs .venv/.stamp-dev ## what computes long and is alike for each seed; `make test` has a first share of it
	HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/pytest -n $(JOBS) --dist worksteal -m sweep --junit-xml=build/junit-sweep.xml

image: .venv/.stamp-dev ## build the lab's image if it is not in the cache
	@.ci/need qemu-system-x86_64=qemu-system-x86 qemu-img=qemu-utils mmdebstrap=mmdebstrap cpio=cpio depmod=kmod mke2fs=e2fsprogs
	$(BIN)/python -m tests.vm.image

vm: image ## test on virtual machines: bare hosts and targets provisioned for real, half an hour
	$(BIN)/pytest -m 'vm and not bar' tests/vm --durations=15 --junit-xml=build/junit-vm.xml

programs:
	@.ci/need yanglint=libyang2-tools ssh-keygen=openssh-client git=git

unit: .venv/.stamp-dev ## the fast tier: under 30 s, 50 examples a property
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m 'not slow and not sweep' $(UNIT)

lint: style types ## ruff, its formatter, import-linter, mypy --strict

style: .venv/.stamp-dev
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/lint-imports

types: .venv/.stamp-dev
	$(BIN)/mypy -p fabric -p tests -p benchmarks
	$(BIN)/mypy playbooks/action_plugins

cov: .venv/.stamp-dev ## coverage by file of the last `make test`, as text and build/htmlcov
	$(BIN)/coverage html -q -d build/htmlcov
	$(BIN)/coverage report

docs-check: .venv/.stamp-dev ## spelling, YAML style, links of the documents
	$(BIN)/codespell fabric docs inventory playbooks templates *.md
	$(BIN)/yamllint -s playbooks inventory
	$(BIN)/python tests/doc_links.py

bars: ## rerun the bars of one issue: make bars ISSUE=02
	@tests/bars/run '$(ISSUE)'

soak: .venv/.stamp-dev ## 2,000 examples a property; prints the record for docs/evidence
	@tests/soak

wheel: .venv/.stamp-dev ## build dist/fabricctl-*.whl
	rm -rf dist
	$(BIN)/python -m build --wheel .

# The tests run from inside the folder, so that they import what is compiled there.
compiled: .venv/.stamp-dev ## compile the engine's hot path into build/compiled (decision 0008), and test it
	@.ci/need cc=gcc
	$(BIN)/python compile_engine.py build/compiled
	cp -r tests docs pyproject.toml build/compiled
	cd build/compiled && PYTHONPATH=. ../../$(BIN)/python -m pytest -q -p no:cacheprovider $(addprefix tests/unit/engine/,queues nvmeof client)
	rm -r build/compiled/tests build/compiled/docs build/compiled/pyproject.toml

clean: ## remove what the targets made, the virtual environment too
	rm -rf .venv build dist demo-run .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
