"""A user's own files: what is read from them, and what is said about those that cannot be used."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from jaxtyping import config
from scipy.io import savemat
from scipy.sparse import csr_array

from examples import radial_context, square_context, vector_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.io.measurements import Measurements, read_measurements
from kernelmap.operators import radial_tokens

PAGE = Path(__file__).parents[1] / "docs" / "your-data.md"
SUFFIX = {"npz": ".npz", "hdf5": ".h5", "mat": ".mat", "mat73": ".mat"}
FORMATS = list(SUFFIX)


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def write(folder: Path, format: str, **entries) -> Path:
    path = folder / f"mine{SUFFIX[format]}"
    if format == "npz":
        np.savez(path, **entries)
    elif format == "hdf5":
        with h5py.File(path, "w") as file:
            for name, value in entries.items():
                file[name] = value
    elif format == "mat":
        savemat(path, entries)
    else:
        write_mat73(path, entries)
    return path


def write_mat73(path: Path, entries: dict) -> None:
    """As MATLAB does: a header of 128 bytes, then HDF5 with at least two dimensions, columns first, text as codes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in entries.items():
            text = isinstance(value, str)
            array = np.atleast_2d(np.array([ord(c) for c in value], dtype=np.uint16) if text else np.asarray(value))
            file[name] = array.T
            file[name].attrs["MATLAB_class"] = np.bytes_("char" if text else "double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def mesh(**changes) -> dict:
    """Two inputs and responses on a mesh of 61 points with step 0.1, radius 2; an entry changed to None is left out."""
    x = np.linspace(-3, 3, 61)
    u = np.stack([np.exp(-((x - 0.2) ** 2)), np.sin(3 * x + 1)])
    f = np.random.default_rng(0).normal(size=(2, 61))
    return {k: v for k, v in ({"x": x, "u": u, "f": f, "radius": 2.0} | changes).items() if v is not None}


def tokens(**changes) -> dict:
    """Seven pairs on five radii."""
    rng = np.random.default_rng(1)
    entries = {"U": rng.normal(size=(5, 7)), "F": rng.normal(size=7), "r": 0.5 * np.arange(1, 6)}
    return {k: v for k, v in (entries | changes).items() if v is not None}


def square(**changes) -> dict:
    """Six pairs of fields on nine points of a square."""
    context = square_context(n=3, batch=())
    entries = {
        "U": context.U,
        "F": context.F,
        "y": context.y.points,
        "weights": context.y.weights,
        "x": context.x.points,
    }
    return {k: np.asarray(v) for k, v in (entries | changes).items() if v is not None}


def assert_same(found: Context, expected: Context) -> None:
    assert found.U.dtype == found.F.dtype == torch.float64
    for ours, theirs in (
        (found.U, expected.U),
        (found.F, expected.F),
        (found.y.points, expected.y.points),
        (found.y.weights, expected.y.weights),
        (found.x.points, expected.x.points),
        (found.x.weights, expected.x.weights),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-15)


def direct(entries: dict) -> Context:
    """The context of `mesh` by hand: of 61 points, the 21 in the middle have u within 20 steps."""
    U = radial_tokens(torch.from_numpy(entries["u"]), 20).flatten(0, 1).T
    F = torch.from_numpy(entries["f"][:, 20:41].reshape(1, -1))
    return Context(U, F, grids.radii(0.1, 20), grids.point())


@pytest.mark.parametrize("format", FORMATS)
class TestEveryFormat:
    def read(self, folder: Path, format: str, **entries) -> Measurements:
        return read_measurements(write(folder, format, **entries))

    def test_mesh(self, tmp_path, format):
        read = self.read(tmp_path, format, **mesh())
        assert_same(read.context, direct(mesh()))
        assert read.found["layout"] == "mesh"
        assert read.found["format"] == {"npz": "NPZ", "hdf5": "HDF5", "mat": "MAT v5", "mat73": "MAT v7.3"}[format]
        assert read.found["radii"] == "20 from 0.1 to 2"
        assert read.found["pairs"] == "42"
        assert read.found["dropped"] == "80 where the mesh ends within the radius"

    def test_one_function_on_a_mesh(self, tmp_path, format):
        one = mesh(u=mesh()["u"][0], f=mesh()["f"][0])
        both = direct(mesh())
        assert_same(self.read(tmp_path, format, **one).context, both.select(torch.arange(21)))

    def test_zero_beyond_the_mesh(self, tmp_path, format):
        whole = mesh()
        U = radial_tokens(torch.from_numpy(np.pad(whole["u"], ((0, 0), (20, 20)))), 20).flatten(0, 1).T
        expected = Context(U, torch.from_numpy(whole["f"].reshape(1, -1)), grids.radii(0.1, 20), grids.point())
        read = self.read(tmp_path, format, **whole, outside="zero")
        assert_same(read.context, expected)
        assert read.found["dropped"] == "none"

    def test_tokens_on_uniform_radii(self, tmp_path, format):
        entries = tokens()
        expected = Context(
            torch.from_numpy(entries["U"]), torch.from_numpy(entries["F"])[None], grids.radii(0.5, 5), grids.point()
        )
        read = self.read(tmp_path, format, **entries)
        assert_same(read.context, expected)
        assert (read.found["layout"], read.found["radii"]) == ("tokens on radii", "5 from 0.5 to 2.5")

    @pytest.mark.parametrize("r", [[0.1, 0.2, 0.4, 0.8, 1.6], [1.0, 1.5, 2.0, 2.5, 3.0]])
    def test_tokens_on_other_radii(self, tmp_path, format, r):
        read = self.read(tmp_path, format, **tokens(r=np.array(r)))
        torch.testing.assert_close(read.context.y.weights, grids.from_points(r).weights)
        torch.testing.assert_close(read.context.y.points[:, 0], torch.tensor(r, dtype=torch.float64))

    def test_tokens_on_points(self, tmp_path, format):
        read = self.read(tmp_path, format, **square())
        assert_same(read.context, square_context(n=3, batch=()))
        assert read.found["points"] == "9 from 0, 0 to 1, 1"
        assert read.found["outputs"] == "9"

    def test_points_of_outputs_may_be_others(self, tmp_path, format):
        read = self.read(tmp_path, format, **square(F=np.ones((2, 6)), x=np.array([[0.1, 0.2], [0.3, 0.4]])))
        torch.testing.assert_close(read.context.x.weights, torch.tensor([0.5, 0.5], dtype=torch.float64))

    def test_shuffled_pairs_are_the_same_pairs(self, tmp_path, format):
        order = np.random.default_rng(2).permutation(7)
        plain, entries = tokens(), tokens()
        entries |= {"U": plain["U"][:, order], "F": plain["F"][order]}
        ordered = self.read(tmp_path, format, **plain).context
        assert_same(self.read(tmp_path, format, **entries).context, ordered.select(torch.from_numpy(order)))

    def test_rows_and_columns_are_vectors(self, tmp_path, format):
        expected = read_measurements(write(tmp_path, "npz", **tokens())).context
        columns = tokens(F=tokens()["F"][:, None], r=tokens()["r"][None])
        assert_same(self.read(tmp_path, format, **columns).context, expected)
        both = direct(mesh())
        column = mesh(x=mesh()["x"][:, None], u=mesh()["u"][0][:, None], f=mesh()["f"][0][None])
        assert_same(self.read(tmp_path, format, **column).context, both.select(torch.arange(21)))

    def test_integers_and_single_precision_are_converted(self, tmp_path, format):
        whole = self.read(tmp_path, format, **tokens(U=np.arange(35).reshape(5, 7), r=np.arange(1, 6)))
        assert torch.equal(whole.context.U, torch.arange(35.0, dtype=torch.float64).reshape(5, 7))
        assert torch.equal(whole.context.y.weights, torch.ones(5, dtype=torch.float64))
        single = {name: np.float32(value) for name, value in mesh().items()}
        context = self.read(tmp_path, format, **single).context
        torch.testing.assert_close(context.y.points, grids.radii(0.1, 20).points, rtol=1e-6, atol=0)

    def test_other_entries_are_left_alone(self, tmp_path, format):
        read = self.read(tmp_path, format, **mesh(), temperature=np.ones(3))
        assert_same(read.context, direct(mesh()))

    def test_cut_short(self, tmp_path, format):
        path = write(tmp_path, format, **mesh())
        whole = path.read_bytes()
        for kept in (1, 100, 128, 200, 600, len(whole) // 2, len(whole) - 100):
            path.write_bytes(whole[:kept])
            with pytest.raises(
                InputError,
                match=r"mine\.\w+( \(\d+ bytes\))?(: expected| is not a readable).*(cut short|got no entries)",
            ):
                read_measurements(path)

    def test_a_misleading_suffix(self, tmp_path, format):
        path = write(tmp_path, format, **mesh())
        wrong = path.rename(tmp_path / ("other.h5" if path.suffix != ".h5" else "other.npz"))
        with pytest.raises(InputError, match=r"by its name, got .* by its content; rename the file"):
            read_measurements(wrong)
        assert_same(read_measurements(wrong.rename(tmp_path / "other")).context, direct(mesh()))


def test_only_what_was_measured_and_says_something_is_used(tmp_path):
    entries = mesh()
    entries["u"][1] = 3.0
    entries["f"][0, :25] = np.nan
    read = read_measurements(write(tmp_path, "npz", **entries))
    assert_same(read.context, direct(mesh()).select(torch.arange(5, 21)))
    # 25 NaN; at the ends 20 points of the first function and 40 of the second; 21 points with a constant u.
    assert read.found["dropped"] == (
        "25 where f is NaN; 60 where the mesh ends within the radius; 21 where all tokens are zero"
    )


def test_a_radius_left_out_is_said_so_and_is_as_large_as_possible(tmp_path):
    x = np.linspace(-15, 15, 301)
    path = write(tmp_path, "npz", x=x, u=np.sin(x), f=np.cos(x))
    read = read_measurements(path)
    assert read.found["radii"] == "100 from 0.1 to 10"
    assert not read.has_radius
    assert read_measurements(write(tmp_path, "npz", x=x, u=np.sin(x), f=np.cos(x), radius=2.0)).has_radius


@pytest.mark.parametrize("context", [radial_context(batch=()), vector_context(batch=(1, 1)).to(torch.float32)])
def test_saved_contexts_are_read(tmp_path, context):
    context.save(tmp_path / "context.h5")
    read = read_measurements(tmp_path / "context.h5")
    expected = Context(context.U.double().reshape(-1, 6), context.F.double().reshape(-1, 6), context.y, context.x)
    assert_same(read.context, expected)
    assert read.context.y.components == context.y.components
    assert read.found["layout"] == "context"


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
    "text for outside": (mesh(outside="periodic"), 'outside must be the text "zero" or be left out, got periodic'),
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
    "no x": (mesh(x=None), r"expected the entries of one layout \(mesh: x, u, f; fields.*got f, radius, u\..*capitals"),
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
    np.savez("mine.npz", x=names["x"], u=names["u"].T, f=names["f"].T)
    assert kernelmap("check", "mine.npz") == (2, "", error)


def test_check_says_what_is_wrong(kernelmap, tmp_path):
    (tmp_path / "empty.mat").touch()
    code, out, err = kernelmap("check", tmp_path / "empty.mat")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "got an empty file" in err
