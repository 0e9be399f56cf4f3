"""Files made to mislead: links to other files, bombs, values that overflow, sizes that cannot be."""

import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from scipy.io import savemat

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import VARIABLE, parse_gigabytes
from kernelmap.core.systems import SystemSet
from kernelmap.discovery import discover
from kernelmap.io import load_model, read_measurements
from kernelmap.report import discover_file
from kernelmap.report.drawing import times
from mutants_of_measurements import MEASUREMENTS, dated, fields, mesh, rows, series
from mutants_of_models import two_systems
from processes import python

BOMB = (20_000, 20_000)
BLOCK = 300
"""Megabytes: scipy unpacks 128 kB of a variable to read its header, which are 135 MB of zeros, held twice."""


def peak(path: Path) -> int:
    """Megabytes that reading a file adds in a process of its own; its sentence must be no traceback."""
    code = (
        "import sys\nfrom kernelmap.io import read_measurements\nfrom kernelmap.core import InputError\n"
        "from kernelmap.paper.benchmarks.processes import peak_memory_gb\n"
        "before = peak_memory_gb()\n"
        "try: read_measurements(sys.argv[1])\nexcept InputError as error: print(error, file=sys.stderr)\n"
        "print(int(1000 * (peak_memory_gb() - before)))"
    )
    return int(python("-c", code, path).stdout)


class TestHDF5OfOtherFiles:
    @pytest.fixture
    def file(self, tmp_path):
        with h5py.File(tmp_path / "other.h5", "w") as other:
            other["u"] = mesh()["u"]
        with h5py.File(tmp_path / "mine.h5", "w") as file:
            file.update({name: values for name, values in mesh().items() if name != "u"})
            yield file

    def refused(self, file: h5py.File, word: str) -> None:
        path = file.filename
        file.close()
        with pytest.raises(InputError, match=rf"u (is|lies in) .*{word}.*copy the data into this file"):
            read_measurements(path)

    def test_external_link(self, file):
        file["u"] = h5py.ExternalLink("other.h5", "u")
        self.refused(file, "link")

    def test_soft_link(self, file):
        file["u"] = h5py.SoftLink("/f")
        self.refused(file, "link")

    @pytest.mark.parametrize(("source", "name"), [("missing.h5", "u"), (".", "u"), ("mine.h5", "u"), ("other.h5", "u")])
    def test_virtual_data(self, file, source, name):
        layout = h5py.VirtualLayout((3, 121), "f8")
        layout[:] = h5py.VirtualSource(source, name, (3, 121))
        file.create_virtual_dataset("u", layout)
        self.refused(file, "virtual")

    def test_external_storage(self, file, tmp_path):
        (tmp_path / "raw").write_bytes(bytes(3 * 121 * 8))
        file.create_dataset("u", (3, 121), "f8", external=[(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)])
        self.refused(file, "external storage")

    def test_the_same_in_files_of_our_own(self, tmp_path):
        two_systems().save(tmp_path / "systems.h5")
        with h5py.File(tmp_path / "systems.h5", "a") as file:
            del file["y"]
            file["y"] = h5py.SoftLink("/x")
        with pytest.raises(InputError, match="y is a link"):
            SystemSet.load(tmp_path / "systems.h5")

    def test_names_that_are_no_text(self, file):
        file["u"], path = mesh()["u"], file.filename
        h5py.h5d.create(file.id, b"\xff\xfe", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((1,)))
        file.close()
        found = read_measurements(path)
        assert found.context.d > 2


