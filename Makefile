# One line per target: `make help`. Needs only Python >= 3.11 and pip; no apt, no Docker, no GPU, no API key.
SHELL := /bin/bash -eu -o pipefail
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALL := $(PIP) install --quiet --constraint constraints.txt --editable
NAMES ?=
COVERAGE ?= 90
LLM ?= .aftercheck/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf

.PHONY: help install demo test lint mypy types bench faults test-llm docs alerts alert-rules prove-alert false-pages alert-idle first-alert train clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(STAMP) ## Make .venv with everything that the tests need

demo: $(VENV)/.demo ## Run the main job: real answers in, verdicts and gauges out
	@$(BIN)/aftercheck demo

test: lint mypy ## Lint, types, then unit, integration and end-to-end tests with the coverage gate
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE)

lint: $(STAMP) ## ruff and the import rules
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/lint-imports --no-logo > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }

mypy: $(STAMP)
	@$(BIN)/mypy --no-error-summary

types: mypy ## mypy strict and pyright strict (pyright fetches itself from npm once)
	@$(BIN)/pyright > $(VENV)/pyright.log || { cat $(VENV)/pyright.log; exit 1; }

bench: $(STAMP) ## Measure; writes benchmarks/results/latest.json and latest.md (NAMES="exporter demo" for some)
	@$(BIN)/python -m benchmarks $(NAMES)

faults: $(STAMP) ## Real processes with injected faults: kill -9, restarts, black holes (minutes)
	@$(BIN)/python -m pytest -m faults tests/faults

test-llm: $(STAMP) ## A real 1.5 B model as the judge (1.1 GB once, minutes); the default tests do without it
	@$(PIP) install --quiet xllamacpp==2026.10.11549
	@$(BIN)/python tests/llm/fetch.py $(LLM)
	@AFTERCHECK_TEST_GGUF=$(LLM) $(BIN)/python -m pytest -m llm -s tests/llm

docs: $(STAMP) ## Write docs/reference from the code
	@$(BIN)/python docs/generate.py

alerts: $(STAMP) ## Write alert rules, runbooks and Grafana dashboards from the code
	@$(BIN)/python deploy/generate.py
	@$(BIN)/python -m grafana

alert-rules: $(STAMP) ## promtool: every rule fires, stays silent and resolves when it should (Debian's prometheus)
	@"$$(deploy/prometheus/binaries.sh)/promtool" check rules deploy/prometheus/rules/*.yml deploy/prometheus/disabled/*.yml
	@$(BIN)/python -m pytest -q tests/unit/oncall tests/integration/oncall

prove-alert: $(STAMP) ## Time the page end to end: real answers hallucinate, PagerDuty's stand-in is paged (15 minutes)
	@$(BIN)/python -m benchmarks alert_proof

false-pages: $(STAMP) ## Simulate 30 healthy days through the page's arithmetic, and the time to fire (minutes)
	@$(BIN)/python -m benchmarks alert_false_pages
	@$(BIN)/python docs/generate.py

alert-idle: $(STAMP) ## Weigh the idle chain: exporter, Prometheus, Alertmanager
	@$(BIN)/python -m benchmarks alert_idle

first-alert: $(STAMP) ## Follow docs/how-to/first-alert.md by machine: a page comes and goes (ten minutes)
	@$(BIN)/python -m pytest -q -s -m slow tests/e2e/test_first_alert.py

train: $(STAMP) ## Train the verifier (hours on two cores; data from AFTERCHECK_DATA)
	@$(BIN)/python -m training

clean: ## Remove the virtual environment and the caches; data in .aftercheck stays
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "aftercheck needs Python 3.11 or newer; this is %d.%d. Fix: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo: $(VENV)/.python pyproject.toml constraints.txt
	@echo 'Installing what the demo needs (once) ...' >&2
	@$(INSTALL) '.[demo]'
	@touch $@

$(STAMP): $(VENV)/.demo pyproject.toml constraints.txt
	@echo 'Installing what the tests need (once) ...' >&2
	@$(INSTALL) '.[all]' --group dev
	@touch $@
