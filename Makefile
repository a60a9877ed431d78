# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python that is new enough for the controller side of Ansible and can create virtual environments. The distribution's
# comes first: it is built with optimizations, which pyenv, for one, does not ask for, and playbooks need 15 % less CPU time with it.
PYTHON ?= $(shell for p in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
HAVE_PYTHON = test -n "$(PYTHON)" || { echo "Python 3.11 or newer with the module venv is required and was not found: apt-get install -y python3 python3-venv" >&2; exit 1; }
# Only files whose digests are in the lock: `make lock` writes the locks.
PIP := bin/pip install --quiet --disable-pip-version-check
BY_DIGEST := $(PIP) --require-hashes
# These targets are about this machine, unless the user names an inventory, which Ansible would add to the first.
OTHER := $(filter -i% --inventory%,$(ARGS))
PLAY := .venv/bin/ansible-playbook $(if $(OTHER),,-i inventory/local.yml)
LOCAL := $(if $(OTHER),, --local)
DEMO := -e session_name=demo
NAME = $(lastword demo $(patsubst session_name=%,%,$(filter session_name=%,$(ARGS))))
COLLECTION := ansible_collections.cluster.compute.plugins
MOLECULE := $(addprefix molecule-,$(notdir $(patsubst %/molecule.yml,%,$(wildcard extensions/molecule/*/molecule.yml))))

# An ordinary user's PATH has no folder of system programs.
export PATH := $(CURDIR)/.venv/bin:$(PATH):/usr/sbin:/sbin
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Thousands of processes import these files: without bytecode, each compiles them.
unexport PYTHONDONTWRITEBYTECODE

## Use

.PHONY: session terminate sessions logs bench
session: .venv  ## Launch the session "demo" with three containers on this machine (ARGS='-e session_name=train …')
	@$(PLAY) playbooks/cluster_session.yml $(DEMO) -e session_cluster_size=3 -e session_cpus=0.5 -e session_memory=512m $(ARGS)
	@printf '%s\n' 'Go on with:' '  bin/cluster-compute ssh $(NAME)' '  bin/cluster-compute exec $(NAME) -- hostname' \
		'  bin/cluster-compute ls$(LOCAL)' '  bin/cluster-compute down $(NAME)$(LOCAL)'

terminate: .venv  ## End the session "demo" and remove everything of it (ARGS='-e session_name=train')
	@$(PLAY) playbooks/terminate.yml $(DEMO) $(ARGS)

sessions: .venv  ## List sessions and the resources of the agents
	@$(PLAY) playbooks/sessions.yml $(ARGS)

logs: .venv  ## Show the output of each container of the session "demo"
	@$(PLAY) playbooks/session_logs.yml $(DEMO) $(ARGS)

bench: .venv/.tested  ## Measure the engine alone, this collection, and a playbook of loops, side by side
	@tests/tools/with_engine.py python tests/bench/bench.py $(ARGS)

## Check

LINTS := ruff mypy shellcheck yamllint changelog docs ansible-lint
SYSTEMD := tests/integration/multi_host/test_systemd_host.py
CHECKS := $(LINTS) unit artifact sanity images modules ssh playbooks-1 playbooks-2 playbooks-3 examples hosts hosts-1 hosts-2 systemd molecule $(MOLECULE)
# Test processes on an engine mostly wait: four more than there are processors keep the processors busy.
WORKERS ?= $(shell echo $$(( $$(nproc) + 4 )))
.PHONY: test packages tools lint $(CHECKS) integration large matrix certification docs-site clean help
# The longest steps come first; the linters fill the gap while the images are built. The images need no test tools, and nothing
# here needs the processors alone: to unpack packages takes one of them.
AGAIN = $(NEEDS_IMAGES) examples systemd $(MOLECULE)
NEEDS_IMAGES := hosts-1 hosts-2 ssh modules playbooks-1 playbooks-2 playbooks-3
test:  ## Run every check and test, on real engines
	@$(MAKE) -j2 packages .venv
	@IMAGES_READY=1 tests/tools/with_engine.py tests/tools/steps.py --workers $(WORKERS) --again $(AGAIN) -- tools images $(NEEDS_IMAGES:=:images,tools) unit:tools \
		examples:images,tools systemd:images,tools molecule-default:images,tools molecule-own:images,tools $(addsuffix :tools,$(LINTS) artifact sanity)

tools: .venv/.tested

packages:  ## Install the Debian packages that the tests need, or show the command that installs them
	@$(HAVE_PYTHON)
	@tests/tools/packages.sh

lint: .venv/.tested  ## Run the checks that do not execute the code
	@tests/tools/steps.py --workers $(WORKERS) $(LINTS)

ruff: .venv/.tested
	@ruff check .
	@ruff format --check --diff .

mypy: .venv/.tested
	@mypy -p $(COLLECTION).module_utils -p $(COLLECTION).plugin_utils -p $(COLLECTION).modules -p $(COLLECTION).action
	@MYPYPATH=tests/drill mypy tests/drill/*.py
	@MYPYPATH=extensions/command mypy -p cluster_compute
	@MYPYPATH=extensions/command mypy extensions/front_end/*.py

shellcheck: .venv/.tested
	@shellcheck --severity=info $$(git ls-files ':!*.j2' ':!*.py' | xargs grep -lsE '^\#!(/usr/bin/env |/bin/)(ba)?sh') && echo "no fault found"

yamllint: .venv/.tested
	@yamllint --strict . && echo "no fault found"

changelog: .venv/.tested
	@antsibull-changelog lint && echo "no fault found"

docs: .venv/.tested
	@antsibull-docs lint-collection-docs --plugin-docs . && echo "no fault found"

ansible-lint: .venv/.tested
	@python tests/tools/warm_playbook.py ansible-lint --offline --profile production

# tests/tools/steps.py reads these reports.
REPORT = --junitxml=.cache/reports/$@

unit: .venv/.tested  ## Run the unit tests
	@pytest tests/unit --durations=10 $(REPORT).1.xml $(ARGS)

# An engine, a Swarm and SSH can fail once under load: failed tests run a second time, openly, and must then pass. In `make test`, this is
# after all other steps (SECOND=later, then SECOND=now), when nothing else uses the processors.
# Each target records its failed tests in a cache of its own, because the targets run side by side.
TWICE = run() { pytest -o cache_dir=.cache/pytest-$@ $(1) "$$@"; }; \
	if [ "$$SECOND" != now ]; then run --durations=12 $(REPORT).1.xml && exit; [ "$$SECOND" != later ] || exit 1; fi; \
	echo "--- second run of the failed tests"; run --last-failed --last-failed-no-failures=none $(REPORT).2.xml

images: .venv
	@env -u IMAGES_READY tests/tools/images.py

integration: .venv/.tested  ## Run the tests against a real engine (parts: modules, ssh, playbooks-1 to -3, examples)
	@$(call TWICE,tests/integration --ignore=tests/integration/multi_host $(ARGS))

# In one process: these tests name their image, volumes and subnets.
modules: .venv/.tested
	@$(call TWICE,tests/integration/modules $(ARGS))

ssh: .venv/.tested
	@$(call TWICE,tests/integration/test_*.py $(ARGS))

playbooks-1 playbooks-2 playbooks-3: .venv/.tested
	@$(call TWICE,tests/integration/playbooks --part $(@:playbooks-%=%)/3 $(ARGS))

examples: .venv/.tested
	@$(call TWICE,tests/integration/examples $(ARGS))

# Each part has three agents of its own.
hosts-1 hosts-2: .venv/.tested
	@$(call TWICE,tests/integration/multi_host --ignore=$(SYSTEMD) --part $(@:hosts-%=%)/2 $(ARGS))

systemd: .venv/.tested
	@$(call TWICE,$(SYSTEMD) $(ARGS))

hosts: .venv/.tested  ## Run the tests over three agents, created for the run (ROUNDS=200 for the long soak; parts: hosts-1, hosts-2, systemd)
	@$(call TWICE,tests/integration/multi_host $(ARGS))

artifact: .venv/.tested  ## Build the collection and check its content
	@pytest tests/artifact --durations=10 $(REPORT).1.xml $(ARGS)

sanity: .venv/.tested  ## Run ansible-test sanity on the built and installed collection
	@tests/tools/sanity.sh $(or $(ARGS),--short)

# Before a release.
certification: .venv .cache/importer/.ready .cache/certification/.ready  ## Import the built collection as Galaxy does, and check it with the versions of the certification
	@tests/tools/importer.sh .cache/importer
	@tests/tools/certification.sh .cache/certification

.PHONY: large-own large-variants
large: large-own large-variants molecule-multi_node  ## Run the slow tests: TensorFlow itself, other frameworks, bare hosts, random losses, more variants

large-own: packages .venv/.tested
	@tests/tools/with_engine.py pytest -m large tests/large --durations=10 $(ARGS)

large-variants: packages .venv/.tested
	@tests/tools/with_engine.py pytest -m large tests/integration --durations=10 $(ARGS)

matrix: .venv/.tested  ## Run unit tests and sessions on every supported ansible-core (ARGS='--only 2.18')
	@tests/tools/packages.sh debootstrap rsync
	@tests/tools/with_engine.py python tests/tools/matrix.py $(ARGS)

# Tools whose requirements differ from those of .venv have virtual environments of their own. uv, which writes the locks, has a lock itself.
OWN_VENV = $(HAVE_PYTHON) && $(PYTHON) -m venv --clear .cache/$*
.cache/%/.ready: tests/requirements/%.lock
	@$(OWN_VENV)
	@.cache/$*/$(BY_DIGEST) -r $<
	@touch $@

.cache/%/.ready: tests/requirements/%.txt
	@$(OWN_VENV)
	@.cache/$*/$(PIP) -r $<
	@touch $@

molecule: .venv/.tested  ## Run the molecule scenarios on agents created for the run
	@tests/tools/with_engine.py tests/tools/molecule.sh $(ARGS)

$(MOLECULE): .venv/.tested
	@tests/tools/with_engine.py tests/tools/molecule.sh $(@:molecule-%=%)

## House

docs-site: .venv/.tested .cache/docs-site/.ready  ## Build the documentation as web pages in build/site
	@tests/tools/docs_site.sh .cache/docs-site build/site

.PHONY: variables lock
variables: .venv/.tested  ## Write what is generated from the declaration of the variables
	@PYTHONPATH=collections python tests/tools/session_schema.py

lock: .cache/uv/.ready  ## Write the locks from the requirements (LOCK_OPTIONS=--upgrade for the newest versions)
	@tests/tools/lock_requirements.sh .cache/uv

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

clean:  ## Remove the files that make created here (sessions and agents stay)
	rm -rf .venv .cache .ansible build

.PHONY: .venv
.venv: .venv/.ready

.venv/.ready: requirements.lock
	@$(HAVE_PYTHON)
	@echo "Creating .venv (ansible-core, the Docker SDK, paramiko) …"
	@$(PYTHON) -m venv .venv
	@.venv/$(BY_DIGEST) -r $<
	@touch $@

.venv/.tested: .venv/.ready requirements-dev.lock
	@echo "Adding the test tools to .venv …"
	@.venv/$(BY_DIGEST) --no-compile -r requirements-dev.lock
	@touch $@
