# make demo   the console on the embedded demo host        make test   all tests, with what they need
# make check  format, lint, types, import rules            make wheel  dist/ddtui-*.whl

PYTHON ?= python3
PYTEST_ARGS ?= -n auto --dist loadfile
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test check wheel snapshots screenshots clean

demo: $(VENV)/installed
	@$(BIN)/ddtui demo

test: $(VENV)/installed-dev
	@tests/install-testhost-packages
	@$(BIN)/pytest $(PYTEST_ARGS)

check: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=ddtui/demo/standin $(BIN)/mypy --config-file= --strict --python-version 3.10 -p sglang
	$(BIN)/lint-imports

wheel: $(VENV)/installed-dev
	$(BIN)/python -m build --wheel

snapshots: $(VENV)/installed-dev
	$(BIN)/pytest tests/console -k snapshot --snapshot-update

screenshots: $(VENV)/installed-dev
	$(BIN)/pytest -q -n 2 tests/console/test_every_look.py --snapshot-update
	DDTUI_SCREENSHOTS=docs $(BIN)/pytest -q tests/console/test_picture.py tests/console/test_docs.py

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "ddtui needs Python 3.11 or newer, and $(PYTHON) is older: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) has no venv module: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	@$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(BIN)/pip install --quiet --group dev
	@touch $@
