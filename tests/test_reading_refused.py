"""A user's own files that cannot be used: what is said about them; and that the page of docs is true."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from jaxtyping import config
from scipy.io import savemat
from scipy.sparse import csr_array

from examples import radial_context
from kernelmap.core.errors import InputError
from kernelmap.io.measurements import read_measurements
from measurement_files import assert_same, mesh, square, tokens, write

PAGE = Path(__file__).parents[1] / "docs" / "your-data.md"


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def with_nan(array: np.ndarray, value: float = np.nan) -> np.ndarray:
    array = array.copy()
    array.flat[3] = value
    return array


BAD = {
    "NaN in u": (mesh(u=with_nan(mesh()["u"])), r"u holds 1 value\(s\) that are NaN"),
    "NaN in x": (mesh(x=with_nan(mesh()["x"])), r"x holds 1 value\(s\) that are NaN"),
    "infinite f": (mesh(f=with_nan(mesh()["f"], np.inf)), r"f holds 1 infinite value\(s\); write NaN"),
    "NaN in U": (tokens(U=with_nan(tokens()["U"])), r"U holds 1 value\(s\) that are NaN"),
    "NaN in F": (tokens(F=with_nan(tokens()["F"])), r"F holds 1 value\(s\) that are NaN"),
    "NaN in r": (tokens(r=with_nan(tokens()["r"])), r"r holds 1 value\(s\) that are NaN"),
    "NaN in y": (square(y=with_nan(square()["y"])), r"y holds 1 value\(s\) that are NaN"),
    "mesh not uniform": (mesh(x=np.linspace(1, 3, 61) ** 2), "uniform mesh, got steps from 0.067.* to 0.198"),
    "mesh decreasing": (mesh(x=-mesh()["x"]), "increasing mesh points; sort x, u and f by x"),
    "mesh of two points": (mesh(x=[0, 1], u=[0, 1], f=[0, 1]), "at least 3 increasing"),
    "mesh too short": (mesh(radius=11.0), r"mesh is 6 long.*longer than 22, set outside = .zero."),
    "mesh and u disagree": (mesh(x=np.linspace(0, 1, 50)), r"u must have shape .* J = 50 points of x, got \(2, 61\)"),
    "u and f disagree": (mesh(f=mesh()["f"][0]), "u holds 2 functions but f holds 1; every u needs its f"),
    "swapped u": (mesh(u=mesh()["u"].T), "u must have shape.*axes seem swapped: mesh points go last"),
    "swapped f": (mesh(f=mesh()["f"].T), "f must have shape.*axes seem swapped: mesh points go last"),
    "x not a vector": (mesh(x=np.ones((3, 4))), r"x must be a vector, got shape \(3, 4\)"),
    "text for outside": (
        mesh(outside="ones"),
        'outside must be the text "zero" or "periodic" or be left out, got ones',
    ),
    "number for outside": (mesh(outside=0), "outside must be the text"),
    "radius below the step": (mesh(radius=0.01), "radius must be one number above the step 0.1 .* unit of x, got 0.01"),
    "radius NaN": (mesh(radius=np.nan), "radius must be one number"),
    "several radii": (mesh(radius=np.ones(2)), "radius must be one number"),
    "radius beyond all meshes": (mesh(radius=1e9, outside="zero"), "steps of the mesh; give it in the unit of x"),
    "radius in another unit": (mesh(radius=1e5, outside="zero"), "do not fit into memory.*same unit"),
    "nothing measured": (mesh(f=np.full((2, 61), np.nan)), r"at least 2 pairs, got 0 \(dropped: 122 where f is NaN"),
    "one pair on a mesh": (mesh(f=np.where(np.arange(122).reshape(2, 61) == 30, 1, np.nan)), "at least 2 pairs, got 1"),
    "u constant": (mesh(u=np.ones((2, 61))), "at least 2 pairs, got 0 .*42 where all tokens are zero"),
    "one pair of tokens": (tokens(U=np.ones((5, 1)), F=np.ones(1)), "at least 2 pairs, got 1"),
    "no pair of tokens": (tokens(U=np.ones((5, 0))), "at least 2 pairs, got 0"),
    "swapped U": (tokens(U=tokens()["U"].T), "U has 7 rows.*axes seem swapped: pairs go last"),
    "U a vector": (tokens(U=np.ones(5)), r"U must have shape \(N, d\), got \(5,\)"),
    "U and F disagree": (tokens(F=np.ones(6)), "U holds 7 pairs but F holds 6"),
    "U and r disagree": (tokens(r=np.arange(1, 5)), "U has 5 rows but its grid has 4 values"),
    "F of several outputs": (tokens(F=np.ones((3, 7))), r"F must be a vector, got shape \(3, 7\).* give x"),
    "r from 0": (tokens(r=np.arange(5)), "r must begin above 0 and increase, got 0 to 4"),
    "r decreasing": (tokens(r=np.arange(5, 0, -1)), "r must begin above 0 and increase, got 5 to 1"),
    "swapped U on points": (square(U=square()["U"].T), "axes of U seem swapped: pairs go last"),
    "swapped F on points": (square(F=square()["F"].T), "axes of F seem swapped: pairs go last"),
    "swapped y": (square(y=square()["y"].T), "axes of y seem swapped: points go first"),
    "y and U disagree": (square(y=np.ones((8, 2))), r"y must have shape \(9, dim\).* row of U, got \(8, 2\)\."),
    "weights and y disagree": (square(weights=np.ones(8)), "y holds 9 points but weights holds 8"),
    "negative weights": (square(weights=-np.ones(9)), "weights must be positive"),
    "complex u": (mesh(u=mesh()["u"] + 0j), "u must be an array of real numbers, got complex128"),
    "text in U": (tokens(U=np.array(["a", "b"], dtype="S1")), "U must be an array of real numbers, got"),
    "text in radius": (mesh(radius="two"), "radius must be an array of real numbers, got"),
    "truth values": (mesh(f=mesh()["f"] > 0), "f must be an array of real numbers, got bool"),
    "no x": (
        mesh(x=None),
        r"expected the entries of one layout \(mesh: x, u, f; .*convolution.*got f, radius, u\..*capitals",
    ),
    "no r": (tokens(r=None), "got F, U. Rename or add"),
    "other names": ({"input": np.ones(3), "Output": np.ones(3)}, "got Output, input"),
    "two layouts": (mesh() | tokens(), "Keep one layout"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(tmp_path, case):
    entries, sentence = BAD[case]
    with pytest.raises(InputError, match=rf"mine\.npz: .*{sentence}"):
        read_measurements(write(tmp_path, "npz", **entries))


@pytest.mark.parametrize("case", [case for case in BAD if case not in ("truth values", "U a vector", "text in U")])
@pytest.mark.parametrize("format", ["hdf5", "mat", "mat73"])
def test_what_is_wrong_is_said_in_every_format(tmp_path, format, case):
    entries, _ = BAD[case]
    with pytest.raises(InputError, match=r"mine\.\w+: .{20}"):
        read_measurements(write(tmp_path, format, **entries))


@pytest.mark.parametrize(
    ("name", "content", "got"),
    [
        ("empty.h5", b"", "got an empty file"),
        ("notes.npz", b"u, f\n1, 2\n", "begins with b'u, f"),
        ("array.npy", b"\x93NUMPY\x01\x00", "begins with b'.x93NUMPY"),
        ("pickled.npz", b"\x80\x04\x95\x10", "begins with"),
    ],
)
def test_files_of_another_kind(tmp_path, name, content, got):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"expected HDF5, NPZ or MAT .*{got}.*write it again"):
        read_measurements(tmp_path / name)


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "mine.npz", **mesh(u=np.array([{}, None], dtype=object)))
    with pytest.raises(InputError, match="holds Python objects, which are not read"):
        read_measurements(tmp_path / "mine.npz")


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(InputError, match=r"expected a file of measurements .* but there is nothing"):
        read_measurements(tmp_path / "absent.npz")
    with pytest.raises(InputError, match="there is a directory"):
        read_measurements(tmp_path)


def test_matrices_that_are_not_plain_arrays(tmp_path):
    savemat(tmp_path / "mine.mat", mesh() | {"u": csr_array(mesh()["u"])})
    with pytest.raises(InputError, match="u must be a full array of real numbers, got a MATLAB sparse"):
        read_measurements(tmp_path / "mine.mat")
    with h5py.File(write(tmp_path, "hdf5", **mesh(u=None)), "a") as file:
        file.create_group("u")
    with pytest.raises(InputError, match="u must be an array of real numbers, got NoneType"):
        read_measurements(tmp_path / "mine.h5")


def test_other_files_of_kernelmap_are_named(tmp_path):
    radial_context().save(tmp_path / "batch.h5")
    with pytest.raises(InputError, match=r"expected one system, got a batch of shape \(3,\)"):
        read_measurements(tmp_path / "batch.h5")
    with h5py.File(tmp_path / "systems.h5", "w") as file:
        file.attrs["kernelmap"] = "systems"
    with pytest.raises(InputError, match="got a kernelmap systems file"):
        read_measurements(tmp_path / "systems.h5")


def test_the_page_is_true(kernelmap, tmp_path, monkeypatch):
    """Its examples run, all formats give the same pairs, and `kernelmap check` prints what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text()
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)
    for stem, pairs in (("mine", 134), ("tokens", 50)):
        contexts = [read_measurements(f"{stem}.{suffix}").context for suffix in ("npz", "h5", "mat")]
        assert contexts[0].d == pairs
        for context in contexts:
            assert_same(context, contexts[0])
            radii = context.y.points[:, 0]
            torch.testing.assert_close((torch.exp(-radii) * context.y.weights) @ context.U, context.F[0])
    table, error = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    code, out, _ = kernelmap("check", "mine.npz")
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == table.splitlines()
    mine = dict(np.load("mine.npz"))
    np.savez("mine.npz", x=mine["x"], u=mine["u"].T, f=mine["f"].T)
    assert kernelmap("check", "mine.npz") == (2, "", error)
    plane = read_measurements("plane.npz").context
    weights = torch.cat([plane.y.weights[:-1], plane.y.weights[-1:] / 2])
    response = (torch.exp(-plane.y.points[:, 0]) * weights) @ plane.U
    torch.testing.assert_close(response, plane.F[0], rtol=0, atol=0.01 * float(plane.F.abs().max()))
    found, seen = names["found"].kernel, ~names["found"].identifiability.unobserved
    K = torch.exp(-found.y.points)[seen, 0]
    assert float((found.values[0, seen] - K).norm() / K.norm()) < 0.05
    assert names["context"].d == 400


def test_check_says_what_is_wrong(kernelmap, tmp_path):
    (tmp_path / "empty.mat").touch()
    code, out, err = kernelmap("check", tmp_path / "empty.mat")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "got an empty file" in err
