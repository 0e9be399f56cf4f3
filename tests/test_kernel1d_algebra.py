"""The algebra of kernels of one coordinate: against dense Gaussian conditioning and closed forms."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from kernel1d_systems import SMALL, flat, waves
from kernelmap.core import grids
from kernelmap.posterior.kernel1d.components import Block, Peak, Spectrum
from kernelmap.posterior.kernel1d.errors import ErrorShape, jump_variance, white_noise, with_quadrature
from kernelmap.posterior.kernel1d.evidence import LOG_GAMMA, STEPS, Whitened, evidence
from kernelmap.posterior.kernel1d.prior import starting_prior
from kernelmap.posterior.kernel1d.units import size

CPU = torch.device("cpu")


@pytest.mark.parametrize("d", [9, 40])
def test_conditioning_is_that_of_a_dense_gaussian(d: int) -> None:
    rng = np.random.default_rng(d)
    R, gamma_index = 20, 24
    A, omega, f = rng.normal(size=(d, R)), rng.uniform(0.2, 1, R), rng.normal(size=d)
    n = rng.uniform(0.5, 2, d)
    noise, amplitude = flat(-12, 12), flat(-60, 60)
    shape = ErrorShape(torch.from_numpy(n), 1.0, 0.0, 0.0, math.inf, noise)
    pairs = Whitened.of(torch.from_numpy(A), torch.from_numpy(f), shape)
    both = torch.from_numpy(np.stack([np.ones(R), omega]))
    found = evidence(pairs, both, amplitude, floor=1e-300)
    gamma, kappa = math.exp(LOG_GAMMA[gamma_index]), float(found.kappa[1, gamma_index])
    C = gamma * kappa * np.diag(omega**2)
    S = A @ C @ A.T + kappa * np.diag(n)
    X = rng.normal(size=(7, R))
    given = found.conditioned(pairs, 1, torch.tensor([gamma_index]), torch.ones(1).double())
    mean, variance = given.moments(torch.from_numpy(X))
    np.testing.assert_allclose(mean[0], X @ C @ A.T @ np.linalg.solve(S, f), rtol=1e-8, atol=1e-12)
    dense = X @ (C - C @ A.T @ np.linalg.solve(S, A @ C)) @ X.T
    np.testing.assert_allclose(variance[0], np.diag(dense), rtol=1e-8)
    # Evidence: the integral over κ, by a fine grid.
    log_kappa = np.linspace(-12, 12, 4001)
    unit = A @ (gamma * np.diag(omega**2)) @ A.T + np.diag(n)
    densities = [multivariate_normal.logpdf(f, cov=np.exp(k) * unit) for k in log_kappa]
    prior = float(noise.log_density[0] + amplitude.log_density[0])
    step = float(LOG_GAMMA[1] - LOG_GAMMA[0])
    expected = np.log(np.trapezoid(np.exp(densities), log_kappa)) + prior + math.log(step)
    # Within four standard deviations of the grid over κ.
    np.testing.assert_allclose(float(found.log_weight[1, gamma_index]), expected, atol=0.02)
    assert len(STEPS) % 2 == 1


def test_floor_bounds_the_noise() -> None:
    context, _ = waves(40)
    prior = starting_prior(SMALL, CPU)
    A = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 10)))
    f = A @ torch.ones(10, dtype=torch.float64)
    pairs = Whitened.of(A, f, white_noise(torch.ones(40, dtype=torch.float64), prior.noise))
    found, free = (evidence(pairs, torch.ones(1, 10).double(), prior.amplitude, floor) for floor in (1e-4, 1e-12))
    assert float(found.kappa[0, found.log_weight.argmax()]) >= 1e-4
    assert float(free.kappa[0, free.log_weight.argmax()]) < 1e-6
    assert context.d == 40


def test_features() -> None:
    t = torch.linspace(0.05, 1, 20, dtype=torch.float64)
    block = Block(warp=0.1, power=0.5, rate=2.0, end=0.8)
    w = 0.15 + 0.7 * np.log1p(t.numpy() / 0.1) / np.log1p(10)
    e = (t.numpy() + 0.01) ** -0.5 * np.exp(-2 * t.numpy()) * (t.numpy() <= 0.8)
    np.testing.assert_allclose(block.features(t, 0.01, 4)[:, 3], e * np.cos(3 * np.pi * w))
    peak = Peak(0.5, 0.1).features(t, 0.01, 3)
    assert float(peak[(t - 0.5).abs() > 0.31].abs().max()) == 0
    both = torch.linspace(-1, 1, 41, dtype=torch.float64)
    sides = Block().features(both, 0.01, 2)[:, 1]
    np.testing.assert_allclose(sides, np.cos(np.pi * (0.15 + 0.35 * (1 + both.numpy()))), atol=1e-12)
    assert float(Spectrum(0, 3, 2, 0.1).weights(50, CPU)[-1]) == pytest.approx(0.1, rel=0.01)


def test_jumps_have_the_variance_of_a_random_place() -> None:
    """Of a step at a random place of its cell, the Riemann sum's error has the variance that is claimed."""
    rng, n = np.random.default_rng(0), 50
    y = grids.radii(1 / n, n)
    r = y.points[:, 0].numpy()
    place = 0.5 + rng.uniform(-0.5, 0.5, 4000) / n
    U = torch.from_numpy((r[:, None] > place).astype(float))
    error = (1 - place) - U.numpy().sum(axis=0) / n
    claimed = jump_variance(U, 1.0, y, torch.ones(n, dtype=torch.float64))
    assert np.mean((error - error.mean()) ** 2) == pytest.approx(float(claimed.mean()), rel=0.1)
    smooth = torch.cos(3 * y.points) - 1
    assert float(jump_variance(smooth, 1.0, y, torch.ones(n, dtype=torch.float64)).max()) < 1e-3 * float(claimed.mean())


def test_error_shapes_hold_jumps_and_noise() -> None:
    b, repeats = torch.tensor([0.0, 1.0, 3.0]).double(), torch.tensor([1.0, 2.0, 1.0]).double()
    shapes = with_quadrature(b, repeats, (0.1, 1.0), 1.0, flat(-10, 2))
    np.testing.assert_allclose(shapes[1].n, [4 / 3, 1 + 2 / 3, 3 + 4 / 3])
    assert shapes[1].nugget == pytest.approx(4 / 3)
    assert shapes[0].has_jumps
    assert not white_noise(repeats, flat(-10, 2)).has_jumps


def test_one_huge_value_does_not_set_the_scale() -> None:
    values = torch.ones(200, dtype=torch.float64)
    values[3] = 1e9
    assert size(values) == pytest.approx(1.0)
    assert size(torch.tensor([0.0, 0.0, 1e-200]).double()) > 0
