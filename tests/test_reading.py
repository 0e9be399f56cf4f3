"""A user's own files: what is read from them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import config

from examples import radial_context, square_context, vector_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.io.measurements import Measurements, read_measurements
from kernelmap.operators import radial_tokens
from measurement_files import FORMATS, assert_same, direct, mesh, square, tokens, write


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


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
