# Every target makes .venv first if need be; a second run installs nothing. PYTHON=python3.12 chooses the interpreter.
SHELL := bash
export VENV ?= .venv
BIN := $(VENV)/bin
PAGE := build/demo.html

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint cases bench format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv:  ## the environment that the other targets use
	@bash scripts/bootstrap.sh

demo: venv  ## a real training script that goes wrong: the cause, the line, the fix, and a report page
	@mkdir -p $(dir $(PAGE)) && rm -f $(PAGE)
	@$(BIN)/osler run --html $(PAGE) examples/first_nan.py || [ -s $(PAGE) ]
	@[ -s $(PAGE) ] && echo && echo "The report as a page: $(CURDIR)/$(PAGE)"

test: lint  ## everything that is checked: format, lint, types, layers, tests
	$(BIN)/python -m pytest -n 2

lint: venv  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

cases: venv  ## every fault that osler knows, reproduced, with its clean twin
	$(BIN)/osler cases verify

bench: venv  ## what watching costs, interleaved with other tools
	$(BIN)/python benchmarks/overhead.py

format: venv  ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## caches and built files; .venv and .osler stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache lightning_logs
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
