"""`kernelmap predict`: responses to new inputs of every layout, in the shape that f has or would have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import config
from scipy.io import savemat

from kernel1d_systems import model as kernel1d
from kernel1d_systems import waves
from kernelmap import InputError, discover, load_discovery, load_model, read_measurements
from kernelmap.io import read_inputs
from test_own_systems import X, Y, family
from test_saved_discoveries import flow, specimen


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def mesh(seed: int = 0) -> dict[str, Any]:
    """Two inputs on a mesh of 201 points and their responses to exp(-r), r <= 3."""
    x, k = np.linspace(-5, 5, 201), np.arange(1, 61)
    rng = np.random.default_rng(seed)
    waves = np.sin(rng.uniform(0.5, 3, (6, 1)) * x + rng.uniform(0, 6, (6, 1)))
    u = rng.normal(size=(2, 6)) @ waves
    f = np.full(u.shape, np.nan)
    for j in range(60, 141):
        f[:, j] = 0.05 * (u[:, j + k] + u[:, j - k] - 2 * u[:, [j]]) @ np.exp(-0.05 * k)
    return {"x": x, "u": u, "f": f, "radius": np.array(3.0)}


def plane(context, components: int) -> dict[str, Any]:
    axis = np.unique(context.y.points[:, 0].numpy())
    shape = (context.d, components, len(axis), len(axis))
    u, f = (values.numpy().T.reshape(shape) for values in (context.U, context.F))
    return {"x1": axis, "x2": axis, "u": u if components > 1 else u[:, 0], "f": f if components > 1 else f[:, 0]}


def integral() -> dict[str, Any]:
    one = family(1)
    return {"y": Y, "x": X, "u": one["u"][0], "f": one["f"][0]}


def tokens() -> dict[str, Any]:
    r = 0.25 * np.arange(1, 45)
    U = np.random.default_rng(0).normal(size=(44, 40))
    return {"U": U, "F": 0.25 * np.exp(-r) @ U, "r": r}


CASES = {
    "mesh": ("radial", mesh),
    "tokens": ("radial", tokens),
    "darcy": ("darcy", lambda: plane(flow(), 1)),
    "mechanics": ("mechanics", lambda: plane(specimen(), 2)),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A file, the discovery saved from it, and the discovery itself."""
    model, entries = CASES[request.param]
    folder = tmp_path_factory.mktemp("predict")
    np.savez(folder / "measured.npz", **entries())
    found = discover(load_model(model)[0], read_measurements(folder / "measured.npz").context)
    found.save(folder / "discovery.h5")
    return folder, entries(), found


def test_inputs_whose_responses_overflow_are_refused():
    context, _ = waves(30)
    found = discover(kernel1d(), context)
    with pytest.raises(InputError, match="responses to these inputs are no numbers"):
        found.predict(1e300 * context.U)


def test_from_the_command_line_as_from_python(case, kernelmap, tmp_path):
    folder, entries, found = case
    target = "F" if "F" in entries else "f"
    new = {name: values for name, values in entries.items() if name != target}
    np.savez(tmp_path / "new.npz", **new)
    code, printed, err = kernelmap(
        "predict", folder / "discovery.h5", tmp_path / "new.npz", "--out", tmp_path / "p.npz"
    )
    assert code == 0, err
    with np.load(tmp_path / "p.npz") as predicted:
        mean, std = predicted["mean"], predicted["std"]
    assert mean.shape == std.shape == entries[target].shape
    assert str(mean.shape) in printed
    measured = ~np.isnan(entries[target])
    expected = found.predict(read_measurements(folder / "measured.npz").context.U)
    size = np.nanmax(np.abs(mean))
    for ours, theirs in zip((mean, std), expected, strict=True):
        theirs = theirs.numpy() if target == "F" else theirs.numpy().T
        np.testing.assert_allclose(ours[measured], theirs.ravel(), rtol=1e-10, atol=1e-10 * size)
    error = np.abs(mean - entries[target])[measured]
    assert np.mean(error <= 1.96 * std[measured] + 1e-9) > 0.8


def test_csv_and_npz_agree(case, kernelmap, tmp_path):
    folder, *_ = case
    for out in ("p.npz", "p.csv"):
        assert kernelmap("predict", folder / "discovery.h5", folder / "measured.npz", "--out", tmp_path / out)[0] == 0
    table = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True)
    with np.load(tmp_path / "p.npz") as predicted:
        places = tuple(table[f"axis{axis}"].astype(int) for axis in range(predicted["mean"].ndim))
        np.testing.assert_array_equal(table["mean"], predicted["mean"][places])
        np.testing.assert_array_equal(table["std"], predicted["std"][places])


