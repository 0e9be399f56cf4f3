"""K(x, y) without training: the algebra against dense Gaussians, Green's functions, responses that are not linear."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.io import loadmat
from scipy.special import gamma, kv
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import relative_difference
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.posterior import GenericIntegralMap, GenericIntegralOptions, GenericIntegralPosterior
from kernelmap.posterior.integral.generic import map as generic
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.component import Component
from kernelmap.posterior.integral.generic.evidence import log_evidence
from kernelmap.posterior.integral.generic.matern import Matern
from kernelmap.posterior.integral.generic.mixture import Weighted
from kernelmap.posterior.integral.generic.pairs import Hypothesis, Pairs


def find(context: Context, **options) -> GenericIntegralPosterior:
    return GenericIntegralMap(ContextShape.of(context), GenericIntegralOptions(**options)).posterior(context)


def smooth_inputs(y: np.ndarray, d: int, length: float, seed: int) -> np.ndarray:
    """Gaussian random functions on [0, 1], one in each column."""
    rng, k = np.random.default_rng(seed), np.arange(1, 60)
    waves = np.concatenate([np.cos(np.pi * k[:, None] * y), np.sin(np.pi * k[:, None] * y)])
    sizes = np.exp(-0.25 * (np.pi * k * length) ** 2)
    return waves.T @ (np.concatenate([sizes, sizes])[:, None] * rng.normal(size=(2 * len(k), d)))


def green(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of -v'' = u, v(0) = v(1) = 0."""
    return np.minimum(x[:, None], y) * (1 - np.maximum(x[:, None], y))


def string(d: int, noise: float = 0.0, offset: float = 0.0, stiffening: float = 0.0) -> Context:
    """Deflections of a string under loads: -v'' + c v³ = u, by differences on 101 nodes."""
    y = np.linspace(0, 1, 101)
    U = smooth_inputs(y, d, 0.1, seed=0)
    A = (2 * np.eye(99) - np.eye(99, k=1) - np.eye(99, k=-1)) * 100**2
    V = np.linalg.solve(A, U[1:-1])
    c = stiffening / np.abs(V).max() ** 2
    for _ in range(20):
        V -= np.stack(
            [
                np.linalg.solve(A + 3 * c * np.diag(v**2), A @ v + c * v**3 - u)
                for v, u in zip(V.T, U[1:-1].T, strict=True)
            ],
            1,
        )
    F = np.pad(V, ((1, 1), (0, 0)))
    F = F + offset * F.std() * np.cos(2 * y)[:, None] + noise * F.std() * np.random.default_rng(1).normal(size=F.shape)
    grid = grids.from_points(y)
    return Context(torch.from_numpy(U), torch.from_numpy(F), grid, grid)


@pytest.mark.parametrize("p", [0, 1, 2, 4])
def test_the_matern_covariance(p):
    """2^(1-ν) / Γ(ν) (√(2ν) r/l)^ν K_ν(√(2ν) r/l), ν = p + 1/2."""
    r, nu = np.linspace(0.01, 3, 50), p + 0.5
    t = math.sqrt(2 * nu) * r / 0.7
    expected = 2 ** (1 - nu) / gamma(nu) * t**nu * kv(nu, t)
    np.testing.assert_allclose(Matern(p, 0.7).of_distance(torch.from_numpy(r)), expected, rtol=1e-10)
    assert float(Matern(p, 0.7).of_distance(torch.zeros(1))) == 1


def small(d: int, components: int = 1) -> tuple[Context, Grid, Grid]:
    rng = np.random.default_rng(2)
    y = grids.from_points([0.0, 0.1, 0.4, 0.5, 0.9, 1.0])
    x = Grid(torch.from_numpy(rng.uniform(size=(5, 2))), torch.ones(5, dtype=torch.float64)).with_components(components)
    U, F = (torch.from_numpy(rng.normal(size=(n, d))) for n in (y.size, x.size))
    return Context(U, F, y, x), y, x


