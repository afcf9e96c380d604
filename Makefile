# `make demo` and `make test` are all the set-up there is: each makes .venv if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint bench clean

demo: $(INSTALLED) ## describe with the model that ships, write the figures, tell where they are
	$(BIN)/python -m sightline.commands.demo

test: $(INSTALLED) lint ## lint, types and the whole quick test suite
	$(BIN)/pytest

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED) ## every benchmark, in one run on this machine
	$(BIN)/python -m benchmarks

# Installed again only when what is asked for changes, so both targets work offline afterwards.
$(INSTALLED): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; a few minutes with an empty pip cache)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[train,meteor,dev]'
	@touch $@

clean:
	rm -rf $(VENV) runs demo .pytest_cache .mypy_cache .ruff_cache
