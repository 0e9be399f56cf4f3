# `make demo` and `make test` build the virtual environment they need, with every version pinned.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint style docs clean

demo: .venv/run.stamp
	$(BIN)/kernelmap demo --out kernelmap-demo

# Types are checked beside the tests: that takes half a minute of one processor.
test: .venv/test.stamp style
	$(BIN)/pyright --pythonpath $(BIN)/python & types=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal; tests=$$?; \
	wait $$types && exit $$tests

docs: .venv/docs.stamp
	# Small matrices: more threads would wait for each other.
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/; look at it with $(BIN)/python -m http.server --directory site"

lint: style
	$(BIN)/pyright --pythonpath $(BIN)/python

style: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.venv/run.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	# torch first and by its exact version: a range may pull the much larger CUDA build.
	$(INSTALL) "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(INSTALL) --editable .
	touch $@

.venv/test.stamp: .venv/run.stamp
	$(INSTALL) --editable ".[test]"
	touch $@

.venv/docs.stamp: .venv/run.stamp
	$(INSTALL) --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv kernelmap-demo site