class Dense:
    """All of K, h and F as one Gaussian, with every covariance built from the hypotheses of a mixture."""

    def __init__(self, posterior: GenericIntegralPosterior) -> None:
        context, mixture = posterior.context, posterior.mixtures[0]
        y, bands = context.y, mixture.pairs.bands
        A = y.value_weights[:, None] * context.U / mixture.A_scale
        ones, (M, d) = torch.ones(1, context.d).to(A), context.F.shape
        self.unit, self.f_scale = mixture.unit, mixture.f_scale
        K, across = A.new_zeros(M * y.size, M * y.size), A.new_zeros(M * y.size, M * d)
        h, h_across, seen = A.new_zeros(M, M), A.new_zeros(M, M * d), mixture.s2 * torch.eye(M * d).to(A)
        for band, _, (matern, tau), a2 in mixture.weighted:
            V = bands.V[:, bands.members[band]]
            C_x, C_y = V @ V.mT, matern.matrix(y)
            C_y = a2 * C_y / (A.mT @ C_y @ A).diagonal().mean()
            h_x = a2 * tau**2 * C_x
            K, h = K + torch.kron(C_x, C_y), h + h_x
            across = across + torch.kron(C_x, C_y @ A)
            h_across = h_across + torch.kron(h_x, ones)
            seen = seen + torch.kron(C_x, A.mT @ C_y @ A) + torch.kron(h_x, ones.mT @ ones)
        G = (context.F / mixture.f_scale).flatten()
        self.mean = (across @ torch.linalg.solve(seen, G)).reshape(M, -1) * self.unit
        covariance = K - across @ torch.linalg.solve(seen, across.mT)
        self.std = covariance.diagonal().sqrt().reshape(M, -1) * self.unit
        self.h = h_across @ torch.linalg.solve(seen, G) * self.f_scale
        self.h_std = (h - h_across @ torch.linalg.solve(seen, h_across.mT)).diagonal().sqrt() * self.f_scale
        self.log_prob = torch.distributions.MultivariateNormal(torch.zeros_like(G), seen).log_prob(G)


