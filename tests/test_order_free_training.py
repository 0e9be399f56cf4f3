"""Order-free maps, trained: on inputs kept apart, by the command line, and as the shipped model `darcy-green`."""

import numpy as np
import pytest
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import relative_difference
from kernelmap.core.systems import SystemSet
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.io.models import shipped_directory
from kernelmap.maps import SetNAOOptions
from kernelmap.problems.darcy import green_kernel, interior, microstructures, pressures, sources
from kernelmap.training import Recipe, train
from kernelmap.training.batches import Contexts

TEST_MEDIUM = 95


def symmetric_systems(count: int, pairs: int, shared: bool, seed: int = 0) -> SystemSet:
    """Symmetric kernels exp(-(x - y)² / w) of several widths w on a line."""
    generator = torch.Generator().manual_seed(seed)
    grid = grids.from_points(torch.linspace(0, 1, 24, dtype=torch.float64))
    t = grid.points[:, 0]
    widths = 0.02 + 0.1 * torch.rand(count, 1, 1, generator=generator, dtype=torch.float64)
    kernels = torch.exp(-((t[:, None] - t) ** 2) / widths)
    waves = torch.cos(torch.pi * torch.arange(9) * t[:, None])
    u = torch.randn(1 if shared else count, pairs, 9, generator=generator, dtype=torch.float64) @ waves.mT
    names = tuple(f"system-{i}" for i in range(count))
    return SystemSet(names, u, u @ (kernels * grid.weights).mT, grid, grid, kernels)


RECIPE = Recipe(
    epochs=12, batch=4, lr=2e-2, schedule="one-cycle", clip=1.0, random_draws=True, validation_systems=2, every=4
)


def test_training_learns_that_kernels_are_symmetric(tmp_path):
    systems = symmetric_systems(14, 32, shared=False)
    options = SetNAOOptions(waves=8)
    train("set-nao", options, systems, 12, RECIPE, tmp_path / "model", about={})
    model = load_model(tmp_path / "model")[0].double()
    alpha = float(model.alpha.detach())  # pyright: ignore
    assert alpha > 0.3
    other = symmetric_systems(4, 32, shared=False, seed=1)
    context = other.batch(torch.arange(4)[None], torch.arange(4))
    with torch.no_grad():
        trained, untrained = (
            relative_difference(each(context).values[0], other.kernels)  # pyright: ignore
            for each in (model, type(model)(model.shape, options).double())
        )
    assert trained < 0.7 * untrained


def test_inputs_kept_for_validation_are_never_trained_on():
    systems = symmetric_systems(6, 60, shared=True)
    recipe = Recipe(random_draws=True, validation_systems=2, validation_inputs=25, batch=2)
    contexts = Contexts(systems, 30, recipe, None, targets=20)
    trained = {int(pair) for epoch in range(30) for tile in contexts.epoch(epoch) for pair in tile.draws.flatten()}
    assert trained == set(range(35))
    for draw in contexts.validation:
        assert (draw[:10] < 35).all()
        assert (draw[10:] >= 35).all()
        assert len(set(draw.tolist())) == 30


@pytest.mark.parametrize(("kept", "targets"), [(10, 20), (40, 20), (25, 0)])
def test_numbers_of_inputs_that_do_not_fit_are_refused(kept, targets):
    recipe = Recipe(random_draws=True, validation_inputs=kept)
    with pytest.raises(InputError, match="kept for validation"):
        Contexts(symmetric_systems(6, 60, shared=True), 30, recipe, None, targets)


def test_inputs_are_kept_from_random_draws_alone():
    with pytest.raises(InputError, match="need random draws"):
        Recipe(validation_inputs=5)


def medium(n: int, d: int) -> tuple[Context, Context, np.ndarray]:
    """Pairs of a medium that no training has seen, others of them, and its Green's function."""
    b = microstructures(n, [TEST_MEDIUM])[0]
    g = sources(n, range(d + 20), system=TEST_MEDIUM)
    U, F = (torch.from_numpy(v.reshape(d + 20, -1).T.copy()) for v in (g, pressures(b, g)))
    grid = grids.rectangle(n)
    return Context(U[:, :d], F[:, :d], grid, grid), Context(U[:, d:], F[:, d:], grid, grid), green_kernel(b)


@pytest.mark.parametrize("n", [21, 31])
def test_the_shipped_model_discovers_a_green_function(n):
    model, about = load_model("darcy-green")
    assert "--map integral-posterior" in about["command"]
    assert sum(path.stat().st_size for path in (shipped_directory() / "darcy-green").iterdir()) < 1_000_000
    context, others, truth = medium(n, 50)
    found = discover(model, context)
    assert found.check is not None
    assert found.check.error < 0.06
    assert 0.85 < found.check.coverage <= 1
    inside = np.ix_(interior(n), interior(n))
    error = found.kernel.values.numpy()[inside] - truth[inside]
    assert np.linalg.norm(error) < 0.2 * np.linalg.norm(truth[inside])
    assert (np.abs(error) <= 1.96 * found.std.numpy()[inside]).mean() > 0.88
    predicted, _ = found.predict(others.U)
    assert relative_difference(predicted, others.F) < 0.04
    assert not any("mesh" in diagnostic.seen for diagnostic in found.diagnostics)
