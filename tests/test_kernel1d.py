"""The posterior of kernels of one coordinate, on systems with known kernels."""

import numpy as np
import pytest
import torch

from kernel1d_systems import model, waves
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.discovery.radius import select_radius
from kernelmap.posterior.kernel1d.fit import Pairs, fit


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
    assert any(component.shape.has_jumps for component in found.mixture.components)
    assert float(found.mixture.white_variance().max().sqrt()) < 1e-3
    mean = found.units.kernel * (found.mixture.weights @ found.kernel_moments()[1])
    seen = r > 0.15
    assert float((mean - kernel)[seen].norm() / kernel[seen].norm()) < 0.01


def test_many_pairs_are_piloted_by_some() -> None:
    context, _ = waves(1500, noise=0.05)
    assert Pairs(context.U, context.F[0], context.F[0], context.y, 1.0).some(1000).tokens.shape == (60, 1000)
    posterior = model().posterior(context)
    few = model().posterior(context.select(torch.arange(1000)))
    assert 0.045 < float(posterior.relative_residual) < 0.055
    assert float((posterior.std / few.std).median()) < 0.98


def test_finds_a_smooth_kernel() -> None:
    context, kernel = waves(60, noise=0.01)
    posterior = model().posterior(context)
    error = (posterior.mean[0] - kernel).norm() / kernel.norm()
    assert float(error) < 0.1
    assert 0.003 < float(posterior.relative_residual) < 0.03
    assert posterior.informed_directions > 3


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


def test_refuses_what_it_cannot_take() -> None:
    context, _ = waves(30)
    plane = Context(torch.randn(64, 5).double(), torch.randn(1, 5).double(), grids.rectangle(8), context.x)
    with pytest.raises(InputError, match="one coordinate"):
        model().check_context(plane)
    single = context.select(torch.tensor([0]))
    with pytest.raises(InputError, match="at least 2"):
        model().check_context(single)


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
