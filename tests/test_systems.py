"""Sets of systems: the contexts drawn from them, noise, and files with a checksum."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from kernelmap.core import grids
from kernelmap.core.errors import InputError
from kernelmap.core.systems import SystemSet, random_draws, strided_draws


def systems(shared: bool = True, pairs: int = 12, seed: int = 0) -> SystemSet:
    """Three systems on 5 inputs and 4 outputs."""
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    y, x = grids.radii(0.5, 5), grids.from_points([0.0, 1.0, 2.0, 4.0])
    scales = torch.tensor([1.0, 10.0, 0.01], dtype=torch.float64)[:, None, None]
    f = scales * randn(3, pairs, 4)
    return SystemSet(("a", "b", "c"), randn(1 if shared else 3, pairs, 5), f, y, x, randn(3, 4, 5), {"dx": 0.5})


def truth(data: SystemSet) -> torch.Tensor:
    assert data.kernels is not None
    return data.kernels


def test_strided_draws_take_every_fifteenth_of_the_released_pairs():
    """151 locations of u1, then 151 of u2, in order: sample i is rows i, i + 15, i + 30, ..."""
    draws = strided_draws(4530, 302)
    assert draws.shape == (15, 302)
    for i in range(15):
        assert draws[i].tolist() == list(range(i, 4530, 15))
        assert (draws[i] < 2265).sum() == 151


@pytest.mark.parametrize(("pairs", "d"), [(4530, 302), (4530, 100), (17, 5), (9, 9), (7, 1), (10, 6)])
def test_strided_draws_are_disjoint_and_as_many_as_fit(pairs, d):
    draws = strided_draws(pairs, d)
    assert draws.shape == (pairs // d, d)
    assert len(draws.unique()) == draws.numel()
    assert draws.min() >= 0
    assert draws.max() < pairs


def test_random_draws_have_no_repeats_and_come_from_the_generator():
    def draw(seed: int) -> torch.Tensor:
        return random_draws(50, 20, 30, torch.Generator().manual_seed(seed))

    draws = draw(1)
    assert draws.shape == (30, 20)
    assert all(len(row.unique()) == 20 for row in draws)
    assert torch.equal(draws, draw(1))
    assert not torch.equal(draws, draw(2))
    assert not torch.equal(draws[0], draws[1])
    assert draws.unique().tolist() == list(range(50))


@pytest.mark.parametrize("d", [0, -1, 13])
def test_contexts_of_no_or_too_many_pairs_are_refused(d):
    with pytest.raises(InputError, match=f"between 1 and 12 pairs here, got d = {d}"):
        strided_draws(12, d)
    with pytest.raises(InputError, match=f"between 1 and 12 pairs here, got d = {d}"):
        random_draws(12, d, 2, torch.Generator())


@pytest.mark.parametrize("shared", [True, False])
def test_a_batch_has_every_system_with_every_draw(shared):
    data = systems(shared)
    draws, chosen = torch.tensor([[3, 0, 7], [11, 2, 2]]), torch.tensor([2, 0])
    context = data.batch(draws, chosen)
    assert context.batch_shape == (2, 2)
    assert context.U.shape[1] == (1 if shared else 2)
    U = context.U.expand(2, 2, 5, 3)
    for g, draw in enumerate(draws.tolist()):
        for b, system in enumerate(chosen.tolist()):
            for j, pair in enumerate(draw):
                assert torch.equal(U[g, b, :, j], data.u[0 if shared else system, pair])
                assert torch.equal(context.F[g, b, :, j], data.f[system, pair])


@pytest.mark.parametrize("shared", [True, False])
def test_systems_are_selected_by_name(shared):
    data = systems(shared)
    part = data.select(["c", "a"])
    assert part.names == ("c", "a")
    assert torch.equal(part.f, data.f[[2, 0]])
    assert torch.equal(truth(part), truth(data)[[2, 0]])
    assert torch.equal(part.u, data.u if shared else data.u[[2, 0]])


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match=r"no system named \['d'\]; there are \['a', 'b', 'c'\]"):
        systems().select(["a", "d"])


def test_another_precision():
    single = systems().to(torch.float32)
    assert single.u.dtype == single.f.dtype == truth(single).dtype == torch.float32
    assert single.y.points.dtype == torch.float64


def test_noise_is_relative_to_each_system():
    data = systems(pairs=20_000)
    noisy = data.with_noise(0.1, seed=3)
    noise = noisy.f - data.f
    level = (noise.square().mean(dim=(1, 2)) / data.f.square().mean(dim=(1, 2))).sqrt()
    torch.testing.assert_close(level, torch.full_like(level, 0.1), rtol=0.02, atol=0)
    assert abs(noise / noise.std(dim=(1, 2), keepdim=True)).mean() == pytest.approx((2 / torch.pi) ** 0.5, rel=0.02)
    assert torch.equal(noisy.u, data.u)
    assert noisy.about == {"dx": 0.5, "noise": 0.1, "noise_seed": 3}


def test_points_that_never_respond_get_no_noise():
    data = systems()
    silent = torch.tensor([False, True, False, True])
    noisy = replace(data, f=data.f.masked_fill(silent, 0)).with_noise(0.1, 3).f
    assert (noisy[..., silent] == 0).all()
    assert (noisy[..., ~silent] != data.f[..., ~silent]).all()


def test_noise_comes_from_its_seed():
    data = systems()
    assert torch.equal(data.with_noise(0.1, 3).f, data.with_noise(0.1, 3).f)
    assert not torch.equal(data.with_noise(0.1, 3).f, data.with_noise(0.1, 4).f)


@pytest.mark.parametrize("kernels", [True, False])
def test_saved_systems_come_back(tmp_path, kernels):
    saved = systems(shared=False)
    if not kernels:
        saved = SystemSet(saved.names, saved.u, saved.f, saved.y, saved.x)
    saved.save(tmp_path / "systems.h5")
    loaded = SystemSet.load(tmp_path / "systems.h5")
    assert (loaded.names, loaded.about) == (saved.names, saved.about)
    assert torch.equal(loaded.u, saved.u)
    assert torch.equal(loaded.f, saved.f)
    if kernels:
        assert torch.equal(truth(loaded), truth(saved))
    else:
        assert loaded.kernels is None
    assert loaded.checksum() == saved.checksum()


@pytest.mark.parametrize("entry", ["u", "f", "kernels", "y/points", "x/weights"])
def test_a_changed_number_is_detected(tmp_path, entry):
    path = tmp_path / "systems.h5"
    systems().save(path)
    with h5py.File(path, "a") as file:
        values = np.array(file[entry])
        values.reshape(-1).view("uint8")[3] ^= 1
        file[entry][...] = values  # pyright: ignore
    with pytest.raises(InputError, match=r"systems\.h5 does not match its checksum; generate it again"):
        SystemSet.load(path)


def test_a_context_is_no_system_set(tmp_path):
    systems().batch(torch.tensor([[0, 1]]), torch.tensor([0])).save(tmp_path / "context.h5")
    with pytest.raises(InputError, match="lacks an entry that was expected"):
        SystemSet.load(tmp_path / "context.h5")
