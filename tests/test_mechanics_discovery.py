"""A user's specimen: a file of forces and displacements, `kernelmap discover`, and the medium in its report."""

import h5py
import numpy as np
import pytest

from kernelmap.core.errors import InputError
from kernelmap.io.measurements import read_measurements
from kernelmap.problems.mechanics import bitmaps
from kernelmap.problems.mechanics.errors import solved
from kernelmap.problems.mechanics.images import modulus

PIXELS, PAIRS = 6, 24
IMAGE = np.zeros((1, PIXELS, PIXELS), np.uint8)
IMAGE[0, 2:4, 1:5] = 40


@pytest.fixture(scope="module")
def pairs() -> dict[str, np.ndarray]:
    """u: forces, f: displacements, (d, 2, n, n)."""
    systems, _ = solved(bitmaps(IMAGE), loads=PAIRS, elements=f"q1-{PIXELS}")
    shape = (PAIRS, 2, PIXELS + 1, PIXELS + 1)
    axis = np.linspace(0, 1, PIXELS + 1)
    return {"x1": axis, "x2": axis, "u": systems.u[0].numpy().reshape(shape), "f": systems.f[0].numpy().reshape(shape)}


def test_fields_of_two_components_are_read(tmp_path, pairs):
    np.savez(tmp_path / "specimen.npz", **pairs)
    context = read_measurements(tmp_path / "specimen.npz").context
    assert (context.y.components, context.x.components, context.d) == (2, 2, PAIRS)
    np.testing.assert_allclose(context.U[:, 3].numpy(), pairs["u"][3].ravel())
    np.testing.assert_allclose(context.F[:, 3].numpy(), pairs["f"][3].ravel())


def test_components_in_the_wrong_place_are_refused(tmp_path, pairs):
    np.savez(tmp_path / "specimen.npz", **pairs | {"f": np.moveaxis(pairs["f"], 1, -1)})
    with pytest.raises(InputError, match=r"\(d, components, 7, 7\), got \(24, 7, 7, 2\)"):
        read_measurements(tmp_path / "specimen.npz")


@pytest.mark.parametrize("side", [1.0, 10.0, 50.0])
def test_discover_finds_the_stiff_part(kernelmap, tmp_path, pairs, side):
    """On the unit square, and of 10 mm and 50 mm: displacements in mm, forces per mm²."""
    scaled = {"x1": side, "x2": side, "u": 1 / side, "f": side}
    np.savez(tmp_path / "specimen.npz", **{name: scaled[name] * values for name, values in pairs.items()})
    out = tmp_path / "out"
    code, printed, err = kernelmap("discover", tmp_path / "specimen.npz", "--model", "mechanics", "--out", out)
    assert code == 0, err
    assert "error on pairs kept back" in printed
    with h5py.File(out / "discovery.h5") as file:
        found, std, points = (np.asarray(file[f"hidden/{name}"]) for name in ("values", "std", "points"))
        assert file["hidden"].attrs["name"] == "log₁₀ of Young's modulus"
    np.testing.assert_allclose(points[0], side * 0.5 / PIXELS)
    truth = np.log10(modulus(IMAGE[0])).ravel()
    assert np.abs(found - truth).mean() < 0.05
    assert (np.abs(found - truth) < 4 * std + 0.05).all()
    page = (out / "report.html").read_text()
    assert "The medium" in page
    assert "Young" in page
    assert "Poisson's ratio of the medium</th><td>0.300" in page.replace("&#39;", "'")
