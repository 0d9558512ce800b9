# Needs make and Python 3.11 or newer; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
# Test processes, each with a Spark of its own.
WORKERS ?= 2
# For each target of `make fuzz`.
SECONDS ?= 1200

.DEFAULT_GOAL := help
.PHONY: help demo test lint fuzz soak bench bench-spine bench-state bench-log bench-log-spark bench-memory cluster kafka clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: .venv/.java ## run the demonstration
	@$(BIN)/penstock demo

test: .venv/.java ## run all tests but the long ones, which CI runs too
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not long'

lint: .venv/.package ## check style and types
	@$(BIN)/ruff check
	@$(BIN)/mypy --strict src

fuzz: .venv/.package ## fuzz everything that reads what others wrote, two targets at once: SECONDS=1200 for each
	@$(BIN)/python -m tests.fuzz all --seconds $(SECONDS) --at-once 2

soak: .venv/.java ## kill a stream fifty times and a log's server ten thousand times, and look whether anything is lost
	@PENSTOCK_KILLS=50 $(BIN)/pytest tests/soak
	@PENSTOCK_LOG_SEEDS=20000 $(BIN)/pytest -n $(WORKERS) tests/log/test_simulation.py
	@PENSTOCK_LOG_KILLS=10000 $(BIN)/pytest -n $(WORKERS) tests/log/test_kill.py
	@tail -qn 1 target/kills/*.txt

bench: .venv/.java ## run EIPBench on Penstock and on other systems: a night, or OPTIONS=--quick for five minutes
	@$(BIN)/penstock bench run $(OPTIONS)

bench-spine: .venv/.java ## measure the main path: messages per second and latency
	@$(BIN)/python -m penstock.formats.compiled.compilation
	@$(BIN)/python -m penstock.bench.spine

bench-state: .venv/.java ## measure steps that remember: a hundred thousand to ten million keys
	@$(BIN)/python -m penstock.bench.state

bench-log: .venv/.java ## measure the message log: the paper's figures, and NATS, Redis, RabbitMQ and Kafka beside it
	@$(BIN)/python -m penstock.bench.log $(OPTIONS)

bench-log-spark: .venv/.java ## measure Spark's ends of the message log: reading against Parquet, and a route from log to log
	@$(BIN)/python -m penstock.formats.compiled.compilation
	@$(BIN)/python -m penstock.bench.log spark $(OPTIONS)

bench-memory: .venv/.java ## run a stream for ten minutes and watch its memory
	@$(BIN)/python -m penstock.bench.memory

cluster: .venv/.java ## start a Spark master and two workers on this machine; scripts/cluster stop ends them
	@scripts/cluster start

kafka: .venv/.java ## start a Kafka broker on this machine, at port 9092; scripts/kafka stop ends it
	@scripts/kafka start

clean: ## remove .venv and all that was made from the sources
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist target
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Penstock needs Python 3.11 or newer. If you have one by another name: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.requirements: requirements.lock | .venv/bin/python
	@echo 'Installing what requirements.lock lists; the first time this takes a minute or two.'
	@$(BIN)/pip install --quiet --disable-pip-version-check --use-pep517 --require-hashes -r requirements.lock
	@touch $@

.venv/.package: pyproject.toml .venv/.requirements
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/.java: requirements-java.lock scripts/ensure_java .venv/.package
	@scripts/ensure_java
	@touch $@
