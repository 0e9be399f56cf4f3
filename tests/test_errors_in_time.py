"""Errors of measurements that go on in time: their algebra, how they are found, what they do to the band."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from kernelmap.core import Context
from kernelmap.posterior.kernel1d.measured.correlation import WHITE_NOISE, Correlation, Times, hypotheses
from kernelmap.posterior.kernel1d.measured.whitening import WIDE, Whitening
from measured_series import context_of, kernel, posterior, series


def test_whitening_is_the_marginal_of_a_wide_prior():
    """log p(f) and β given f against the dense Gaussian f ~ N(0, κ C + s² Z Zᵀ)."""
    generator = torch.Generator().manual_seed(0)
    t = torch.linspace(0, 1, 12, dtype=torch.float64)
    C = Correlation(0.3, 0.2).matrix(Times(t, torch.zeros(12, dtype=torch.long)))
    Z = torch.stack([torch.ones(12).double(), t - 0.5], dim=1)
    f = torch.randn(12, generator=generator, dtype=torch.float64) + 3
    kappa, scale = 0.7, 1e3
    whitening = Whitening.of(C, Z)
    assert whitening.correlated
    torch.testing.assert_close(whitening.T @ C @ whitening.T.mT, torch.eye(10).double())
    torch.testing.assert_close(whitening.T @ Z, torch.zeros(10, 2).double(), atol=1e-12, rtol=0)
    whitened = whitening.T @ f
    own = float(MultivariateNormal(torch.zeros(10).double(), kappa * torch.eye(10).double()).log_prob(whitened))
    dense = MultivariateNormal(torch.zeros(12).double(), kappa * C + (WIDE * scale) ** 2 * Z @ Z.mT)
    assert whitening.log_evidence(own, 1.0, scale) == pytest.approx(float(dense.log_prob(f)), abs=1e-4)
    gain = (WIDE * scale) ** 2 * Z.mT @ torch.linalg.inv(dense.covariance_matrix)
    torch.testing.assert_close(whitening.G @ f, gain @ f, rtol=1e-4, atol=1e-4)
    spread = torch.linalg.inv(Z.mT @ torch.linalg.inv(C) @ Z)
    torch.testing.assert_close(whitening.S, spread)


def test_errors_of_different_runs_are_apart():
    times = Times(torch.tensor([0.0, 1.0, 0.0]).double(), torch.tensor([0, 0, 1]))
    C = Correlation(2.0, 0.1).matrix(times)
    assert C.diagonal().tolist() == pytest.approx([1, 1, 1])
    assert float(C[0, 1]) == pytest.approx(0.9 * np.exp(-0.5))
    assert float(C[0, 2]) == 0
    assert sum(np.exp(log) for log in hypotheses(times).values()) == pytest.approx(1)
    assert list(hypotheses(Times(times.t[:1], times.run[:1]))) == [WHITE_NOISE]


def test_errors_in_time_are_found_and_white_ones_are_not(tmp_path):
    found = posterior(context_of(series(300, noise=0.3, tau=10.0, seed=1), tmp_path))
    assert found.error_time is not None
    assert 3 < found.error_time < 30
    assert posterior(context_of(series(noise=0.1), tmp_path)).error_time == 0


def test_errors_in_time_widen_the_band(tmp_path):
    """The kernel's standardised error: near 1 with AR(1), far above without."""
    entries = series(300, noise=0.3, tau=10.0, seed=2)
    context = context_of(entries, tmp_path)
    plain = Context(context.U, context.F, context.y, context.x, unknown=("offset",))
    sizes = [
        float(((found.mean[0] - torch.from_numpy(kernel(0))) / found.std[0]).square().mean().sqrt())
        for found in (posterior(context), posterior(plain))
    ]
    assert sizes[0] < 1.7
    assert sizes[0] < 0.7 * sizes[1]


def test_uncertain_times_widen_predictions(tmp_path):
    """The variance of errors and of the offset is a mean over all hypotheses, not that of the likeliest."""
    found = posterior(context_of(series(150, noise=0.3, tau=10.0, seed=1), tmp_path))
    fit = found.fits[0]
    assert fit.correlation is not None
    assert fit.nuisance is not None
    assert fit.correlation.factor != 1
    plain = replace(fit, correlation=fit.correlation._replace(factor=1.0))
    U, Z = found.context.U, torch.ones(found.context.d, 1).double()
    difference = fit.response_moments(U, Z)[2] - plain.response_moments(U, Z)[2]
    expected = (fit.correlation.factor - 1) * plain.mixture.white_variance() * (1 + float(fit.nuisance.S))
    torch.testing.assert_close(difference[:, 0], expected)
