# make run       set everything up and serve on localhost:9092, with the data in ./pykafkad-data
# make quick     the developer's loop: lint, types, unit and architecture tests, no JVM and no container
# make test      set everything up and run everything: lint, unit, architecture, compat (beside a real Kafka) and Spark
# make fresh     remove what earlier runs downloaded and built; .ci/run begins with that
# make help      the other targets
#
# Every dependency is pinned, with hashes, in requirements/*.txt; `make lock` updates them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run quick lint test test-long fresh bench pipeline lock clean readme compile

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Byte code is part of the installation: without it every start compiles every module.
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The distribution's own Python comes first: it is built with profile-guided optimization, and the broker takes a tenth less
# processor time with it. A Python that cannot create virtual environments comes last.
PYTHONS = $(PYTHON) /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11
FIND_PYTHON = for needed in 'import ensurepip, sys' 'import sys'; do for each in $(PYTHONS); do \
	if "$$each" -c "$$needed; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then echo "$$each"; exit 0; fi; done; done; \
	echo 'pykafkad needs Python 3.11 or newer, and none was found; install one, or name one: make PYTHON=/path/to/python3' >&2; exit 1

# Debian and Ubuntu keep Python's venv module in a package of its own.
GET_VENV = if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo 'installing the package python3-venv, which contains the venv module of Python'; apt-get update -q && apt-get install -qy python3-venv; \
	else echo 'the venv module of Python is missing; on Debian and Ubuntu: sudo apt-get install python3-venv' >&2; exit 1; fi

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@echo 'setting up $(VENV), once; that takes some seconds'
	@python="$$($(FIND_PYTHON))"; "$$python" -m venv $(VENV) || { $(GET_VENV) && "$$python" -m venv --clear $(VENV); }

# A stamp per lock: base is what the command line needs, test adds telemetry, the tools and the test clients, spark adds PySpark and what it draws with.
$(VENV)/.installed-%: requirements/%.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --require-hashes -r $<
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

compile: $(VENV)/.installed-base
	@$(BIN)/python -m compileall -q pykafkad

run: compile ## serve on localhost:9092 (ARGS="--topic events:3" passes options on)
	$(BIN)/python -m pykafkad serve --listen localhost:9092 --data pykafkad-data $(ARGS)

# `part NAME COMMAND...` runs one part of the tests. The next part runs even if one fails. `report_parts` comes last: it prints
# the result of each part, and fails if one of them failed.
PARTS = results=(); code=0; trap 'exit 130' INT; \
	part() { local name=$$1 begin=$$SECONDS how=passed; shift; printf '\n== %s\n' "$$name"; \
		"$$@" || { how=FAILED; code=1; }; results+=("$$(printf '%-9s%s (%d s)' "$$name" $$how $$((SECONDS - begin)))"); }; \
	report_parts() { printf '\n== result\n'; printf '%s\n' "$${results[@]}"; exit $$code; }

LINT = lint() { local code=0; $(BIN)/ruff format --check --quiet . || code=1; $(BIN)/ruff check . || code=1; \
	$(BIN)/mypy || code=1; return $$code; }

lint: $(VENV)/.installed-test ## format, lint and types
	@$(LINT); lint

# One process more than processors: the tests wait for other processes in a quarter of their time.
AND_ONE_MORE := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# Lint runs beside the tests: alone, it would keep one processor busy. What it says comes after theirs.
quick: compile $(VENV)/.installed-test ## lint, unit and architecture tests, under a minute
	@$(PARTS); $(LINT); \
	said=$$(mktemp); lint >"$$said" 2>&1 & linting=$$!; trap 'kill $$linting 2>/dev/null || true; rm -f "$$said"' EXIT; \
	lint_beside() { local code=0; wait $$linting || code=1; cat "$$said"; return $$code; }; \
	part unit $(BIN)/python -m pytest tests -n $(AND_ONE_MORE) --dist worksteal --quick --cases 3 $(ARGS); \
	part lint lint_beside; \
	report_parts

# The processes take the files in the order of compat_tests/conftest.py.
BY_FILES := --dist loadfile --no-loadscope-reorder --durations 15

# Compat has one process more than processors, and at most four, each with real Kafkas of its own, which take a gigabyte or
# two: half of the time goes into waits, of clients and for a JVM's start. Spark's jobs keep two processors busy.
COMPAT_PROCESSES := $(shell echo $$(($(AND_ONE_MORE) < 4 ? $(AND_ONE_MORE) : 4)))

