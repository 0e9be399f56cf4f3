"""The radial operator in one, two and three dimensions against closed forms, and kernels found by it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import j0

from kernelmap.core import Context, grids
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.operators import Radial
from kernelmap.operators.spheres import sphere, stencil
from kernelmap.posterior import Kernel1dMap

WAVE = np.array([1.3, 0.7, -0.4])


def symbol(k: float, r: np.ndarray, dim: int) -> np.ndarray:
    """g[u](r, x) = symbol(k, r) u(x) for u = cos(k·x + c): ∫_{|z|=r} (cos k·z - 1) dS."""
    if dim == 1:
        return 2 * (np.cos(k * r) - 1)
    if dim == 2:
        return 2 * np.pi * r * (j0(k * r) - 1)
    return 4 * np.pi * r**2 * (np.sinc(k * r / np.pi) - 1)


def coordinates(samples: int, step: float, dim: int) -> np.ndarray:
    axis = step * np.arange(samples)
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1)


def largest_error(samples: int, dim: int) -> float:
    """Of the tokens of a wave, relative to the largest of them, on a box of side 6."""
    step, k = 6.0 / samples, WAVE[:dim]
    operator = Radial(step, samples // 4, dim)
    u = np.cos(coordinates(samples, step, dim) @ k + 0.3)
    points = np.flatnonzero(operator.reached(*u.shape))[:40]
    tokens = operator.tokens_at(u[None], np.zeros_like(points), points).numpy()
    size = symbol(float(np.linalg.norm(k)), operator.grid.points[:, 0].numpy(), dim)
    return float(np.abs(tokens - size * u.ravel()[points, None]).max() / np.abs(size).max())


@pytest.mark.parametrize("dim", [2, 3])
def test_tokens_of_a_wave_are_of_fourth_order(dim):
    errors = [largest_error(samples, dim) for samples in (20, 40)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.4)
    assert errors[1] < 2e-5


def test_on_a_line_tokens_are_exact():
    assert largest_error(24, 1) < 1e-14


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_nodes_of_a_sphere_have_its_measure_and_its_radius(dim):
    nodes, weights = sphere(2.5, dim)
    assert weights.sum() == pytest.approx({1: 2, 2: 2 * np.pi * 2.5, 3: 4 * np.pi * 2.5**2}[dim])
    np.testing.assert_allclose(np.linalg.norm(nodes, axis=1), 2.5)
    assert stencil(2.5, dim, 4).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_function_that_begins_again(dim):
    """Tokens of a wave of the period at every sample, also across the ends."""
    samples, step = 24, 0.25
    k = 2 * np.pi / (samples * step)
    u = np.cos(coordinates(samples, step, dim) @ np.full(dim, k))
    operator = Radial(step, 6, dim, periodic=True)
    assert operator.reached(*u.shape).all()
    points = np.array([0, samples - 1, u.size // 2, u.size - 1])
    tokens = operator.tokens_at(u[None], np.zeros_like(points), points).numpy()
    size = symbol(k * dim**0.5, operator.grid.points[:, 0].numpy(), dim)
    np.testing.assert_allclose(tokens, size * u.ravel()[points, None], atol=2e-3 * np.abs(size).max())


@pytest.mark.parametrize("dim", [2, 3])
def test_the_response_to_an_exponential_kernel(dim):
    """∫ exp(-|z|) (u(x+z) - u(x)) dz = (K̂(k) - K̂(0)) u(x), K̂ = 2π / (1+k²)^(3/2) or 8π / (1+k²)²."""
    step, count, k = (0.25, 60, WAVE[:dim]) if dim == 2 else (0.5, 24, WAVE[:dim])
    operator = Radial(step, count, dim)
    u = np.cos(coordinates(2 * count + 3, step, dim) @ k)
    points = np.flatnonzero(operator.reached(*u.shape))
    assert len(points) == 1
    tokens = operator.tokens_at(u[None], np.zeros_like(points), points)
    grid, k2 = operator.grid, float(k @ k)
    found = float(tokens[0] @ (grid.weights * torch.exp(-grid.points[:, 0])))
    transform = 2 * np.pi * ((1 + k2) ** -1.5 - 1) if dim == 2 else 8 * np.pi * ((1 + k2) ** -2 - 1)
    assert found == pytest.approx(transform * u.ravel()[points[0]], rel=1e-2)


def waves(operator: Radial, samples: int, pairs: int, noise: float, seed: int) -> Context:
    """A random field of 100 waves, eight samples or more to each, and its responses to exp(-r), r up to the last."""
    rng, dim = np.random.default_rng(seed), operator.dim
    x, r = coordinates(samples, operator.step, dim), operator.step * operator.count
    nodes, weights = np.polynomial.legendre.leggauss(100)
    nodes, weights = r * (nodes + 1) / 2, r * weights / 2
    points = rng.choice(np.flatnonzero(operator.reached(*x.shape[:-1])), pairs, replace=False)
    u, f = np.zeros(x.shape[:-1]), np.zeros(pairs)
    for _ in range(100):
        direction, k = rng.normal(size=dim), rng.uniform(0, 2 * np.pi / (8 * operator.step))
        wave = np.cos(x @ (k * direction / np.linalg.norm(direction)) + rng.uniform(0, 2 * np.pi))
        u += wave
        f += wave.ravel()[points] * (weights * np.exp(-nodes) @ symbol(k, nodes, dim))
    f += noise * f.std() * rng.normal(size=pairs)
    tokens = operator.tokens_at(u[None], np.zeros(pairs, dtype=int), points)
    return operator.context(tokens, torch.from_numpy(f))


def model() -> Kernel1dMap:
    loaded, _ = load_model("kernel1d")
    assert isinstance(loaded, Kernel1dMap)
    return loaded


@pytest.mark.parametrize("dim", [2, 3])
def test_an_exponential_is_found_from_a_hundred_noisy_pairs(dim):
    """experiments/own_problems.py has more seeds."""
    operator = Radial(0.125, 32, 2) if dim == 2 else Radial(0.15, 20, 3)
    context = waves(operator, 140 if dim == 2 else 54, 100, 0.01, seed=0)
    found = model().posterior(context)
    truth = torch.exp(-context.y.points[:, 0])[None]
    rho = exploration_measure(context.U.mT, context.y)
    assert float(kernel_error(found.mean, truth, rho, context.y)) < 0.05
    assert float(((found.mean - truth).abs() <= 1.96 * found.std).double().mean()) > 0.85


def test_a_radius_that_is_too_small_is_named():
    """A kernel of huge values of both signs fits the pairs, predicts others, and has nothing of the true one."""
    whole = waves(Radial(0.125, 24, 2), 70, 60, 0.01, seed=0)
    for steps, expected in ((24, False), (12, True)):
        y = grids.radii(0.125, steps)
        for offset, unknown in ((0.0, ()), (1e4 * float(whole.F.std()), ("offset",))):
            measured = replace(whole, U=whole.U[:steps], y=y, F=whole.F + offset, unknown=unknown)
            found = discover(model(), measured)
            assert any("small difference of terms" in diagnostic.seen for diagnostic in found.diagnostics) == expected


def test_a_context_by_hand():
    """The operator makes the context that a file would."""
    operator = Radial(0.5, 4)
    u = np.random.default_rng(0).normal(size=(1, 20))
    points = np.flatnonzero(operator.reached(20))
    context = operator.context(operator.tokens_at(u, np.zeros_like(points), points), torch.arange(12.0).double())
    assert (context.operator, context.U.shape, context.F.shape) == ("radial", (4, 12), (1, 12))
    assert context.y.equals(grids.radii(0.5, 4))
