# rme: `make run` brings the service up, `make test` proves it. `make` lists the rest.

# A distribution's Python comes first: it is built with optimizations, which others on the PATH often are not, such as
# pyenv's. It must be able to make an environment.
PYTHON ?= $(shell for p in /usr/bin/python3.14 /usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3.11 \
	python3.14 python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
T ?= tests
# Twice the two cores of CI. Three workers begin with the groups `service`, `service-2` and `browser`
# (a group is one worker's from beginning to end; the longest takes five minutes, and modules in it
# share a service where they can: a start costs six seconds of CPU time). The services mostly wait, a
# third of a core each, so a fourth worker has work for what they leave of the cores.
WORKERS ?= 4

.PHONY: help run run-cells test test-browser test-odoo test-sms test-deploy test-faults test-alerts test-upgrade simulate drill-failover drill-restore check browser gateway helm postgres15 broker prometheus clients clients-node demo-json bench screenshots assets conformance words lock format clean clean-data pooler pooler-preparing test-cells test-combinations

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

run: $(VENV)/.runtime  ## everything on this machine: engines, web, workers, beat (PORT=8000)
	@exec $(BIN)/python -m rme.run up

run-cells: $(VENV)/.runtime  ## two cells and a router on this machine (PORT=8000; the cells have the next ports)
	@exec $(BIN)/python -m rme.cells.two_cells

# Without kept bytecode each worker compiles all tests anew.
test test-system: export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest
test: $(VENV)/.dev  ## tests in one process each, on real PostgreSQL and Valkey (T=tests/messaging ARGS=-x)
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "not system and not long" $(T) $(ARGS)

.PHONY: test-system
test-system: $(VENV)/.dev  ## tests that start services, browsers and other programs; faults in the short form
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "system and not long" $(T) $(ARGS)

test-browser: browser $(VENV)/.dev  ## the tests in real browsers, which are installed where that can be done
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -rs tests/browser $(ARGS)

test-odoo: $(VENV)/.dev  ## the Odoo connector on a real Odoo 19, fetched on first use (or says why not)
	@$(BIN)/python -m tests.crm.real_odoo $(ARGS)

SMS := tests/sms tests/transport/smpp tests/messaging/providers/test_smpp.py tests/messaging/feedback/test_listeners.py
test-sms: $(VENV)/.dev  ## SMS through a real Kannel (or says why not), and SMPP against another's SMSC
	@$(PYTEST) -rs $(SMS) $(ARGS)

test-deploy: helm  ## the chart, compose.yaml's commands in containers made by hand (as root)
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -rs -m "long or not long" \
	  $(wildcard tests/deploy/test_chart*.py) tests/deploy/test_compose.py \
	  tests/deploy/test_containers.py tests/deploy/test_deployment_page.py $(ARGS)

test-faults: $(VENV)/.dev  ## ten minutes of faults in random order; writes docs/faults.md (FAULT_SECONDS, FAULT_SEED)
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -s -m long tests/faults $(ARGS)

test-cells: browser $(VENV)/.dev  ## two cells and a router: API, a browser from cell to cell, a killed cell
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -rs -m long tests/cells/router $(ARGS)

test-alerts: prometheus $(VENV)/.dev  ## each alert fires by its cause, in a real Prometheus; writes docs/alerts.md; and traces of all processes
	@ALERTS_REPORT=docs/alerts.md $(BIN)/python -m rme.run exec -- \
	  $(BIN)/python -m pytest -s -rs -m long tests/deploy/test_alerts.py tests/deploy/test_live_traces.py $(ARGS)

test-upgrade: $(VENV)/.dev  ## the version before and this one side by side; writes docs/upgrade-test.md (UPGRADE_FROM, UPGRADE_SECONDS)
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -s -rs -m long tests/upgrade $(ARGS)

test-combinations: $(VENV)/.dev  ## faults with PgBouncer, RabbitMQ's quorum queues and Sentinel; writes docs/combinations.md
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m pytest -s -rs -m long tests/combinations $(ARGS)

.PHONY: release-checks
RELEASE_CHECKS := test-deploy test-alerts test-upgrade test-combinations test-cells test-faults drill-failover drill-restore drill-move drill-kill-moves simulate-defects
release-checks:  ## what CI has no time for, before a release: docs/upgrading.md says what each shows
	@for each in $(RELEASE_CHECKS); do echo "== make $$each" >&2; \
	  $(MAKE) --no-print-directory $$each || exit 1; done

simulate: $(VENV)/.dev  ## histories from seeds: SEEDS=100000, ARGS=a seed to replay, or ARGS=mutants
	@$(BIN)/python -m rme.run exec -- $(BIN)/python -m tests.simulation.world $(ARGS)

.PHONY: simulate-defects
simulate-defects: ARGS := mutants
simulate-defects: simulate  ## the defects that histories must find, each until it is found (SEEDS for each)

drill-failover: $(VENV)/.dev  ## lose a primary under load, promote its standby; writes docs/failover-drill.md
	@$(BIN)/python -m tests.drills failover $(ARGS)

drill-restore: $(VENV)/.dev  ## restore a database to a moment, and account for all; writes docs/restore-drill.md
	@$(BIN)/python -m tests.drills restore

.PHONY: drill-move
drill-move: $(VENV)/.dev  ## move an organization between two cells under load; writes docs/move-drill.md
	@$(BIN)/python -m tests.drills move

.PHONY: drill-kill-moves
drill-kill-moves: $(VENV)/.dev  ## kill a move with SIGKILL in its pause and after its switch; writes docs/killed-moves-drill.md
	@$(BIN)/python -m tests.drills kill-moves

check: $(VENV)/.dev  ## lint, format, types, import layers, strings, migrations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.words --check
	@$(BIN)/python -m rme.run exec -- $(BIN)/python manage.py makemigrations --check --dry-run

.PHONY: audit
audit: $(VENV)/.dev  ## check the locked packages for known vulnerabilities (ARGS="--vulnerability-service osv"); needs the internet
	@$(BIN)/uv tool run --quiet pip-audit --strict --no-deps --disable-pip --progress-spinner off \
	  -r requirements-archive.lock -r requirements-tracing.lock $(ARGS)

browser:  ## install Debian's Chromium and Firefox, for the tests in tests/browser (as root)
	@for each in chromium "chromium-headless-shell chromium" firefox-esr; do \
	  command -v $${each%% *} >/dev/null 2>&1 || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$each >/dev/null; } || \
	  echo "$${each%% *} cannot be installed here: tests take Chromium in its place, or are skipped." >&2; done

