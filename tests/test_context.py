"""What a context takes, what it refuses, and its file."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from jaxtyping import config

from examples import radial_context, vector_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.places import Places


def context(U: object, F: object) -> Context:
    """On a grid of 5 radii."""
    return Context(U, F, grids.radii(0.5, 5), grids.point())  # type: ignore


@pytest.fixture
def as_installed(monkeypatch):
    """Without the type checks of the test run, as users have it."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


@pytest.mark.parametrize("name", ["U", "F"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_counted_and_refused(name, value):
    U, F = torch.ones(5, 3), torch.ones(1, 3)
    (U if name == "U" else F)[0, :2] = value
    with pytest.raises(InputError, match=rf"{name} holds 2 value\(s\) that are NaN or infinite"):
        context(U, F)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("U", "F", "message"),
    [
        (torch.ones(4, 3), torch.ones(1, 3), "U has 4 rows but its grid has 5 values"),
        (torch.ones(5, 3), torch.ones(2, 3), "F has 2 rows but its grid has 1 values"),
        (torch.ones(3, 5), torch.ones(1, 3), "axes seem swapped: pairs go last"),
        (torch.ones(5, 3), torch.ones(3, 1), "F has 3 rows.*axes seem swapped"),
        (torch.ones(5, 0), torch.ones(1, 0), "U holds no pairs"),
        (torch.ones(5, 3), torch.ones(1, 2), "U holds 3 pairs but F holds 2"),
        (torch.ones(5, 3), torch.ones(1, 3).double(), "torch.float32 but F is torch.float64"),
        (torch.ones(2, 5, 3), torch.ones(4, 1, 3), r"batch dimensions of U \(2,\) and F \(4,\)"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(U, F, message):
    with pytest.raises(InputError, match=message):
        context(U, F)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("U", "F", "message"),
    [
        (torch.ones(5, 3, dtype=torch.int64), torch.ones(1, 3), "U must be a floating-point.*torch.int64 tensor"),
        (torch.ones(5, 3), torch.ones(1, 3, dtype=torch.bool), "F must be a floating-point.*torch.bool tensor"),
        (np.ones((5, 3)), torch.ones(1, 3), "U must be a floating-point torch tensor, got ndarray"),
        (torch.ones(5), torch.ones(1, 3), r"U must have shape \(..., N, d\), got \(5,\)"),
    ],
)
def test_pairs_of_the_wrong_kind_are_refused(U, F, message):
    with pytest.raises(InputError, match=message):
        context(U, F)


def test_components_that_do_not_fit_are_named():
    grid = grids.rectangle(3).with_components(2)
    with pytest.raises(InputError, match=r"18 values \(2 component\(s\) on 9 points\)"):
        Context(torch.ones(9, 2), torch.ones(18, 2), grid, grid)


@pytest.mark.parametrize(
    ("bu", "bf", "batch"), [((), (), ()), ((), (4,), (4,)), ((2, 1), (2, 3), (2, 3)), ((1,), (3,), (3,))]
)
def test_inputs_may_be_shared_by_a_batch(bu, bf, batch):
    assert context(torch.ones(*bu, 5, 3), torch.ones(*bf, 1, 3)).batch_shape == batch


def test_select_takes_pairs_in_the_order_given():
    whole = radial_context(d=6)
    part = whole.select(torch.tensor([4, 0, 5]))
    assert part.d == 3
    for column, pair in enumerate((4, 0, 5)):
        assert torch.equal(part.U[..., column], whole.U[..., pair])
        assert torch.equal(part.F[..., column], whole.F[..., pair])


def test_another_precision_leaves_the_grids_alone():
    single = radial_context().to(torch.float32)
    assert single.U.dtype == single.F.dtype == torch.float32
    assert single.y.points.dtype == torch.float64
    moved = single.to("cpu")
    assert moved.U.dtype == torch.float32
    assert moved.y.points.device.type == "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_context_comes_back(tmp_path, dtype):
    saved = vector_context(batch=(2, 3), shared=True).to(dtype)
    saved.save(tmp_path / "new" / "context.h5")
    loaded = Context.load(tmp_path / "new" / "context.h5")
    for name in ("U", "F"):
        assert torch.equal(getattr(loaded, name), getattr(saved, name))
        assert getattr(loaded, name).dtype == dtype
    for name in ("y", "x"):
        ours, theirs = getattr(loaded, name), getattr(saved, name)
        assert torch.equal(ours.points, theirs.points)
        assert torch.equal(ours.weights, theirs.weights)
        assert ours.components == 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"expected an HDF5 file at .*absent\.h5, but there is nothing"):
        Context.load(tmp_path / "absent.h5")


def test_a_directory_is_no_context(tmp_path):
    with pytest.raises(InputError, match="there is a directory"):
        Context.load(tmp_path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.h5").touch()
    with pytest.raises(InputError, match=r"empty\.h5 \(0 bytes\) is not a readable HDF5 file"):
        Context.load(tmp_path / "empty.h5")


def test_a_file_cut_in_half_is_refused(tmp_path):
    path = tmp_path / "half.h5"
    radial_context().save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="cut short"):
        Context.load(path)


def test_a_text_file_is_refused(tmp_path):
    (tmp_path / "notes.h5").write_text("u = 1, f = 2\n" * 100)
    with pytest.raises(InputError, match="not a readable HDF5 file"):
        Context.load(tmp_path / "notes.h5")


@pytest.mark.parametrize("entry", ["U", "F", "y", "x/weights"])
def test_an_entry_that_is_missing_is_named(tmp_path, entry):
    path = tmp_path / "context.h5"
    radial_context().save(path)
    with h5py.File(path, "a") as file:
        del file[entry]
    with pytest.raises(InputError, match=f"lacks an entry that was expected.*{entry.split('/')[-1]}"):
        Context.load(path)


def test_a_file_is_checked_like_any_context(tmp_path):
    path = tmp_path / "context.h5"
    radial_context().save(path)
    with h5py.File(path, "a") as file:
        file["F"][0, 0, 0] = np.nan  # pyright: ignore
    with pytest.raises(InputError, match=r"F holds 1 value\(s\)"):
        Context.load(path)


FULL = Context(
    torch.randn(2, 8, 5, dtype=torch.float64),
    torch.randn(2, 1, 5, dtype=torch.float64),
    grids.radii(0.5, 8),
    grids.point(),
    places=Places(torch.arange(10, dtype=torch.float64).reshape(5, 2), ("input", "x")),
    F_std=torch.full((2, 1, 5), 0.1, dtype=torch.float64),
    blocks=(3, 5),
    operator="radial",
)


def test_what_is_known_of_the_pairs_goes_with_them(tmp_path):
    some = FULL.select(torch.tensor([3, 1]))
    assert some.places is not None
    assert some.F_std is not None
    assert some.places.values.tolist() == [[6, 7], [2, 3]]
    assert some.F_std.shape == some.F.shape
    assert (some.blocks, some.operator) == ((3, 5), "radial")
    one = FULL[1]
    assert one.U.shape == (8, 5)
    assert one.F_std is not None
    assert one.F_std.shape == (1, 5)
    assert one.places is FULL.places
    FULL.save(tmp_path / "context.h5")
    loaded = Context.load(tmp_path / "context.h5")
    assert loaded.places is not None
    assert loaded.places.names == ("input", "x")
    assert (loaded.blocks, loaded.operator) == (FULL.blocks, FULL.operator)
    assert loaded.F_std is not None
    assert torch.equal(loaded.F_std, FULL.F_std)  # pyright: ignore
    single = FULL.to(torch.float32)
    assert single.F_std is not None
    assert single.F_std.dtype == torch.float32


def test_a_pair_is_called_by_its_place():
    assert FULL.name(2) == "pair 2 (input = 4, x = 5)"
    assert Context(FULL.U, FULL.F, FULL.y, FULL.x).name(2) == "pair 2"


def test_one_system_of_inputs_that_are_shared():
    shared = Context(FULL.U[:1], FULL.F, FULL.y, FULL.x)
    assert torch.equal(shared[1].U, FULL.U[0])
    assert torch.equal(shared[1].F, FULL.F[1])
    with pytest.raises(InputError, match="cannot be indexed"):
        _ = shared[0, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"places": Places(torch.zeros(4, 1), ("x",))}, "5 pairs but 4 places"),
        ({"F_std": torch.zeros(2, 1, 5, dtype=torch.float64)}, "not positive and finite"),
        ({"F_std": torch.ones(2, 1, 4, dtype=torch.float64)}, "shape and precision of F"),
        ({"blocks": (3, 4)}, "8 in all"),
        ({"blocks": (8, 0)}, "8 in all"),
    ],
)
def test_what_is_known_of_the_pairs_is_checked(changes, message, as_installed):
    with pytest.raises(InputError, match=message):
        replace(FULL, **changes)


def test_places_are_checked():
    with pytest.raises(InputError, match="a name for every column"):
        Places(torch.zeros(4, 2), ("x",))
    with pytest.raises(InputError, match="must be finite"):
        Places(torch.tensor([[float("nan")]]), ("x",))
