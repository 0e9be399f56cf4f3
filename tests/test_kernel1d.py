"""The engine for kernels of one coordinate, against dense Gaussian conditioning and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.discovery import discover
from kernelmap.discovery.radius import select_radius
from kernelmap.evaluation import calibrate
from kernelmap.io.models import load_model, save_model
from kernelmap.posterior import Kernel1dMap, Kernel1dOptions
from kernelmap.posterior.kernel1d.components import Block, Peak, Spectrum
from kernelmap.posterior.kernel1d.draws import draw_from_prior
from kernelmap.posterior.kernel1d.errors import Density, ErrorShape, jump_variance, white_noise, with_quadrature
from kernelmap.posterior.kernel1d.evidence import LOG_GAMMA, STEPS, Whitened, evidence
from kernelmap.posterior.kernel1d.fit import Pairs, averaged, fit
from kernelmap.posterior.kernel1d.learning import learn_odds
from kernelmap.posterior.kernel1d.prior import starting_prior
from kernelmap.posterior.kernel1d.units import size
from kernelmap.problems.world import draw_system

CPU = torch.device("cpu")

SMALL = Kernel1dOptions(
    cosines=24,
    warps=(0.0, 0.1),
    rates=(0.0, 3.0),
    powers=(),
    spectra=((3, 2), (6, 6)),
    floors=(1e-3,),
    bands=(),
    peak_widths=(),
    ends=(),
    survivors=(4, 2),
)


def flat(low: float, high: float) -> Density:
    knots = torch.linspace(low, high, 5, dtype=torch.float64)
    return Density(knots, torch.zeros_like(knots)).normalised()


def waves(d: int, n: int = 60, seed: int = 0, noise: float = 0.0) -> tuple[Context, torch.Tensor]:
    """Radial tokens of random waves, responses to a smooth kernel, and that kernel."""
    generator = torch.Generator().manual_seed(seed)
    y = grids.radii(1 / n, n)
    k = 1 + 14 * torch.rand(d, generator=generator, dtype=torch.float64)
    U = (torch.cos(k * y.points) - 1) * torch.randn(d, generator=generator, dtype=torch.float64)
    kernel = torch.exp(-3 * y.points[:, 0]) * torch.cos(5 * y.points[:, 0])
    f = (kernel * y.weights) @ U
    f = f + noise * f.square().mean().sqrt() * torch.randn(d, generator=generator, dtype=torch.float64)
    return Context(U, f[None], y, grids.point()), kernel


def model(options: Kernel1dOptions = SMALL) -> Kernel1dMap:
    return Kernel1dMap(ContextShape.of(waves(30)[0]), options)


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


def test_slopes_at_the_ends_are_free() -> None:
    """A kernel with a slope at 0 that no pair sees: the band holds it."""
    n, generator = 80, torch.Generator().manual_seed(0)
    y = grids.radii(1 / n, n)
    k = 2 + 3 * torch.rand(40, generator=generator, dtype=torch.float64)
    U = torch.cos(k * y.points + torch.rand(40, generator=generator, dtype=torch.float64)) - 1
    kernel = 1 - y.points[:, 0]
    found = model().posterior(Context(U, ((kernel * y.weights) @ U)[None], y, grids.point()))
    assert float(((found.mean[0] - kernel).abs() <= 3 * found.std[0]).double().mean()) > 0.9


def test_every_pair_has_its_own_quadrature_error() -> None:
    """Half of the tokens jump: the exact pairs among them are not taken for noisy ones."""
    n, generator = 100, torch.Generator().manual_seed(0)
    y = grids.radii(1 / n, n)
    r, fine = y.points[:, 0], (torch.arange(100 * n, dtype=torch.float64) + 0.5) / (100 * n)
    k = 2 + 20 * torch.rand(60, generator=generator, dtype=torch.float64)
    place = 0.2 + 0.6 * torch.rand(60, generator=generator, dtype=torch.float64)

    def tokens(at: torch.Tensor) -> torch.Tensor:
        jump = (at[:, None] > place).double() * (torch.arange(60) % 2)
        return torch.cos(k * at[:, None]) - 1 + 4 * jump

    kernel = torch.exp(-3 * r)
    f = (torch.exp(-3 * fine) / len(fine)) @ tokens(fine)
    found = fit(tokens(r), f, y, model().prior)
    assert any(cell.shape.has_jumps for cell in found.mixture.cells)
    assert float(found.mixture.white_variance().max().sqrt()) < 1e-3
    mean = found.units.kernel * (found.mixture.weights @ found.kernel_moments()[1])
    seen = r > 0.15
    assert float((mean - kernel)[seen].norm() / kernel[seen].norm()) < 0.01


def test_many_pairs_are_piloted_by_some() -> None:
    context, _ = waves(1500, noise=0.05)
    assert Pairs(context.U, context.F[0], context.F[0], context.y, 1.0).some(1000).U.shape == (60, 1000)
    posterior = model().posterior(context)
    few = model().posterior(context.select(torch.arange(1000)))
    assert 0.045 < float(posterior.relative_residual) < 0.055
    assert float((posterior.std / few.std).median()) < 0.98


def test_error_shapes_hold_jumps_and_noise() -> None:
    b, repeats = torch.tensor([0.0, 1.0, 3.0]).double(), torch.tensor([1.0, 2.0, 1.0]).double()
    shapes = with_quadrature(b, repeats, (0.1, 1.0), 1.0, flat(-10, 2))
    np.testing.assert_allclose(shapes[1].n, [4 / 3, 1 + 2 / 3, 3 + 4 / 3])
    assert shapes[1].nugget == pytest.approx(4 / 3)
    assert shapes[0].has_jumps
    assert not white_noise(repeats, flat(-10, 2)).has_jumps


def test_finds_a_smooth_kernel() -> None:
    context, kernel = waves(60, noise=0.01)
    posterior = model().posterior(context)
    error = (posterior.mean[0] - kernel).norm() / kernel.norm()
    assert float(error) < 0.1
    assert 0.003 < float(posterior.relative_residual) < 0.03
    assert posterior.informed_directions > 3


def test_units_do_not_matter() -> None:
    context, _ = waves(40, noise=0.02)
    reference = model().posterior(context)
    for length, u, f in ((1e-6, 1.0, 1.0), (1e6, 1.0, 1.0), (1.0, 1e-150, 1e150), (1.0, 1e150, 1e-150)):
        y = grids.radii(length / 60, 60)
        scaled = model().posterior(Context(u * context.U, f * context.F, y, context.x))
        unit = f / u / length
        for ours, theirs in ((scaled.mean, reference.mean), (scaled.std, reference.std)):
            assert float((ours / unit - theirs).norm() / theirs.norm()) < 1e-6


def test_one_huge_value_does_not_set_the_scale() -> None:
    values = torch.ones(200, dtype=torch.float64)
    values[3] = 1e9
    assert size(values) == pytest.approx(1.0)
    assert size(torch.tensor([0.0, 0.0, 1e-200]).double()) > 0


def test_order_of_pairs_does_not_matter() -> None:
    context, _ = waves(30, noise=0.05)
    turned = context.select(torch.arange(29, -1, -1))
    np.testing.assert_allclose(model().posterior(turned).mean, model().posterior(context).mean, rtol=1e-6, atol=1e-9)


def test_repeated_pairs_are_averaged() -> None:
    context, _ = waves(40, noise=0.05)
    many = context.select(torch.arange(40).repeat(20))
    U, f, repeats = averaged(many.U, many.F[0])
    assert repeats.tolist() == [20.0] * 40
    assert U.shape[1] == len(f) == 40
    once, often = model().posterior(context), model().posterior(many)
    np.testing.assert_allclose(often.mean, once.mean, rtol=1e-3, atol=1e-3 * float(once.mean.abs().max()))
    np.testing.assert_allclose(often.std, once.std, rtol=1e-2)


def test_batch_is_a_loop() -> None:
    first, second = waves(30, seed=1, noise=0.01)[0], waves(30, seed=2, noise=0.01)[0]
    both = Context(torch.stack([first.U, second.U]), torch.stack([first.F, second.F]), first.y, first.x)
    posterior = model().posterior(both)
    np.testing.assert_allclose(posterior.mean[1], model().posterior(second).mean)
    assert posterior.predict(both.U).mean.shape == (2, 1, 30)
    assert posterior.relative_residual.shape == (2,)


def test_samples_have_the_posterior_moments() -> None:
    context, _ = waves(12, noise=0.05)
    posterior = model().posterior(context)
    drawn = posterior.sample(2000, torch.Generator().manual_seed(0))[:, 0]
    std = posterior.std[0]
    assert float(((drawn.mean(dim=0) - posterior.mean[0]) / std).abs().max()) < 0.15
    np.testing.assert_allclose(drawn.std(dim=0), std, rtol=0.1)


def test_intervals_are_quantiles() -> None:
    posterior = model().posterior(waves(20, noise=0.1)[0])
    for level in (0.5, 0.95):
        low, high = posterior.interval(level)
        np.testing.assert_allclose(posterior.cdf(high) - posterior.cdf(low), level, atol=1e-6)
    with pytest.raises(InputError, match="between 0 and 1"):
        posterior.interval(95)


def test_predictions_cover_new_pairs() -> None:
    context, _ = waves(120, noise=0.05)
    rest, new = context.select(torch.arange(80)), context.select(torch.arange(80, 120))
    mean, std = model().posterior(rest).predict(new.U)
    assert float(((mean - new.F).abs() <= 1.96 * std).double().mean()) >= 0.85
    assert 0.5 < float(((mean - new.F) / std).square().mean().sqrt()) < 1.5


def test_calibrated_on_draws_from_its_own_prior() -> None:
    tested = model()

    def draws() -> list[tuple[Context, torch.Tensor]]:
        return [draw_from_prior(tested.prior, draw_system(3, i, d=40).context, 0.02, seed=i) for i in range(80)]

    found = calibrate(tested, draws(), seed=0)
    assert found.coverage(0.5) == pytest.approx(0.5, abs=0.1)
    assert found.coverage(0.95) == pytest.approx(0.95, abs=0.04)


def test_learning_raises_the_odds_of_what_systems_need() -> None:
    contexts = [waves(40, seed=i, noise=0.01)[0] for i in range(6)]
    start = starting_prior(SMALL, CPU)
    learned = learn_odds(start, contexts, rounds=2)
    needed = sum(fit(c.U, c.F[0], c.y, start).mixture.component_weights for c in contexts)
    best = int(needed.argmax())  # pyright: ignore
    assert learned.log_odds[best] > start.log_odds[best]
    assert float(learned.log_odds.exp().sum()) == pytest.approx(1)
    peak = math.exp(float(learned.noise.knots[learned.noise.log_density.argmax()]))
    assert 0.003 < peak < 0.03


def test_learned_components_find_kernels_like_those_of_training(tmp_path) -> None:
    """From few pairs, where the generic components do not know enough."""
    training = [waves(50, seed=i)[0] for i in range(3)]
    taught = Kernel1dMap.fit(training, 50, replace(SMALL, remainders=(0.1, 1e-3)))
    context, kernel = waves(6, seed=9, noise=0.02)
    errors = [float((m.posterior(context).mean[0] - kernel).norm() / kernel.norm()) for m in (taught, model())]
    assert errors[0] < 0.5 * errors[1]
    save_model(tmp_path, taught, {})
    loaded, _ = load_model(tmp_path)
    torch.testing.assert_close(loaded.posterior(context).mean, taught.posterior(context).mean)  # pyright: ignore


def test_refuses_what_it_cannot_take() -> None:
    context, _ = waves(30)
    plane = Context(torch.randn(64, 5).double(), torch.randn(1, 5).double(), grids.rectangle(8), context.x)
    with pytest.raises(InputError, match="one coordinate"):
        model().check_context(plane)
    single = context.select(torch.tensor([0]))
    with pytest.raises(InputError, match="at least 2"):
        model().check_context(single)


def test_discovery_of_any_units_has_no_false_alarm() -> None:
    context, _ = waves(100, noise=0.001)
    y = grids.radii(1e-9, 60)
    found = discover(model(), Context(1e100 * context.U, 1e-100 * context.F, y, context.x))
    assert not found.diagnostics
    assert 0 < found.identifiability.expected_error < 0.25


def test_the_radius_is_chosen_by_evidence() -> None:
    """A kernel that ends at a quarter of the range is found with that radius, or with more, not with less."""
    n = 160
    y = grids.radii(1 / n, n)
    generator = torch.Generator().manual_seed(0)
    k = 1 + 60 * torch.rand(80, generator=generator, dtype=torch.float64)
    U = torch.cos(k * y.points + torch.rand(80, generator=generator, dtype=torch.float64)) - 1
    kernel = torch.exp(-((y.points[:, 0] / 0.08) ** 2)) * (y.points[:, 0] < 0.25)
    f = (kernel * y.weights) @ U + 0.003 * torch.randn(80, generator=generator, dtype=torch.float64)
    found = select_radius(model(), Context(U, f[None], y, grids.point()))
    assert found.radius in (0.25, 0.5)
    assert set(found.log_evidence) == {1.0, 0.5, 0.25, 0.125}
    assert found.log_evidence[0.125] < found.log_evidence[0.25]
