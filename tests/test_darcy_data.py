"""The Darcy data: random fields, the three tasks, files and the cache."""

import numpy as np
import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.problems.darcy import DarcyData, Spectrum, darcy, data, gaussian_fields, microstructures, sources
from kernelmap.problems.darcy.fields import MODES, SMOOTH


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_fields_have_their_spectrum():
    """Variances of the cosine coefficients of many fields, by projection on a grid without aliasing."""
    n, spectrum = 2 * MODES + 1, Spectrum(tau=5, alpha=1.5)
    fields = gaussian_fields(spectrum, n, 0, [0], range(400))
    x = np.linspace(0, 1, n)
    weights = np.full(n, 1 / (n - 1))
    weights[[0, -1]] /= 2
    waves = [np.cos(np.pi * k * x) * weights * (1 if k == 0 else 2) for k in range(4)]
    variances = np.array([[np.var(np.einsum("i,sij,j->s", a, fields, b)) for b in waves] for a in waves])
    expected = np.array([[(np.pi**2 * (k**2 + m**2) + 25) ** -1.5 for m in range(4)] for k in range(4)])
    expected *= np.array([[(1 if k == 0 else 2) * (1 if m == 0 else 2) for m in range(4)] for k in range(4)])
    ratios = (variances / expected)[expected > 0]
    assert variances[0, 0] < 1e-25
    assert abs(ratios[1:] / np.median(ratios[1:]) - 1).max() < 0.3


def test_fields_have_unit_mean_square():
    fields = gaussian_fields(SMOOTH, 33, 1, [0], range(300))
    assert np.square(fields).mean() == pytest.approx(1, abs=0.15)


def test_a_field_is_the_same_at_every_resolution():
    np.testing.assert_allclose(sources(41, [3, 7])[:, ::2, ::2], sources(21, [3, 7]), atol=1e-12)
    assert (microstructures(41, range(5))[:, ::2, ::2] == microstructures(21, range(5))).all()


def test_a_field_depends_on_seed_stream_and_index_alone():
    np.testing.assert_array_equal(sources(9, range(5))[3:4], sources(9, [3]))
    different = [sources(9, [0])[0], sources(9, [1])[0], sources(9, [0], seed=1)[0], sources(9, [0], system=0)[0]]
    different += [sources(9, [0], system=1)[0], gaussian_fields(SMOOTH, 9, 0, [0], [0])[0]]
    for i, one in enumerate(different):
        assert all(np.abs(one - other).max() > 1e-3 for other in different[:i])


def test_microstructures_have_both_phases():
    b = microstructures(21, range(50))
    assert set(np.unique(b)) == {3.0, 12.0}
    shares = (b == 12).mean(axis=(1, 2))
    assert shares.min() > 0.2
    assert shares.max() < 0.8