class TestBombs:
    """A small file that would unpack to gigabytes."""

    def test_an_entry_that_is_not_needed_is_not_read(self, tmp_path):
        zeros = np.zeros(BOMB, np.uint8)
        savemat(tmp_path / "mine.mat", mesh() | {"bomb": zeros}, do_compression=True)
        np.savez_compressed(tmp_path / "mine.npz", **mesh(), bomb=zeros)
        for name in ("mine.mat", "mine.npz"):
            assert (tmp_path / name).stat().st_size < 5e6
            assert read_measurements(tmp_path / name).context.d > 2
        assert peak(tmp_path / "mine.mat") < BLOCK

    def test_one_that_is_needed_is_refused_before_it_is_read(self, tmp_path):
        zeros = np.zeros(BOMB, np.uint8)
        savemat(tmp_path / "mine.mat", mesh() | {"u": zeros}, do_compression=True)
        np.savez_compressed(tmp_path / "mine.npz", **mesh() | {"u": zeros})  # pyright: ignore
        with h5py.File(tmp_path / "mine.h5", "w") as file:
            file.update({name: values for name, values in mesh().items() if name != "u"})
            file.create_dataset("u", (10**6, 10**6), "f8", chunks=(1000, 1000))
        for name in ("mine.mat", "mine.npz", "mine.h5"):
            with pytest.raises(InputError, match="--max-memory"):
                read_measurements(tmp_path / name)
        assert peak(tmp_path / "mine.mat") < BLOCK

    def test_headers_that_declare_more_than_there_is(self, tmp_path):
        np.savez(tmp_path / "mine.npz", **mesh())
        with zipfile.ZipFile(tmp_path / "mine.npz", "a") as archive, archive.open("outside.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
        with pytest.raises(InputError, match="cut short or damaged"):
            read_measurements(tmp_path / "mine.npz")

    def test_the_user_decides(self, tmp_path, monkeypatch):
        np.savez(tmp_path / "mine.npz", **mesh())
        monkeypatch.setenv(VARIABLE, "0.000001")
        with pytest.raises(InputError, match="give --max-memory"):
            read_measurements(tmp_path / "mine.npz")
        for word in ("0", "-1", "nan", "much"):
            with pytest.raises(InputError, match="number of gigabytes"):
                parse_gigabytes(word)

    def test_a_file_is_hashed_in_chunks(self, tmp_path):
        with (tmp_path / "large").open("wb") as file:
            file.truncate(2**28)
        code = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)\n"
            "from kernelmap.core.files import file_sha256\n"
            "from kernelmap.paper.benchmarks.processes import peak_memory_gb\n"
            "before = peak_memory_gb()\nfile_sha256(sys.argv[1])\n"
            "assert peak_memory_gb() - before < 0.05"
        )
        assert python("-c", code, tmp_path / "large").returncode == 0


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e155])
@pytest.mark.parametrize("name", ["u", "f"])
def test_values_whose_squares_overflow_are_refused(tmp_path, name, scale):
    entries = mesh()
    np.savez(tmp_path / "mine.npz", **entries | {name: entries[name] * scale})
    with pytest.raises(InputError, match=f"largest value of {name}.*another unit"):
        read_measurements(tmp_path / "mine.npz")
    good = read_measurements_of(tmp_path, entries)
    letter = name.upper()
    odd = Context(**{"U": good.U, "F": good.F, "y": good.y, "x": good.x} | {letter: getattr(good, letter) * scale})
    with pytest.raises(InputError, match="another unit"):
        discover(load_model("radial")[0], odd)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_lengths_whose_squares_overflow_are_refused(tmp_path, scale):
    np.savez(tmp_path / "mine.npz", **series() | {"t": scale * np.arange(90), "radius": 15 * scale})
    with pytest.raises(InputError, match=r"points of y.*another unit"):
        read_measurements(tmp_path / "mine.npz")


def test_a_value_far_from_all_others_is_an_outlier(tmp_path):
    """The square of a ratio of variances is no number."""
    measured = mesh()
    measured["f"][1, 60] = 1e150
    found = discover(load_model("kernel1d")[0], read_measurements_of(tmp_path, measured))
    assert any("outliers" in diagnostic.seen for diagnostic in found.diagnostics)


def test_equations_without_solution_are_refused(tmp_path):
    """A matrix is no longer positive when a value is 1e60 times the others."""
    measured = fields()
    measured["f"].flat[200] = 1e60
    with pytest.raises(InputError, match=r"no solution in double precision .*far from all others"):
        discover(load_model("darcy")[0], read_measurements_of(tmp_path, measured))


@pytest.mark.parametrize("years", [-5000, 12000])
def test_dates_that_no_calendar_draws_are_drawn_as_days(tmp_path, years):
    days = np.datetime64(f"{years}-01-01" if years < 9999 else "2003-01-01") + np.arange(40)
    days += 0 if years < 9999 else 365 * (years - 2003)
    context = read_measurements_of(tmp_path, dated() | {"t": days, "t_f": days[10:]})
    at = times(context, np.arange(5))
    assert at is not None
    assert at.dtype.kind == "f"


