"""Outliers: pairs that are far off are named and do not touch the kernel."""

import json

import numpy as np
import pytest
import torch

from kernel1d_systems import model, waves
from kernelmap.core import Context
from kernelmap.discovery import discover
from kernelmap.problems.radial import radial
from measured_series import error, posterior, series


def with_outliers(sizes: list[float], seed: int = 3) -> tuple[Context, torch.Tensor, list[int]]:
    """Pairs with 1 % noise, some of them off by so many standard deviations."""
    context, truth = waves(100, noise=0.01, seed=seed)
    wrong = torch.randperm(100, generator=torch.Generator().manual_seed(seed))[: len(sizes)].tolist()
    F = context.F.clone()
    F[0, wrong] += 0.01 * F.square().mean().sqrt() * torch.tensor(sizes, dtype=torch.float64)
    return Context(context.U, F, context.y, context.x), truth, wrong


@pytest.mark.parametrize("sizes", [[100.0], [1e6], [(-1) ** i * (40.0 + 20 * i) for i in range(10)]])
def test_outliers_are_named_and_do_not_touch_the_kernel(sizes):
    context, truth, wrong = with_outliers(sizes)
    clean = error(posterior(with_outliers([])[0]), truth.numpy())
    found = posterior(context)
    assert set(found.outliers) == set(wrong)
    assert error(found, truth.numpy()) < 2 * clean
    kept = model()
    kept.keep_outliers = True
    assert kept.posterior(context).outliers == {}
    assert error(kept.posterior(context), truth.numpy()) > 1.3 * error(found, truth.numpy())


def test_clean_pairs_are_left_alone():
    """The same answer to the last digit, and no name."""
    context, _, _ = with_outliers([])
    kept = model()
    kept.keep_outliers = True
    found = posterior(context)
    assert found.outliers == {}
    torch.testing.assert_close(found.mean, kept.posterior(context).mean, rtol=0, atol=0)


def test_exact_pairs_with_jumps_are_no_outliers():
    """The released inputs jump, and without noise a prior is 1e8 times as wide as what its pairs leave open."""
    systems = radial("sine").test
    context = systems.batch(torch.arange(0, systems.pairs, 15)[:302][None], torch.tensor([0]))[0, 0]
    assert posterior(context.to(torch.float64)).outliers == {}


def test_residuals_are_those_of_leaving_a_pair_out(tmp_path):
    """Against the dense Gaussian of one component: f_j given all other pairs, with and without a whitening."""
    from kernelmap.posterior.kernel1d.measured.fit import fit_measured
    from kernelmap.posterior.kernel1d.measured.outliers import LEAST_ERROR, residuals
    from kernelmap.posterior.kernel1d.units import size

    context, _ = waves(40, noise=0.05)
    precision = torch.linspace(0.2, 1.5, 40).double()
    f = context.F[0]
    found = fit_measured(context.U, f, context, None, model().prior, precision)
    component = max(found.mixture.components, key=lambda component: float(component.given.weights.max()))
    best = component.given.weights.argmax()
    kappa, alpha = component.given.kappa[best], (component.given.kappa * component.given.gamma)[best]
    A = context.U.mT @ (found.y.weights[:, None] / found.units.u * found.mixture.features.blocks[component.block])
    M = kappa * (1 / precision).diag() + alpha * (A * component.given.omega.square()) @ A.mT
    inverse = torch.linalg.inv(M * found.units.f**2)
    own = residuals(found, context.U, f, precision, torch.ones_like(f))
    torch.testing.assert_close(own.difference, (inverse @ f) / inverse.diagonal(), rtol=1e-5, atol=1e-9)
    noise = found.units.f**2 * kappa
    expected = 1 / inverse.diagonal() - noise / precision + noise
    torch.testing.assert_close(own.noise, expected, rtol=1e-5, atol=0)
    assert float(own.quadrature.min()) >= (LEAST_ERROR * size(f - f.median())) ** 2


def test_outliers_in_time_have_dates(tmp_path, kernelmap):
    entries = series(150, noise=0.02)
    entries["t"] = np.datetime64("2024-01-01") + np.arange(150)
    entries["f"][100] += 5 * entries["f"].std()
    np.savez(tmp_path / "dated.npz", **entries)
    code, out, err = kernelmap("discover", tmp_path / "dated.npz", "--out", tmp_path, "--json", tmp_path / "f.json")
    assert code == 0, err
    assert "outliers" in out
    (named,) = json.loads((tmp_path / "f.json").read_text())["outliers"]
    assert "2024-04-10" in named["pair"]
    assert "Outliers" in (tmp_path / "report.html").read_text()
    code, out, _ = kernelmap("discover", tmp_path / "dated.npz", "--out", tmp_path, "--keep-outliers")
    assert code == 0
    assert "outliers, in standard" not in out


def test_a_huge_response_that_no_other_pair_can_deny():
    """One pair alone sees the kernel beyond the middle: a huge kernel there would explain any response."""
    context, kernel = waves(80, noise=0.01)
    U = context.U * (context.y.points < 0.5)
    U[:, 17] = context.U[:, 17]
    F = (kernel * context.y.weights) @ U
    F += 0.01 * F.std() * torch.randn(80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    F[17] *= 1000
    found = discover(model(), Context(U, F[None], context.y, context.x))
    assert float((found.kernel.values[0] - kernel).norm()) < 2
    assert any("pair 17" in diagnostic.seen for diagnostic in found.diagnostics)
