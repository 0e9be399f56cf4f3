"""The Python reference: the examples in its docstrings run, and print what stands there."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["core.context", "core.kernel", "discovery.discover", "io.measurements"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(f"kernelmap.{name}"))
    assert done.attempted > 3
    assert done.failed == 0