@pytest.mark.parametrize("unit", [r"$\frac{", "$x_$", "\ud800"])
def test_names_and_units_are_text(tmp_path, unit):
    """Neither a formula, nor half a character."""
    names = dict.fromkeys(("u_name", "f_name", "x_name", "u_unit", "f_unit", "x_unit"), unit)
    np.savez(tmp_path / "mine.npz", **mesh() | names)  # pyright: ignore
    discover_file(tmp_path / "mine.npz", None, tmp_path / "out")
    assert (tmp_path / "out" / "report.html").exists()


def test_an_input_of_zeros_has_no_noise(tmp_path):
    u = series()["u"]
    context = read_measurements_of(tmp_path, series() | {"u": np.stack([u, 0 * u])})
    assert discover(load_model("kernel1d")[0], context).kernel.values.isfinite().all()


def test_points_of_two_spaces_have_no_distance(tmp_path):
    """x in a plane, y on a line."""
    np.savez(tmp_path / "mine.npz", **rows() | {"x": np.random.default_rng(0).random((5, 2))})  # pyright: ignore
    discover_file(tmp_path / "mine.npz", None, tmp_path / "out")
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("level", [1e-300, 1e300])
def test_noise_of_u_in_another_unit_is_refused(tmp_path, level):
    with pytest.raises(InputError, match=r"u_std is .* give both in one unit"):
        read_measurements_of(tmp_path, mesh() | {"u_std": np.array(level)})


@pytest.mark.parametrize("points", [0, 2])
def test_too_little_to_be_mended_is_refused(tmp_path, points):
    """No functions at all; two points, which sorting does not make three."""
    few = {"u": np.ones((0, 121)), "f": np.ones((0, 121))} if not points else {"x": np.array([1.0, 0.0])}
    with pytest.raises(InputError, match="x must hold at least 3" if points else "u must have shape") as refused:
        read_measurements_of(tmp_path, mesh() | few)
    assert not refused.value.mended


def read_measurements_of(directory: Path, entries: dict) -> Context:
    np.savez(directory / "good.npz", **entries)
    return read_measurements(directory / "good.npz").context


@pytest.mark.parametrize("radius", [1e308, 1e20, np.inf, np.nan, -1.0])
def test_radii_without_bound_are_refused(tmp_path, radius):
    np.savez(tmp_path / "mine.npz", **mesh() | {"radius": np.array(radius), "outside": "zero"})
    with pytest.raises(InputError, match="radius"):
        read_measurements(tmp_path / "mine.npz")


@pytest.mark.parametrize("dtype", [">f8", "f16", ">i4"])
def test_contexts_of_other_machines_and_precisions(tmp_path, dtype):
    path = MEASUREMENTS["context"].write(tmp_path)
    with h5py.File(path, "a") as file:
        values = file["U"][()]  # pyright: ignore
        del file["U"]
        file["U"] = np.round(values).astype(dtype)  # pyright: ignore
        values = file["F"][()]  # pyright: ignore
        del file["F"]
        file["F"] = np.round(values).astype(dtype)  # pyright: ignore
    if dtype == ">i4":
        with pytest.raises(InputError, match=r"floating-point|i32"):
            read_measurements(path)
    else:
        assert read_measurements(path).context.U.dtype == torch.float64


def test_points_of_a_context_may_be_in_single_precision(tmp_path):
    path = MEASUREMENTS["context"].write(tmp_path)
    with h5py.File(path, "a") as file:
        points = np.float32(file["y/points"])  # pyright: ignore
        del file["y/points"]
        file["y/points"] = points
    assert read_measurements(path).context.y.points.dtype == torch.float64


def test_a_context_on_another_grid_than_its_operator(tmp_path):
    path = MEASUREMENTS["context"].write(tmp_path)
    with h5py.File(path, "a") as file:
        file.attrs["operator"] = "convolution"
    with pytest.raises(InputError, match="y is no grid of the operator convolution"):
        read_measurements(path)


def test_an_empty_context_file_is_refused(tmp_path):
    with h5py.File(tmp_path / "context.h5", "w") as file:
        file.attrs["kernelmap"] = "context"
        for name in ("U", "F"):
            file[name] = h5py.Empty("f8")
    with pytest.raises(InputError, match="empty"):
        read_measurements(tmp_path / "context.h5")
