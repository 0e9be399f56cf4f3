"""Names that other people's scripts rely on: files, keys of the JSON, attributes. Changing one means a new format."""

import json
import os

import h5py
import numpy as np
import pytest

from kernelmap import discover, load_model, read_measurements
from kernelmap.discovery import FORMAT
from processes import python


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A user's file: two inputs on a mesh, a kernel exp(-r) of radius 11."""
    path = tmp_path_factory.mktemp("mine") / "mine.npz"
    dx, count = 0.1, 110
    x = dx * np.arange(-300, 301)
    u = np.stack([np.sin(x) + np.cos(2.3 * x), np.exp(-(x**2))])
    r = dx * np.arange(1, count + 1)
    f = np.full_like(u, np.nan)
    for j in range(count, len(x) - count, 9):
        token = u[:, j + 1 : j + count + 1] + u[:, j - count : j][:, ::-1] - 2 * u[:, [j]]
        f[:, j] = token @ np.exp(-r) * dx
    np.savez(path, x=x, u=u, f=f, radius=dx * count)
    return path


def test_the_command_writes_these_names(mine, tmp_path, kernelmap):
    code, _, err = kernelmap("discover", mine, "--out", tmp_path / "out", "--json", tmp_path / "found.json")
    assert code == 0, err
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["format"] == FORMAT == 1
    assert {"format", "kernel", "std", "y", "x", "diagnostics", "check"} <= found.keys()
    assert np.shape(found["kernel"]) == np.shape(found["std"]) == (1, 110)
    assert np.shape(found["y"]) == (110, 1)
    assert np.shape(found["x"]) == (1, 1)
    assert {"pairs", "error", "coverage", "rms_standardised_residual", "classical_error"} <= found["check"].keys()
    assert all({"seen", "cause", "remedy"} <= diagnostic.keys() for diagnostic in found["diagnostics"])
    assert {"discovery.h5", "report.html", "kernel.csv"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert (tmp_path / "out" / "kernel.csv").read_text().startswith("r,K,std\n")
    with h5py.File(tmp_path / "out" / "discovery.h5") as file:
        assert file.attrs["format"] == FORMAT
        np.testing.assert_allclose(file["std"][()], found["std"])  # pyright: ignore


def test_python_has_these_names(mine):
    model, about = load_model("radial")
    context = read_measurements(mine).context
    found = discover(model, context, {"model": "radial"})
    assert about["problem"] == "radial"
    assert found.kernel.values.shape == found.std.shape == (1, 110)
    assert isinstance(found.diagnostics, tuple)
    mean, std = found.predict(context.U[:, :3])
    assert mean.shape == std.shape == (1, 3)
    assert context.operator == "radial"
    assert context.name(0) == "pair 0 (input = 0, x = -19)"


NEEDING_MECHANICS = [
    ["bench", "mechanics", "--repeats", "1"],
    ["evaluate", "mechanics", "mechanics", "--d", "40", "--specimens", "1"],
    ["generate", "mechanics", "--out", "x.h5", "--specimens", "1"],
    ["reproduce", "figure-stiffness", "--out", "x"],
]


def test_without_an_extra_a_sentence_names_it(tmp_path, monkeypatch):
    """As installed without extras: the packages cannot be imported, here nor in processes that are started."""
    for name in ("mlxtend", "joblib"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('not installed', name={name!r})")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    code = "import sys; from kernelmap.cli.main import run\n"
    code += f"for words in {NEEDING_MECHANICS}: print(run(words), file=sys.stderr)"
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert said[1::2] == ["2"] * len(NEEDING_MECHANICS)
    assert all(line.startswith("error: ") and "pip install 'kernelmap[mechanics]'" in line for line in said[::2])
