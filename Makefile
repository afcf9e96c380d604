# Every target sets up .venv first if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed-base
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
RECIPE_KEYS := docs/reference/recipe-keys.md

.PHONY: demo test test-slow test-install lint docs docs-reference wheel bench clean

demo: $(BASE) ## show every model that ships, and write figures to demo/; installs no PyTorch
	$(BIN)/sightline demo

test: $(INSTALLED) lint ## lint, types and the quick tests, a file to each core at a time
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile

test-slow: $(INSTALLED) ## the tests that take minutes or need ../shared/data
	$(BIN)/pytest -m slow

test-install: $(INSTALLED) ## the built wheel in a fresh environment without PyTorch
	$(BIN)/pytest -m slow tests/test_base_install.py tests/newcomer/test_fresh.py

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

docs-reference: $(INSTALLED) ## generate the reference of recipe keys from the dataclasses
	$(BIN)/python tools/recipe_keys.py > $(RECIPE_KEYS).new
	mv $(RECIPE_KEYS).new $(RECIPE_KEYS)

docs: $(INSTALLED) ## the documentation as a site, in site/, with the API from the docstrings
	$(PIP) --quiet -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(BASE) ## dist/*.whl, to install elsewhere
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .

bench: $(INSTALLED) ## every benchmark, in one run on this machine
	$(BIN)/python -m benchmarks

# Reinstalled only when the requirements change, so that the targets work offline afterwards.
$(BASE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Sightline needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@echo "Setting up $(VENV) (once)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[audio,video]'
	@touch $@

$(INSTALLED): $(BASE)
	@echo "Installing PyTorch and the test tools into $(VENV) (once; some minutes)"
	$(PIP) -e '.[train,meteor,dev]'
	@touch $@

clean:
	rm -rf $(VENV) runs demo site .pytest_cache .mypy_cache .ruff_cache