@pytest.mark.parametrize(("d", "components"), [(4, 1), (4, 2), (20, 1)])
def test_mean_and_band_are_those_of_the_dense_gaussian(monkeypatch, d, components):
    """For fewer and for more pairs than y has values, with h in every band."""
    monkeypatch.setattr(generic, "COMPONENTS", 1)
    monkeypatch.setattr(generic, "TAU", (0.7,))
    context, *_ = small(d, components)
    posterior = find(context, smoothness=(1, 2), lengths=1)
    dense = Dense(posterior)
    torch.testing.assert_close(posterior.mean, dense.mean, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(posterior.std, dense.std, rtol=1e-7, atol=1e-9)
    h, std = posterior.homogeneous
    torch.testing.assert_close(h[:, 0], dense.h, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(std[:, 0], dense.h_std, rtol=1e-7, atol=1e-9)


def test_a_mixture_has_the_moments_of_its_parts_together():
    """E = Σ w_c E_c and Var = Σ w_c [ Var_c + (E_c - E)² ], where a band has two components."""
    mixture = find(small(8)[0], smoothness=(1,), lengths=1).mixtures[0]
    others = tuple(part for part in mixture.weighted if part.band > 0)
    two = [
        Weighted(0, 0.3, Hypothesis(Matern(0, 0.5), 0.0), 4.0),
        Weighted(0, 0.7, Hypothesis(Matern(2, 0.2), 0.0), 0.1),
    ]
    alone = [replace(mixture, weighted=(part._replace(weight=1.0), *others)) for part in two]
    means, variances = zip(*(each.moments(Component.kernel) for each in alone), strict=True)
    mean, variance = replace(mixture, weighted=(*two, *others)).moments(Component.kernel)
    torch.testing.assert_close(mean, 0.3 * means[0] + 0.7 * means[1])
    spread = [of + (each - mean).square() for of, each in zip(variances, means, strict=True)]
    torch.testing.assert_close(variance, 0.3 * spread[0] + 0.7 * spread[1])


def test_predictions_are_those_of_the_kernels_drawn(monkeypatch):
    """K w u of kernels of the posterior, and noise."""
    monkeypatch.setattr(generic, "COMPONENTS", 1)
    context, y, _ = small(8)
    posterior = find(context, smoothness=(1,), lengths=1, homogeneous=False)
    draws = posterior.sample(600, torch.Generator().manual_seed(0))
    u = torch.linspace(-1, 1, y.size).to(torch.float64)[:, None]
    mean, std = posterior.predict(u)
    response = (draws @ (y.value_weights[:, None] * u))[..., 0]
    noise = posterior.relative_residual * posterior.mixtures[0].f_scale
    torch.testing.assert_close(response.mean(dim=0), mean[:, 0], rtol=0, atol=0.2 * float(std.max()))
    torch.testing.assert_close((response.var(dim=0) + noise**2).sqrt(), std[:, 0], rtol=0.15, atol=0)
    torch.testing.assert_close(draws.mean(dim=0), posterior.mean, rtol=0, atol=0.2 * float(posterior.std.max()))


@pytest.mark.parametrize("d", [4, 20])
def test_evidence_is_that_of_the_dense_gaussian(d):
    """Differences between hypotheses, amplitudes and noise levels, for one band that holds all of x."""
    context, y, x = small(d)
    one = Bands(Bands.of(x).V, (slice(0, x.size),))
    A = y.value_weights[:, None] * context.U
    pairs = Pairs.of(A, context.F, y, one)

    def ours(hypothesis: Hypothesis, ratio: int, s2: float) -> float:
        D, P = pairs.decomposed(pairs.gram(hypothesis.matern)[0], hypothesis.tau)
        found = log_evidence(D, pairs.power(P), pairs.rows, D.new_tensor([s2]))[0, 0, ratio]
        return float(found - 0.5 * (pairs.rest[0] / s2 + pairs.rest_count * x.size * math.log(s2)))

    def dense(hypothesis: Hypothesis, ratio: int, s2: float) -> float:
        S = A.mT @ hypothesis.matern.matrix(y) @ A
        a2 = 2.0 ** (ratio - 6) * s2
        covariance = a2 * (S / S.diagonal().mean() + hypothesis.tau**2) + s2 * torch.eye(d).to(S)
        normal = torch.distributions.MultivariateNormal(torch.zeros(d).to(S), covariance)
        return float(normal.log_prob(context.F).sum())

    cases = [(Hypothesis(Matern(1, 0.5), 0.0), 4, 0.1), (Hypothesis(Matern(2, 0.2), 1.0), 9, 0.4)]
    differences = [of(*cases[1]) - of(*cases[0]) for of in (ours, dense)]
    assert differences[0] == pytest.approx(differences[1], rel=1e-8)


def check_kernel(posterior: GenericIntegralPosterior, truth: Tensor, most: float) -> None:
    error = posterior.mean - truth
    assert float(error.norm() / truth.norm()) < most
    assert 0.85 <= float((error.abs() <= 1.96 * posterior.std).double().mean()) <= 1
    assert float(posterior.std.square().mean()) <= 25 * float(error.square().mean())


def test_the_green_function_of_a_string():
    """A ridge along the diagonal; one covariance in x and one in y had bands twenty times too wide."""
    context = string(40)
    y = context.y.points[:, 0].numpy()
    posterior = find(context)
    check_kernel(posterior, torch.from_numpy(green(y, y)), 0.02)
    assert float(posterior.relative_residual) < 1e-4


def test_bands_of_x_are_what_makes_it_good(monkeypatch):
    context = string(40, noise=0.03)
    y = context.y.points[:, 0].numpy()
    truth = torch.from_numpy(green(y, y))
    posterior = find(context, smoothness=(1, 2), lengths=1)
    monkeypatch.setattr(generic.Bands, "of", _one_band)
    alike = find(context, smoothness=(1, 2), lengths=1)
    assert float((alike.mean - truth).norm()) > 1.3 * float((posterior.mean - truth).norm())


def _one_band(x: Grid) -> Bands:
    V = torch.linalg.eigh(Matern(1, 1.0).matrix(x))[1]
    return Bands(V, (slice(0, x.size),))


def test_noise_and_the_homogeneous_part_are_found():
    context = string(40, noise=0.03, offset=0.5)
    y, size = context.y.points[:, 0].numpy(), float(string(40).F.std())
    posterior = find(context)
    assert float(posterior.relative_residual) * float(context.F.square().mean().sqrt()) == pytest.approx(
        0.03 * size, rel=0.25
    )
    h, std = (values[:, 0].numpy() for values in posterior.homogeneous)
    truth = 0.5 * size * np.cos(2 * y)
    assert np.abs(h - truth).max() < 0.1 * size
    assert np.mean(np.abs(h - truth) < 1.96 * std) > 0.85
    check_kernel(posterior, torch.from_numpy(green(y, y)), 0.1)
    without = find(context, homogeneous=False)
    assert not without.homogeneous.mean.any()
    assert float((without.mean - posterior.mean).norm() / posterior.mean.norm()) > 0.1


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_responses_that_are_not_linear_are_named(noise):
    model = load_model("integral")[0]
    seen = {c: [d.seen for d in discover(model, string(30, noise, 0.0, c)).diagnostics] for c in (0.0, 10.0)}
    assert "The responses are not linear in u." in seen[10.0]
    assert "The responses are not linear in u." not in seen[0.0]


def membrane(n1: int, n2: int, d: int) -> Context:
    """Deflections of a membrane on a rectangle under random loads, by differences: -Δv = u."""
    rng = np.random.default_rng(0)
    x = np.stack(np.meshgrid(np.linspace(0, 2, n1), np.linspace(0, 1, n2), indexing="ij"), -1).reshape(-1, 2)
    lines = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1) for n in (n1, n2))
    A = np.kron(next(lines), np.eye(n2)) + np.kron(np.eye(n1), next(lines))
    inside = np.flatnonzero(((x > 0) & (x < [2, 1])).all(axis=1))
    waves = np.cos(x @ rng.normal(size=(2, 100)) / 0.15 + rng.uniform(0, 2 * np.pi, 100))
    U = waves @ rng.normal(size=(100, d))
    F = np.zeros_like(U)
    F[inside] = np.linalg.solve(A[np.ix_(inside, inside)], U[inside])
    grid = grids.mesh(*(torch.linspace(0, side, n, dtype=torch.float64) for side, n in ((2, n1), (1, n2))))
    return Context(torch.from_numpy(U), torch.from_numpy(F), grid, grid)