def test_a_mesh_is_predicted_wherever_u_is_known(tmp_path):
    """Where tokens are all zero the response is zero too; near the ends nothing is known, unless u is zero outside."""
    entries = mesh()
    np.savez(tmp_path / "mesh.npz", **entries)
    found = discover(load_model("radial")[0], read_measurements(tmp_path / "mesh.npz").context)
    flat: dict[str, Any] = {"x": entries["x"], "u": np.where(np.abs(entries["x"]) < 0.5, 1.0, 0.0)}
    np.savez(tmp_path / "flat.npz", **flat)
    inputs = read_inputs(tmp_path / "flat.npz", found.kernel)
    mean = inputs.laid_out(found.predict(inputs.U).mean)
    assert mean.shape == (201,)
    assert np.isnan(mean).tolist() == [not 60 <= j <= 140 for j in range(201)]
    np.savez(tmp_path / "flat.npz", **flat, outside="zero")
    inputs = read_inputs(tmp_path / "flat.npz", found.kernel)
    mean = inputs.laid_out(found.predict(inputs.U).mean)
    assert mean[0] == mean[-1] == 0
    assert not np.isnan(mean).any()


def test_rows_of_an_integral_and_a_saved_context(tmp_path):
    from kernelmap.core.domain import ContextShape
    from kernelmap.maps import NAO, NAOOptions

    entries = integral()
    np.savez(tmp_path / "one.npz", **entries)
    context = read_measurements(tmp_path / "one.npz").context
    model = NAO(ContextShape.of(context.select(torch.arange(25))), NAOOptions(dk=2))
    model.standardise(context.U, context.F)
    found = discover(model, context)
    mean, std = found.predict(context.U)
    for name, pairs in (("npz", entries), ("mat", entries), ("no f", {"y": Y, "u": entries["u"]})):
        path = tmp_path / f"new.{'mat' if name == 'mat' else 'npz'}"
        savemat(path, pairs) if name == "mat" else np.savez(path, **pairs)
        inputs = read_inputs(path, found.kernel)
        assert inputs.shape == (100, 11)
        np.testing.assert_allclose(inputs.laid_out(mean), mean.numpy().T)
    context.save(tmp_path / "context.h5")
    inputs = read_inputs(tmp_path / "context.h5", found.kernel)
    np.testing.assert_allclose(inputs.laid_out(std), std.numpy())


BAD = {
    "another step": (mesh() | {"x": np.linspace(-4, 4, 201)}, r"steps of 0\.05, the mesh 0\.04; interpolate u"),
    "too short": ({"x": mesh()["x"][:99], "u": mesh()["u"][:, :99]}, "within 3 on both sides of a point: give u"),
    "NaN": (mesh() | {"u": np.full((2, 201), np.nan)}, r"u holds 402 value\(s\) that are NaN"),
    "another grid": ({"U": tokens()["U"], "r": tokens()["r"]}, "60 values on 60 points, got 44 on 44"),
    "other points": ({"U": np.ones((60, 3)), "r": 0.06 * np.arange(1, 61)}, "on other points than the kernel"),
    "swapped axes": (mesh() | {"u": mesh()["u"].T}, "axes seem swapped: mesh points go last"),
    "no inputs": ({"x": mesh()["x"]}, "expected the entries of one layout"),
    "several systems": ({"y": Y, "u": family(2)["u"]}, "u holds 2 systems, but a discovery is of one"),
    "a plane": (plane(flow(), 1), "60 values on 60 points, got 121 on 121"),
}


@pytest.fixture(scope="module")
def radial_discovery(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("radial")
    np.savez(folder / "mesh.npz", **mesh())
    found = discover(load_model("radial")[0], read_measurements(folder / "mesh.npz").context)
    found.save(folder / "discovery.h5")
    return folder / "discovery.h5"


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said(name, radial_discovery, kernelmap, tmp_path):
    entries, sentence = BAD[name]
    np.savez(tmp_path / "new.npz", **entries)
    with pytest.raises(InputError, match=rf"new\.npz: .*{sentence}"):
        read_inputs(tmp_path / "new.npz", load_discovery(radial_discovery).kernel)
    code, _, err = kernelmap("predict", radial_discovery, tmp_path / "new.npz", "--out", tmp_path / "p.npz")
    assert (code, err.startswith("error: ")) == (2, True)
    assert not (tmp_path / "p.npz").exists()


def test_what_predict_refuses(radial_discovery, kernelmap, tmp_path):
    np.savez(tmp_path / "new.npz", **mesh())
    assert ".npz or .csv" in kernelmap("predict", radial_discovery, tmp_path / "new.npz", "--out", "p.txt")[2]
    assert "not a discovery" in " ".join(
        kernelmap("predict", _kernel_file(tmp_path), tmp_path / "new.npz", "--out", "p.npz")[2].split()
    )
    found = load_discovery(radial_discovery)
    with pytest.raises(InputError, match="not of a radial mesh"):
        read_inputs(tmp_path / "new.npz", _plane_kernel())
    with pytest.raises(InputError, match=r"finite with shape \(60, n\)"):
        found.predict(torch.ones(59, 2, dtype=torch.float64))


def _plane_kernel():
    from kernelmap.core.grids import rectangle
    from kernelmap.core.kernel import Kernel

    return Kernel(torch.ones(9, 9, dtype=torch.float64), rectangle(3), rectangle(3))


def _kernel_file(folder: Path) -> Path:
    _plane_kernel().save(folder / "kernel.h5")
    return folder / "kernel.h5"