# What set-up downloads and builds comes beside lint and the unit tests, which need nothing of it; it says at once what it
# is about to install.
test: compile $(VENV)/.installed-spark ## everything; installs JDK, Maven and a container engine where that is allowed
	@$(PARTS); $(LINT); \
	$(BIN)/python -u -m compat_tests.setup & setting_up=$$!; \
	trap 'kill $$setting_up 2>/dev/null || true' EXIT; \
	part lint lint; \
	part unit $(BIN)/python -m pytest tests -n $(AND_ONE_MORE) --dist worksteal $(ARGS); \
	part set-up wait $$setting_up; trap - EXIT; \
	part portable env PYTHONPATH=$(CURDIR)/tests/portable $(BIN)/python -m pytest --quick tests \
		-n $(AND_ONE_MORE) --dist worksteal $(ARGS); \
	part clients env PYTHONPATH=$(CURDIR)/tests/portable $(BIN)/python -m pytest --against pykafkad -n 2 $(BY_FILES) $(ARGS) \
		compat_tests/test_kafka_python.py compat_tests/test_confluent_kafka.py compat_tests/test_aiokafka.py; \
	part compat $(BIN)/python -m pytest compat_tests -n $(COMPAT_PROCESSES) $(BY_FILES) $(ARGS); \
	part spark $(BIN)/python -m pytest spark_it/tests -n 2 $(BY_FILES) $(ARGS); \
	report_parts

test-long: compile $(VENV)/.installed-spark ## everything, with 200 rounds of SIGKILL under load and bad fields in every version
	@$(PARTS); $(LINT); \
	part lint lint; \
	part set-up $(BIN)/python -m compat_tests.setup; \
	part unit $(BIN)/python -m pytest tests -n auto --dist worksteal $(ARGS); \
	part crashes $(BIN)/python -m tests.log.crashes --seeds 20000; \
	part damage $(BIN)/python -m tests.simulation.damage --rounds 50; \
	part quorum $(BIN)/python -m tests.simulation.raft_seeds --seeds 10000; \
	part replicas $(BIN)/python -m tests.simulation.replication_seeds --first 0 --seeds 10000 --all; \
	part large $(BIN)/python -m tests.simulation.large_cluster --brokers 100 --partitions 100000; \
	part fuzz $(BIN)/python -m tests.fuzz --inputs 5000000; \
	part logins $(BIN)/python -m tests.fuzz --targets logins --inputs 10000000; \
	part atheris $(BIN)/python -m tests.fuzz --engine atheris --inputs 500000; \
	part planted $(BIN)/python -m tests.planted; \
	part seeds $(BIN)/python -m tests.simulation.planted_seeds; \
	part rounds $(BIN)/python -m compat_tests.rounds --rounds 800; \
	part cuts $(BIN)/python -m compat_tests.rounds --network best --rounds 200; \
	part compat $(BIN)/python -m pytest compat_tests --rounds 200 --whole-suites --every-version --timeout 3600 $(ARGS); \
	part spark $(BIN)/python -m pytest spark_it/tests --whole-suites $(ARGS); \
	report_parts

fresh: $(VENV)/.installed-spark ## remove what earlier runs downloaded and built outside of this folder
	$(BIN)/python -m compat_tests.setup --fresh

bench: compile $(VENV)/.installed-test $(VENV)/.installed-spark ## pykafkad and a real Kafka side by side
	$(BIN)/python -m compat_tests.setup
	$(BIN)/python -m tests.bench $(ARGS)

pipeline: compile $(VENV)/.installed-spark ## the Spark pipeline on real data, against a broker that it starts
	$(BIN)/python -m spark_it.pipeline $(ARGS)

readme: compile ## update the tables in docs/ from the code's own tables
	$(BIN)/python -m pykafkad describe-apis --markdown --into docs/apis.md
	$(BIN)/python -m pykafkad describe-config --markdown --into docs/settings.md

# Only this target uses uv. It writes no address of a registry into the locks.
LOCK = .cache/lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-config \
	--no-emit-index-url --no-emit-find-links --quiet pyproject.toml requirements/build.in

.cache/lock/bin/uv:
	python="$$($(FIND_PYTHON))"; "$$python" -m venv .cache/lock
	.cache/lock/bin/pip install --quiet uv

lock: .cache/lock/bin/uv ## update requirements/*.txt from pyproject.toml (ARGS=--upgrade for newer versions)
	$(LOCK) --extra cli -o requirements/base.txt $(ARGS)
	$(LOCK) --extra test -c requirements/base.txt -o requirements/test.txt $(ARGS)
	$(LOCK) --extra gssapi -c requirements/base.txt -o requirements/gssapi.txt $(ARGS)
	$(subst pyproject.toml requirements/build.in,requirements/gssapi_build.in,$(LOCK)) -o requirements/gssapi_build.txt $(ARGS)
	$(LOCK) --extra test --extra spark -c requirements/test.txt -o requirements/spark.txt $(ARGS)

clean: ## remove what was installed and compiled in this folder; data stays
	rm -rf $(VENV) .cache artifacts build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