def test_what_few_pairs_leave_of_a_rough_kernel_is_linear():
    """It is larger for larger u, as terms of higher order are: without a rough part of K log odds were 95."""
    assert find(membrane(21, 11, 30), lengths=1).log_odds_of_nonlinearity < 0


def test_the_units_of_everything_may_be_any():
    context = string(20, noise=0.01)
    y = Grid(1e3 * context.y.points, 1e3 * context.y.weights)
    scaled = Context(1e-140 * context.U, 1e140 * context.F, y, y)
    a, b = find(context, lengths=1), find(scaled, lengths=1)
    assert relative_difference(b.mean * 1e-137 * 1e-140, a.mean) < 1e-6
    assert relative_difference(b.std * 1e-137 * 1e-140, a.std) < 1e-6


EXACT = {
    "laplace": lambda x, y: np.minimum(x, y) * (1 - np.maximum(x, y)),
    "helmholtz": lambda x, y: np.sin(15 * np.minimum(x, y)) * np.sin(15 * (np.maximum(x, y) - 1)) / (15 * np.sin(15)),
}


@pytest.mark.parametrize(
    ("name", "pairs", "most"),
    [("helmholtz", 80, 0.0035), ("helmholtz", 40, 0.01), ("laplace", 80, 0.0015), ("laplace", 40, 0.025)],
)
def test_green_functions_that_others_solved(reference, name, pairs, most):
    data = loadmat(reference / "real" / "green" / f"{name}.mat")
    x, y = (data[letter].ravel() for letter in "XY")
    U, F = (torch.from_numpy(data[letter][:, :pairs].copy()) for letter in "FU")
    posterior = find(Context(U, F, grids.from_points(y), grids.from_points(x)))
    check_kernel(posterior, torch.from_numpy(EXACT[name](x[:, None], y)), most)
    assert posterior.log_odds_of_nonlinearity < 0
