# Everything from a fresh clone, on a machine with Python 3.11 or newer and make:
#   make rollouts   a real small model plays `workplace` and `counter`; lines on disk, a table, exit 0
#   make test       style, types and the whole test suite
# Both set up .venv first, once; it is brought up to date when pyproject.toml or the pinned versions change.
NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for each in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$each" -c "$(NEW_ENOUGH)" 2>/dev/null && echo "$$each" && break; done)
PIP := .venv/bin/python -m pip -qq --disable-pip-version-check
PINS := requirements/ci.txt

.PHONY: help rollouts test check clean
.DELETE_ON_ERROR:

help:
	@sed -n '2,4s/^# *//p' Makefile

# Short answers and few steps: minutes on two cores. A model of this size says its first call again and again, so that one step of
# `counter` is worth as much as twenty.
SHORT := --fresh --concurrency 4 model_interface.options.max_output_tokens=128

rollouts: .venv/.local
	@.venv/bin/trivium models pull
	@.venv/bin/trivium collect workplace --limit 4 --output results/workplace.jsonl $(SHORT) agent_server.max_steps=3
	@.venv/bin/trivium collect counter --output results/counter.jsonl $(SHORT) agent_server.max_steps=1

test: .venv/.dev
	@VIRTUAL_ENV= scripts/check
	@VIRTUAL_ENV= scripts/test

check: .venv/.dev
	@VIRTUAL_ENV= scripts/check

clean:
	rm -rf .venv build dist

.venv/.made:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv || \
		{ rm -rf .venv; echo "make: $(PYTHON) cannot make a virtual environment (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@touch $@

.venv/.local: .venv/.made pyproject.toml $(PINS)
	@echo "installing trivium with the local model into .venv"
	@$(PIP) install -c $(PINS) -e '.[local]'
	@touch $@

.venv/.dev: .venv/.made pyproject.toml $(PINS)
	@echo "installing trivium for development into .venv"
	@$(PIP) install -c $(PINS) -e '.[dev]'
	@touch $@
