"""The page "Train on your own systems" is true: its examples run, and its commands do what it says."""

import re
import shlex
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "own-systems.md"


def test_the_page_is_true(kernelmap, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    names: dict = {}
    *writing, python = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for example in writing:
        exec(example, names)
    for line in re.findall(r"^    kernelmap (.*)$", page, re.MULTILINE):
        code, _, err = kernelmap(*shlex.split(line))
        assert code == 0, (line, err)
    with np.load("pred.npz") as predicted:
        error = np.linalg.norm(predicted["mean"] - names["f"][0]) / np.linalg.norm(names["f"][0])
        assert predicted["std"].shape == (100, 21)
    assert error < 0.2
    exec(python, names)
    assert len(names["errors"]) == 5
    assert max(one["kernel_error"] for one in names["errors"].values()) < 0.5
    assert names["found"].check.error < 0.2
    assert names["mean"].shape == names["std"].shape == (21, 3)
