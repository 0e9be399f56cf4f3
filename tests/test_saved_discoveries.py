"""A saved discovery predicts as it did when it was found, from the file alone, in Python and on the command line."""

import h5py
import numpy as np
import pytest
import torch

from kernelmap import Context, discover, load_discovery, load_model
from kernelmap.core.errors import InputError
from kernelmap.core.files import write_json
from kernelmap.core.grids import point as one_point
from kernelmap.core.grids import radii, rectangle
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.systems import strided_draws
from kernelmap.discovery import Discovery
from kernelmap.io import read_measurements
from kernelmap.problems.darcy import darcy
from kernelmap.problems.mechanics import bitmaps
from kernelmap.problems.mechanics.errors import solved
from kernelmap.problems.radial import radial
from mutants_of_measurements import series

N, PIXELS = 11, 6


def radial_pairs(d: int = 100) -> Context:
    systems = radial("sine").test.select(["ood1"]).with_noise(0.02, seed=1)
    return systems.batch(strided_draws(systems.pairs, d)[:1], torch.tensor([0]))[0, 0]


def flow(reverse: bool = False) -> Context:
    """Pressures to sources, or the other way round."""
    test = darcy("p-to-g", N).test
    u, f = (values[0, :25].T.contiguous() for values in (test.u, test.f))
    return Context(*((f, u) if reverse else (u, f)), rectangle(N), rectangle(N))


def specimen() -> Context:
    image = np.zeros((1, PIXELS, PIXELS), np.uint8)
    image[0, 2:4, 1:5] = 40
    systems, _ = solved(bitmaps(image), loads=24, elements=f"q1-{PIXELS}")
    return Context(systems.u[0].T.double(), systems.f[0].T.double(), systems.y, systems.x)


CASES = {
    "radial": ("radial", radial_pairs),
    "darcy": ("darcy", flow),
    "darcy, solution": ("darcy", lambda: flow(reverse=True)),
    "mechanics": ("mechanics", specimen),
    "a map without error bar": ("nao-diverse", lambda: radial_pairs(350)),
}


@pytest.fixture(scope="module", params=CASES)
def found(request) -> Discovery:
    model, pairs = CASES[request.param]
    return discover(load_model(model)[0], pairs(), {"model": model})


def test_a_loaded_discovery_predicts_the_same(found, tmp_path):
    found.save(tmp_path / "found.h5")
    loaded = load_discovery(tmp_path / "found.h5")
    U = 1.3 * found.context.U[:, :7] - found.context.U[:, 7:14]
    for ours, theirs in zip(loaded.predict(U), found.predict(U), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10 * float(found.context.F.abs().max()))
    torch.testing.assert_close(loaded.std, found.std, equal_nan=True)
    torch.testing.assert_close(loaded.kernel.values, found.kernel.values)
    assert loaded.about == found.about
    assert (loaded.noise, loaded.numbers["pairs"]) == (found.noise, found.context.d)
    assert [one["seen"] for one in loaded.diagnostics] == [one.seen for one in found.diagnostics]
    assert (loaded.check or {}).get("error") == (None if found.check is None else found.check.error)
    if isinstance(found.posterior, KernelPosterior):
        assert isinstance(loaded.posterior, KernelPosterior)
        torch.testing.assert_close(loaded.posterior.std, found.std, rtol=1e-6, atol=0.0)
    if found.hidden is not None:
        assert loaded.hidden is not None
        torch.testing.assert_close(loaded.hidden.values, found.hidden.values)
        torch.testing.assert_close(loaded.hidden.std, found.hidden.std)


def test_the_pairs_are_not_in_the_file(tmp_path):
    """Twice the pairs, the same size: what is kept is as many numbers as there are features, whatever the pairs."""
    y = radii(0.05, 220)
    U = torch.randn(220, 1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    f = (torch.exp(-2 * y.points[:, 0]) * y.weights) @ U
    model = load_model("radial")[0]
    sizes = []
    for d in (500, 1000):
        discover(model, Context(U[:, :d], f[None, :d], y, one_point())).save(tmp_path / "found.h5")
        sizes.append((tmp_path / "found.h5").stat().st_size)
    assert max(sizes) < 5e6
    assert sizes[1] < 1.1 * sizes[0]


def test_files_that_cannot_predict(tmp_path):
    y = radii(0.1, 5)
    Kernel(torch.ones(1, 5, dtype=torch.float64), y, one_point()).save(tmp_path / "kernel.h5")
    with pytest.raises(InputError, match=r"is not a discovery; give the discovery\.h5"):
        load_discovery(tmp_path / "kernel.h5")
    with h5py.File(tmp_path / "kernel.h5", "a") as file:
        file.attrs.update({"kernelmap": "discovery", "about": "{}"})
    with pytest.raises(InputError, match=r"not what predicting needs.*Discover again"):
        load_discovery(tmp_path / "kernel.h5")
    write_json(tmp_path / "found.json", {})
    with pytest.raises(InputError, match="not a readable HDF5 file"):
        load_discovery(tmp_path / "found.json")


@pytest.mark.parametrize("values", [np.ones(3), np.float64(1.0), np.ones((2, 2), int)])
def test_arrays_that_do_not_fit_together_are_found_while_reading(tmp_path, values):
    """Not when the user's inputs come."""
    np.savez(tmp_path / "mine.npz", **series())
    discover(load_model("kernel1d")[0], read_measurements(tmp_path / "mine.npz").context).save(tmp_path / "found.h5")
    with h5py.File(tmp_path / "found.h5", "a") as file:
        del file["state/output0.block0"]
        file["state/output0.block0"] = values
    with pytest.raises(InputError, match=r"written by another version|not a readable"):
        load_discovery(tmp_path / "found.h5")


def test_a_damaged_state_is_named(tmp_path):
    discover(load_model("darcy")[0], flow()).save(tmp_path / "found.h5")
    with h5py.File(tmp_path / "found.h5", "a") as file:
        del file["state/reach"]
    with pytest.raises(InputError, match="written by another version"):
        load_discovery(tmp_path / "found.h5")