@pytest.mark.parametrize("task", ["g-to-p", "p-to-g"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("faces", ["arithmetic", "harmonic"])
def test_the_true_kernels_give_the_responses(task, own, faces):
    chosen = darcy(task, 7, faces=faces, own_sources=own)
    assert chosen.test.kernels is not None
    kernel = Kernel(chosen.test.kernels, chosen.test.y, chosen.test.x)
    for part in (chosen.test, chosen.heldout):
        torch.testing.assert_close(kernel.apply(part.u.mT), part.f.mT, rtol=1e-9, atol=1e-11)
        assert part.about["faces"] == faces


def test_ninety_training_and_ten_test_systems():
    chosen = darcy("g-to-p", 5)
    assert chosen.train.u.shape == (1, 100, 25)
    assert chosen.train.f.shape == (90, 100, 25)
    assert chosen.test.f.shape == chosen.heldout.f.shape == (10, 100, 25)
    assert not set(chosen.train.names) & set(chosen.test.names)
    assert chosen.heldout.names == chosen.test.names


@pytest.mark.parametrize("task", ["g-to-p", "b-to-p"])
def test_held_out_inputs_are_unseen(task):
    chosen = darcy(task, 9)
    seen, unseen = chosen.train.u[0], chosen.heldout.u[0]
    assert torch.equal(chosen.test.u, chosen.train.u)
    assert torch.cdist(unseen, seen).min() > 0.1


def test_every_system_may_have_its_own_sources():
    chosen = darcy("g-to-p", 9, own_sources=True)
    assert chosen.train.u.shape == (90, 100, 81)
    everything = torch.cat([part.u.flatten(0, 1) for part in (chosen.train, chosen.test, chosen.heldout)])
    assert len(everything.unique(dim=0)) == len(everything) == 11000


def test_pressure_to_source_is_the_other_way_round_and_zero_on_the_ring():
    there, back = darcy("g-to-p", 6), darcy("p-to-g", 6)
    assert torch.equal(back.train.u, there.train.f)
    f, g = (values.unflatten(-1, (6, 6)) for values in (back.train.f, there.train.u))
    assert torch.equal(f[:, :, 1:-1, 1:-1], g[:, :, 1:-1, 1:-1].expand(90, -1, -1, -1))
    ring = f.clone()
    ring[:, :, 1:-1, 1:-1] = 0
    assert not ring.any()
    assert back.test.about["boundary"] == "zero"


def test_microstructure_to_pressure_has_one_source_per_system():
    there, chosen = darcy("g-to-p", 7), darcy("b-to-p", 7)
    assert chosen.b is None
    assert chosen.test.kernels is None
    assert chosen.train.f.shape == (90, 100, 49)
    assert torch.equal(chosen.train.u[0, 95].reshape(7, 7), torch.from_numpy(microstructures(7, [95])[0]))
    torch.testing.assert_close(chosen.train.f[31, 17], there.train.f[17, 31])
    with pytest.raises(InputError, match="leave own_sources out"):
        darcy("b-to-p", 7, own_sources=True)


def test_microstructures_are_those_of_the_test_systems():
    chosen = darcy("p-to-g", 8)
    assert chosen.b is not None
    assert torch.equal(chosen.b, torch.from_numpy(microstructures(8, range(90, 100))))


def test_truth_may_be_left_out():
    assert darcy("g-to-p", 5, truth=False).test.kernels is None


def test_data_are_generated_once_and_the_same_again(own_cache, monkeypatch):
    first = darcy("g-to-p", 5)
    (file,) = own_cache.rglob("*.h5")
    file.unlink()
    assert darcy("g-to-p", 5).test.checksum() == first.test.checksum()

    def fail(*args, **kwargs):
        pytest.fail("the data were generated again")

    monkeypatch.setattr(data, "pressures", fail)
    assert torch.equal(darcy("p-to-g", 5).train.u, first.train.f)


def test_another_seed_gives_other_data():
    one, other = darcy("g-to-p", 5), darcy("g-to-p", 5, seed=1)
    assert (one.train.u - other.train.u).abs().max() > 0.1
    assert not torch.equal(one.b, other.b)  # pyright: ignore


@pytest.mark.parametrize("task", ["p-to-g", "b-to-p"])
def test_saved_data_come_back(tmp_path, task):
    chosen = darcy(task, 4)
    chosen.save(tmp_path / "darcy.h5")
    loaded = DarcyData.load(tmp_path / "darcy.h5")
    for one, other in ((loaded.train, chosen.train), (loaded.test, chosen.test), (loaded.heldout, chosen.heldout)):
        assert one.checksum() == other.checksum()
        assert one.about == other.about
    assert loaded.b is None if chosen.b is None else torch.equal(loaded.b, chosen.b)  # pyright: ignore


@pytest.mark.parametrize("n", [2, 0, -3])
def test_too_few_nodes_are_refused(n):
    with pytest.raises(InputError, match=f"got n = {n}"):
        darcy("g-to-p", n)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed must be a whole number from 0 to"):
        darcy("g-to-p", 5, seed=-1)
