# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python on the path that is new enough for the controller side of Ansible.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PIP := .venv/bin/pip install --quiet --disable-pip-version-check
PLAY := .venv/bin/ansible-playbook
DEMO := -e session_name=demo
COLLECTION := ansible_collections.cluster.compute.plugins
SCENARIOS := $(filter-out default shared inventory,$(notdir $(patsubst %/,%,$(wildcard extensions/molecule/*/))))

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

## Use

.PHONY: session terminate sessions logs bench
session: .venv  ## Launch the session "demo" of three containers on this machine (ARGS='-e session_name=train …')
	@$(PLAY) playbooks/cluster_session.yml $(DEMO) -e session_cluster_size=3 -e session_cpus=0.5 -e session_memory=512m $(ARGS)

terminate: .venv  ## End the session "demo" and leave nothing behind (ARGS='-e session_name=train')
	@$(PLAY) playbooks/terminate.yml $(DEMO) $(ARGS)

sessions: .venv  ## List sessions and resources
	@$(PLAY) playbooks/sessions.yml $(ARGS)

logs: .venv  ## Show what each container of the session "demo" has written
	@$(PLAY) playbooks/session_logs.yml $(DEMO) $(ARGS)

bench: .venv/.tested  ## Measure: the engine's floor, this collection, and a playbook of loops, side by side
	@tests/tools/with_engine.py python tests/bench/bench.py $(ARGS)

## Check

CHECKS := ruff mypy shellcheck yamllint changelog docs ansible-lint unit artifact sanity integration hosts molecule
.PHONY: test lint $(CHECKS) cycle clean help
test: .venv/.tested  ## Run every check and test, on real engines
	@tests/tools/with_engine.py tests/tools/steps.py \
		"ruff mypy shellcheck yamllint changelog unit docs ansible-lint artifact sanity molecule hosts" "integration"

lint: .venv/.tested  ## Run the checks that read the code without running it
	@tests/tools/steps.py "ruff mypy shellcheck yamllint changelog docs ansible-lint"

ruff: .venv/.tested
	@ruff check .
	@ruff format --check --diff .

mypy: .venv/.tested
	@mypy -p $(COLLECTION).module_utils -p $(COLLECTION).plugin_utils

shellcheck: .venv/.tested
	@shellcheck --severity=warning $$(git ls-files | xargs grep -lsE '^\#!(/usr/bin/env |/bin/)(ba)?sh') && echo "no fault found"

yamllint: .venv/.tested
	@yamllint --strict . && echo "no fault found"

changelog: .venv/.tested
	@antsibull-changelog lint && echo "no fault found"

docs: .venv/.tested
	@antsibull-docs lint-collection-docs --plugin-docs . && echo "no fault found"

ansible-lint: .venv/.tested
	@ansible-lint --offline --profile production

unit: .venv/.tested  ## Run the unit tests
	@pytest tests/unit $(ARGS)

# An engine, a Swarm and SSH under load can fail for once: what failed is tried a second time, openly, and must then pass.
# Each target remembers in a cache of its own what failed, because they run side by side.
TWICE = run() { pytest -o cache_dir=.cache/pytest-$@ $(1) "$$@"; }; run --durations=12 || { \
	echo "--- once more, those that failed"; run --last-failed --last-failed-no-failures=none; }

integration: .venv/.tested  ## Run the tests against a real engine
	@$(call TWICE,tests/integration --ignore=tests/integration/multi_host $(ARGS))

hosts: .venv/.tested  ## Run the fault and soak tests over three agents made for the run (ROUNDS=50 for the long soak)
	@$(call TWICE,tests/integration/multi_host $(ARGS))

artifact: .venv/.tested  ## Build the collection and look at what is in it
	@pytest tests/artifact $(ARGS)

sanity: .venv/.tested  ## Run ansible-test sanity on the built and installed collection
	@tests/tools/sanity.sh $(ARGS)

molecule: .venv/.tested  ## Run the molecule scenarios on agents made for the run
	@tests/tools/with_engine.py tests/tools/molecule.sh $(ARGS)

## House

.PHONY: variables
variables: .venv/.tested  ## Write the role's argument specification from the declaration of its variables
	@python tests/tools/variables.py

help:  ## Show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

clean:  ## Remove what make has made here (sessions and agents stay)
	rm -rf .venv .cache .ansible

.PHONY: .venv
.venv: .venv/.ready

.venv/.ready: requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and none was found: apt-get install -y python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: apt-get install -y python3-venv" >&2; exit 1; }
	@echo "Making .venv (ansible-core, the Docker SDK, paramiko) …"
	@$(PYTHON) -m venv .venv
	@$(PIP) -r requirements.txt
	@touch $@

.venv/.tested: .venv/.ready requirements-dev.txt
	@echo "Adding the test tools to .venv …"
	@$(PIP) -r requirements-dev.txt
	@touch $@
