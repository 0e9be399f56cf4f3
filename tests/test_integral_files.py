"""`operator = "integral"` end to end: a file, its kernel, the report, predictions for new inputs."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelmap import load_discovery, read_measurements
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.report import render
from kernelmap.report.results import default_model
from test_generic_integral import green, smooth_inputs, string


@pytest.fixture(scope="module")
def loads() -> dict[str, np.ndarray]:
    context = string(24, noise=0.01, offset=0.5)
    y = context.y.points[::2, 0].numpy()
    return {"y": context.y.points[:, 0].numpy(), "x": y, "u": context.U.mT.numpy(), "f": context.F[::2].mT.numpy()}


def test_from_a_file_to_the_kernel_and_to_predictions(tmp_path, kernelmap, loads):
    np.savez(tmp_path / "loads.npz", **loads, operator="integral")
    code, out, err = kernelmap("discover", tmp_path / "loads.npz", "--out", tmp_path / "found")
    assert code == 0, err
    assert "error on pairs kept back" in out
    kernel = np.load(tmp_path / "found" / "kernel.npz")
    truth = green(loads["x"], loads["y"])
    assert np.linalg.norm(kernel["K"] - truth) < 0.1 * np.linalg.norm(truth)
    assert np.mean(np.abs(kernel["K"] - truth) < 1.96 * kernel["std"]) > 0.85
    report = (tmp_path / "found" / "report.html").read_text()
    for title in ("The kernel as a map", "Cuts", "Without input"):
        assert title in report

    new = smooth_inputs(loads["y"], 7, 0.1, seed=5).T
    np.savez(tmp_path / "new.npz", y=loads["y"], x=loads["x"], u=new)
    assert (
        kernelmap("predict", tmp_path / "found" / "discovery.h5", tmp_path / "new.npz", "--out", tmp_path / "p.npz")[0]
        == 0
    )
    predicted = np.load(tmp_path / "p.npz")
    assert predicted["mean"].shape == (7, 51)
    size = float(string(24).F.std())
    f = new @ (np.gradient(loads["y"])[:, None] * truth.T) + 0.5 * size * np.cos(2 * loads["x"])
    assert np.linalg.norm(predicted["mean"] - f) < 0.02 * np.linalg.norm(f)


def test_a_saved_posterior_is_the_same(tmp_path, loads):
    np.savez(tmp_path / "loads.npz", **loads)
    context = read_measurements(tmp_path / "loads.npz").context
    found = discover(load_model("integral")[0], context)
    found.save(tmp_path / "found.h5")
    saved = load_discovery(tmp_path / "found.h5")
    U = context.U[:, :3]
    for ours, theirs in zip(saved.predict(U), found.predict(U), strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(saved.posterior.std, found.std)


def test_no_homogeneous_part_no_picture():
    found = discover(load_model("integral")[0], string(24, noise=0.01))
    assert "Without input" not in render(found)


def test_the_model_of_every_operator(tmp_path, loads):
    plane = {"x1": np.arange(3.0), "x2": np.arange(4.0)}
    cases = {
        "integral": loads,
        "darcy": plane | {"u": np.ones((5, 3, 4)), "f": np.ones((5, 3, 4))},
        "mechanics": plane | {"u": np.ones((5, 2, 3, 4)), "f": np.ones((5, 2, 3, 4))},
        "kernel1d": {"U": np.eye(5), "F": np.ones(5), "r": np.arange(1, 6)},
    }
    for model, entries in cases.items():
        np.savez(tmp_path / "mine.npz", **entries)
        assert default_model(read_measurements(tmp_path / "mine.npz").context) == model


@pytest.mark.parametrize(
    ("place", "shape"), [((3, 5), (23, 51)), ((slice(None), 5), (24, 50)), ((slice(9), 5), (15, 51))]
)
def test_missing_values_are_refused_with_the_lines_that_leave_them_out(
    tmp_path, monkeypatch, kernelmap, loads, place, shape
):
    """The pairs, or the points of x that no pair has."""
    monkeypatch.chdir(tmp_path)
    f = loads["f"].copy()
    f[place] = np.nan
    np.savez(tmp_path / "mine.npz", **(loads | {"f": f}))
    code, _, said = kernelmap("check", "mine.npz")
    assert code == 2
    assert "takes no missing values" in said
    exec("\n".join(line[4:] for line in said.splitlines() if line.startswith("    ")))
    assert read_measurements("mine-mended.npz").context.F.mT.shape == shape


def test_values_missing_here_and_there_are_refused_alone(tmp_path, kernelmap, loads):
    f = loads["f"].copy()
    f[::2, ::3] = f[1::2, 1::3] = np.nan
    np.savez(tmp_path / "mine.npz", **(loads | {"f": f}))
    code, _, said = kernelmap("check", tmp_path / "mine.npz")
    assert code == 2
    assert "These lines" not in said


def test_few_pairs_of_many_points_are_no_outliers():
    """Of 404 values one is three standard deviations off, as it should be; of four pairs none would be."""
    found = discover(load_model("integral")[0], string(4, noise=0.01))
    assert [d.seen for d in found.diagnostics if "what the others say" in d.seen] == []


def test_a_wrong_pair_is_named():
    """By all its values together, which say more than the largest of them: that is 10.6 standard deviations off."""
    context = string(50, noise=0.01)
    F = context.F.clone()
    F[:, 7] *= 10
    found = discover(load_model("integral")[0], replace(context, F=F))
    (said,) = (d.seen for d in found.diagnostics if "what the others say" in d.seen)
    size = re.search(r"The response of pair 7 is (\d+) standard deviations", said)
    assert size
    assert float(size[1]) > 15
