"""Measurements as they are: offset, trend, errors that go on in time, several inputs."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from kernel1d_systems import SMALL, model, waves
from kernelmap.core import Context, grids
from kernelmap.core.errors import InputError
from kernelmap.core.places import Places
from kernelmap.discovery import discover
from kernelmap.io import load_discovery, read_measurements
from kernelmap.posterior import Kernel1dPosterior
from kernelmap.posterior.kernel1d.measured.correlation import WHITE_NOISE, Correlation, Times, hypotheses
from kernelmap.posterior.kernel1d.measured.whitening import WIDE, Whitening


def series(samples: int = 200, inputs: int = 1, noise: float = 0.03, tau: float = 0.0, seed: int = 0) -> dict:
    """Responses of an exponential and a delayed response to random inputs, with white or AR(1) errors."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(inputs, samples)) + np.abs(rng.normal(size=(inputs, samples)))
    f = np.zeros(samples)
    for i in range(inputs):
        weights = kernel(i)
        weights[[0, -1]] /= 2
        f += np.convolve(u[i], weights)[:samples]
    e = rng.normal(size=samples)
    if tau:
        phi = np.exp(-1 / tau)
        for j in range(1, samples):
            e[j] = phi * e[j - 1] + np.sqrt(1 - phi**2) * e[j]
    f += noise * f[30:].std() * e
    return {"operator": "convolution", "t": np.arange(1.0 * samples), "u": u, "f": f, "radius": 30.0}


def kernel(number: int) -> np.ndarray:
    s = np.arange(31.0)
    return np.exp(-s / 5) if number == 0 else 0.5 * (s / 4) ** 2 * np.exp(2 - s / 4) / 4


def context_of(entries: dict, tmp_path) -> Context:
    np.savez(tmp_path / "series.npz", **entries)
    return read_measurements(tmp_path / "series.npz").context


def posterior(context: Context) -> Kernel1dPosterior:
    return model().posterior(context)


def error(found: Kernel1dPosterior, truth: np.ndarray) -> float:
    K = found.mean[0].numpy()
    return float(np.linalg.norm(K - truth) / np.linalg.norm(truth))


# The algebra


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


# Offset and trend


def test_an_offset_is_found_and_does_not_touch_the_kernel(tmp_path):
    entries = series(noise=0.01)
    clean = posterior(context_of(entries | {"unknown": "none"}, tmp_path))
    offset = 3 * entries["f"].std()
    shifted = entries | {"f": entries["f"] + offset}
    found = posterior(context_of(shifted, tmp_path))
    value, std = found.nuisance["offset"]
    assert abs(value - offset) < 3 * std
    assert std < 0.1 * offset
    assert error(found, kernel(0)) < 1.3 * error(clean, kernel(0)) + 0.01
    assert error(posterior(context_of(shifted | {"unknown": "none"}, tmp_path)), kernel(0)) > 0.2
    assert float(found.relative_residual) == pytest.approx(float(clean.relative_residual), rel=0.3)


def test_a_trend_goes_on_in_predictions(tmp_path, kernelmap):
    entries = series(noise=0.01)
    slope = 0.05 * entries["f"].std()
    rising = entries | {"f": entries["f"] + slope * entries["t"], "unknown": "offset, trend"}
    rising["f"][150:] = np.nan
    found = discover(model(), context_of(rising, tmp_path))
    value, std = found.posterior.nuisance["trend"]
    assert abs(value - slope) < 3 * std
    found.save(tmp_path / "discovery.h5")
    code, _, err = kernelmap("predict", tmp_path / "discovery.h5", tmp_path / "series.npz", "--out", tmp_path / "p.npz")
    assert code == 0, err
    predicted = np.load(tmp_path / "p.npz")
    truth = entries["f"] + slope * entries["t"]
    assert np.abs((predicted["mean"] - truth) / predicted["std"])[160:].mean() < 2
    with pytest.raises(InputError, match="trend needs the times"):
        found.predict(found.context.U)


def test_an_offset_by_request_on_radii():
    """Without time there is none unless it is asked for, and then repeated inputs are no error."""
    context, truth = waves(60, noise=0.01)
    shifted = Context(context.U, context.F + 1.0, context.y, context.x)
    assert posterior(shifted).nuisance == {}
    asked = Context(context.U, context.F + 1.0, context.y, context.x, unknown=("offset",))
    found = posterior(asked)
    value, std = found.nuisance["offset"]
    assert abs(value - 1) < 3 * std
    assert error(found, truth.numpy()) < 0.3 * error(posterior(shifted), truth.numpy())


def test_what_is_unknown_is_checked(tmp_path):
    with pytest.raises(InputError, match="unknown must be the text"):
        context_of(series() | {"unknown": "drift"}, tmp_path)
    context, _ = waves(20)
    with pytest.raises(InputError, match="needs the places"):
        Context(context.U, context.F, context.y, context.x, unknown=("trend",))
    with pytest.raises(InputError, match="besides the kernel"):
        Context(context.U, context.F, context.y, context.x, unknown=("drift",))
    places = Places(torch.arange(20.0)[:, None].double(), ("x",))
    kept = Context(context.U, context.F, context.y, context.x, places, unknown=("offset", "trend"))
    kept.save(tmp_path / "context.h5")
    assert read_measurements(tmp_path / "context.h5").context.unknown == ("offset", "trend")