gateway:  ## install Debian's Kannel, nghttpd and libfaketime, for tests that need them (as root)
	@test -x /usr/lib/kannel/test/fakesmsc || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends kannel kannel-extras >/dev/null 2>&1; } || \
	  echo "Kannel cannot be installed here: the tests that need it are skipped." >&2
	@command -v nghttpd >/dev/null 2>&1 || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nghttp2-server >/dev/null 2>&1; } || \
	  echo "nghttpd cannot be installed here: the test that needs it is skipped." >&2
	@ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime >/dev/null 2>&1; } || \
	  echo "libfaketime cannot be installed here: the tests that need it are skipped." >&2

broker:  ## install Debian's RabbitMQ, for the test of tests/faults that needs it (as root)
	@test -x /usr/lib/rabbitmq/bin/rabbitmq-server || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rabbitmq-server >/dev/null 2>&1; } || \
	  echo "RabbitMQ cannot be installed here: the test that needs it is skipped." >&2

pooler:  ## install Debian's PgBouncer, for the tests that need it (as root)
	@test -x /usr/sbin/pgbouncer || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null 2>&1; } || \
	  echo "PgBouncer cannot be installed here: the tests that need it are skipped." >&2

pooler-preparing: $(VENV)/.dev  ## unpack Debian 13's PgBouncer, which keeps statements prepared, beside the environment (as root, 220 MB)
	@test -x $(VENV)/debian-13/usr/sbin/pgbouncer || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null 2>&1 && \
	  debootstrap --variant=minbase --foreign --include=pgbouncer trixie $(VENV)/debian-13 >/dev/null && \
	  for each in pgbouncer libevent libcares2; do dpkg-deb -x $(VENV)/debian-13/var/cache/apt/archives/$$each*.deb $(VENV)/debian-13; done; } || \
	  echo "Debian 13's PgBouncer cannot be had here: the tests that need it are skipped." >&2

prometheus:  ## install Debian's Prometheus with promtool, for tests of the rules (as root)
	@command -v prometheus >/dev/null 2>&1 || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null 2>&1; } || \
	  echo "Prometheus cannot be installed here: the tests that need it are skipped." >&2

