# One line a target; `make help` lists them.
PY := .venv/bin/python
export PYTHONPATH := $(CURDIR)

.PHONY: lint unit
lint:
	.venv/bin/ruff check fabric tests && .venv/bin/ruff format --check fabric tests && .venv/bin/mypy -p fabric && .venv/bin/lint-imports
unit:
	$(PY) -m pytest tests/unit