# Errors that go on in time


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


# Several inputs


def test_two_inputs_have_kernels_of_their_own(tmp_path):
    context = context_of(series(inputs=2), tmp_path)
    assert context.blocks == (31, 31)
    found = discover(model(), context)
    truth = np.concatenate([kernel(0), kernel(1)])
    for i, K in enumerate(found.kernel.values[0].numpy().reshape(2, -1)):
        assert np.linalg.norm(K - kernel(i)) < 0.1 * np.linalg.norm(kernel(i))
    inside = np.abs(found.kernel.values[0].numpy() - truth) <= 1.96 * found.std[0].numpy()
    assert inside.mean() > 0.85
    assert found.check is not None
    assert found.check.error < 0.08
    assert not [d for d in found.diagnostics if "go together" in d.seen]
    found.save(tmp_path / "discovery.h5")
    mean, std = load_discovery(tmp_path / "discovery.h5").predict(context.U)
    torch.testing.assert_close(mean, found.predict(context.U).mean)
    torch.testing.assert_close(std, found.predict(context.U).std)
    assert isinstance(found.posterior, Kernel1dPosterior)
    assert found.posterior.sample(3, torch.Generator().manual_seed(0)).shape == (3, 1, 62)


def test_proportional_inputs_are_named(tmp_path):
    entries = series(inputs=2)
    entries["u"][1] = -2 * entries["u"][0]
    found = discover(model(), context_of(entries, tmp_path))
    assert any("inputs 1 and 2 go together" in d.seen for d in found.diagnostics)


def test_several_inputs_by_the_command(tmp_path, kernelmap):
    entries = series(120, inputs=2)
    np.savez(tmp_path / "two.npz", **entries, u_name="rain, heat", u_unit="mm, W", f_unit="m", t_unit="days")
    code, out, err = kernelmap("discover", tmp_path / "two.npz", "--out", tmp_path, "--json", tmp_path / "two.json")
    assert code == 0, err
    assert "offset of f" in out
    assert (tmp_path / "kernel.csv").read_text().startswith("s,K1,std1,K2,std2\n")
    page = (tmp_path / "report.html").read_text()
    assert "K(s) of heat (m / (W · days))" in page
    assert "Offset of f" in page
    found = json.loads((tmp_path / "two.json").read_text())
    assert set(found["nuisance"]["offset"]) == {"value", "std"}
    assert found["error_time"] >= 0


def test_a_radius_is_selected_for_all_inputs_alike():
    from kernelmap.discovery.radius import cut

    y = grids.from_points(torch.arange(5.0)).with_components(2)
    context = Context(
        torch.arange(20.0).reshape(10, 2).double(), torch.ones(1, 2).double(), y, grids.point(), blocks=(5, 5)
    )
    part = cut(context, 2.0)
    assert part.blocks == (3, 3)
    assert part.U[:, 0].tolist() == [0, 2, 4, 10, 12, 14]


def test_the_small_prior_has_survivors():
    """The tests above are of a map that chooses among components."""
    assert len(SMALL.spectra) * len(SMALL.rates) > SMALL.survivors[-1]


# Outliers


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


def test_residuals_are_those_of_leaving_a_pair_out(tmp_path):
    """Against the dense Gaussian of one component: f_j given all other pairs, with and without a whitening."""
    from kernelmap.posterior.kernel1d.measured.fit import fit_measured
    from kernelmap.posterior.kernel1d.measured.outliers import LEAST_ERROR, residuals
    from kernelmap.posterior.kernel1d.units import size

    context, _ = waves(40, noise=0.05)
    precision = torch.linspace(0.2, 1.5, 40).double()
    f = context.F[0]
    found = fit_measured(context.U, f, context, None, model().prior, precision)
    cell = max(found.mixture.cells, key=lambda cell: float(cell.given.weights.max()))
    best = cell.given.weights.argmax()
    kappa, alpha = cell.given.kappa[best], (cell.given.kappa * cell.given.gamma)[best]
    A = context.U.mT @ (found.y.weights[:, None] / found.units.u * found.mixture.features.blocks[cell.block])
    M = kappa * (1 / precision).diag() + alpha * (A * cell.given.omega.square()) @ A.mT
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


def test_the_example_of_the_docs_runs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "measurements.md").read_text()
    examples = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    run = subprocess.run([sys.executable, "-c", examples], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "'offset': (" in run.stdout
    assert "{70: " in run.stdout
    assert 0 < float(run.stdout.splitlines()[-1]) < 1


def test_uncertain_times_widen_predictions(tmp_path):
    """The errors' variance is a mean over all hypotheses, not that of the likeliest."""
    found = posterior(context_of(series(150, noise=0.3, tau=10.0, seed=1), tmp_path))
    fit = found.fits[0]
    assert fit.correlation is not None
    assert fit.correlation.factor != 1
    plain = replace(fit, correlation=fit.correlation._replace(factor=1.0))
    U, Z = found.context.U, torch.ones(found.context.d, 1).double()
    difference = fit.response_moments(U, Z)[2] - plain.response_moments(U, Z)[2]
    expected = (fit.correlation.factor - 1) * plain.mixture.white_variance()
    torch.testing.assert_close(difference[:, 0], expected)