helm: $(VENV)/.dev  ## install helm and Kubernetes' schemas beside the environment, for tests/deploy (40 MB)
	@test -x $(VENV)/deploy-tools/helm || $(BIN)/python -m tests.deploy.helm || \
	  echo "Helm cannot be installed here: the tests of the chart are skipped." >&2

postgres15:  ## install Debian's PostgreSQL 15, for tests/messaging/delivery/test_postgresql_15.py (as root)
	@test -x /usr/lib/postgresql/15/bin/postgres || { apt-get update -qq && \
	  mkdir -p /etc/postgresql-common/createcluster.d && \
	  echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.d/rme.conf && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null 2>&1; } || \
	  echo "PostgreSQL 15 cannot be installed here: the test that needs it is skipped." >&2
	@rm -f /etc/postgresql-common/createcluster.d/rme.conf 2>/dev/null || true

clients: $(VENV)/.dev  ## generate the clients' types and methods anew
	@$(BIN)/python -m rme.run exec -- $(BIN)/python manage.py spectacular --format openapi-json \
	  | $(BIN)/python -m clients.generator

clients-node:  ## install the TypeScript compiler, for tests/clients (or say why not)
	@command -v npm >/dev/null 2>&1 && (cd clients/typescript && npm ci --silent) || \
	  echo "There is no npm, or no registry: the tests of the TypeScript client are skipped." >&2

demo-json: $(VENV)/.runtime  ## the demo's addresses and secrets, as JSON
	@$(BIN)/python -m rme.run demo-json

bench: $(VENV)/.dev  ## measure, beside references in the same run (ARGS="accept smtp")
	@$(BIN)/python -m rme.run --var var/bench exec -- $(BIN)/python -m bench $(ARGS)

screenshots: $(VENV)/.dev  ## make the pictures of the documents anew (needs Chromium; ARGS=console-templates)
	@rm -rf var/screenshots
	@$(BIN)/python -m rme.run --var var/screenshots exec -- $(BIN)/python docs/screenshots.py $(ARGS)

format: $(VENV)/.dev  ## bring the code into form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

assets:  ## build the scripts of the console's pages from assets/ (needs node; the result is committed)
	@cd assets && npm ci --silent && npm run --silent build

conformance: $(VENV)/.dev  ## write into docs/conformance*.md which tests hold each promise
	@$(BIN)/python -m docs.conformance

words: $(VENV)/.dev  ## write the console's strings into locale/, and compile its languages (ARGS=de begins one)
	@$(BIN)/python -m docs.words $(ARGS)

COMPILE = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate
lock: $(VENV)/.dev  ## update the lock files after a change of pyproject.toml
	@$(BIN)/pip install -q uv
	@echo uv | $(COMPILE) - -o requirements-installer.lock
	@$(COMPILE) pyproject.toml -o requirements.lock
	@$(COMPILE) pyproject.toml --extra archive -c requirements.lock -o requirements-archive.lock
	@$(COMPILE) pyproject.toml --extra tracing -c requirements.lock -o requirements-tracing.lock
	@$(COMPILE) pyproject.toml --extra archive --extra tracing --group dev -c requirements.lock \
	  -o requirements-dev.lock

clean:  ## remove the environment and caches; data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis static *.egg-info

clean-data:  ## remove the data of `make run`, for good
	rm -rf var

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "rme needs Python 3.11 or later with its venv module (Debian's python3-venv);" \
	  "none was found (PYTHON=/path/to/python make run)." >&2; exit 1; fi
	@echo "Making the environment ($(PYTHON)) ..." >&2
	@rm -rf $(VENV)  # half of one, or one whose Python is gone
	@$(PYTHON) -m venv $(VENV) >&2 || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment: its venv module is missing." >&2; exit 1; }

$(VENV)/.runtime: requirements.lock | $(VENV)/bin/python
	@$(call install,requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/bin/python
	@$(call install,requirements-dev.lock)
	@touch $@ $(VENV)/.runtime

# uv takes a third of pip's time. pip comes in where uv cannot do it: on other platforms, and with the index of a pip.conf.
define install
echo "Installing $(1) (half a minute, once) ..." >&2; \
{ ! $(BIN)/pip config list | grep -q '\.index-url=' && \
  $(BIN)/pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-installer.lock && \
  $(BIN)/uv pip install -q --python $(BIN)/python --compile-bytecode --require-hashes -r $(1); } >/dev/null 2>&1 || \
$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r $(1) >&2 || { \
  command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || \
  echo "A package has to be compiled and there is no C compiler: install gcc." >&2; exit 1; }
endef
