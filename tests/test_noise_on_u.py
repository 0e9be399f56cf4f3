"""Noise on u, and known errors of single measurements of f."""

import numpy as np
import pytest
import torch

from kernel1d_systems import model
from kernelmap.core import Context, grids
from kernelmap.core.errors import InputError
from kernelmap.discovery import discover
from kernelmap.discovery.noisy_inputs import CERTAIN, noise_everywhere
from kernelmap.io import read_measurements
from kernelmap.operators import Convolution, Radial
from kernelmap.operators.smoothing import Noise
from kernelmap.posterior.kernel1d.measured.noisy_inputs import autocovariance, covariance_through
from kernelmap.report.besides import besides

STEP, COUNT = 0.1, 30


def u(x: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sum([a * np.sin(k * x + c) for a, k, c in rng.uniform((0.5, 0.3, 0), (1, 3, 6), (12, 3))], axis=0)


def line(level: float, seed: int = 0, noise: float = 0.01) -> tuple[dict, np.ndarray]:
    """f of a Gaussian kernel at every fourth point of a line, exact but for its noise; u with noise of its own."""
    rng = np.random.default_rng(seed)
    x, r = STEP * np.arange(460), STEP * np.arange(1, COUNT + 1)
    K = np.exp(-(r**2) / 2)
    fine = STEP / 8 * (np.arange(8 * COUNT) + 0.5)
    f = np.full(len(x), np.nan)
    measured = np.arange(COUNT, len(x) - COUNT, 4)
    at = x[measured][:, None]
    f[measured] = STEP / 8 * (u(at + fine) + u(at - fine) - 2 * u(at)) @ np.exp(-(fine**2) / 2)
    f += noise * np.nanstd(f) * rng.normal(size=f.shape)
    return {"x": x, "u": u(x) + level * u(x).std() * rng.normal(size=len(x)), "f": f, "radius": STEP * COUNT}, K


def context_of(entries: dict, tmp_path) -> Context:
    np.savez(tmp_path / "line.npz", **entries)
    return read_measurements(tmp_path / "line.npz").context


def error(context: Context, K: np.ndarray) -> float:
    found = model().posterior(context).mean[0].numpy()
    return float(np.linalg.norm(found - K) / np.linalg.norm(K))


# Smoothing


def test_smoothing_is_the_conditional_mean():
    """Against the dense Gaussian with the covariance that the filter stands for, in the middle and at both ends."""
    x = STEP * np.arange(700)
    noisy = u(x) + 0.05 * np.random.default_rng(0).normal(size=700)
    noise = Noise.of(noisy[None])
    assert noise.std == pytest.approx(0.05, rel=0.1)
    assert noise.log_odds > 20
    S = noise.filter
    C = noise.std**2 * np.linalg.solve(np.eye(len(S)) - S, S)
    direct = C @ np.linalg.solve(C + noise.std**2 * np.eye(len(S)), noisy[: len(S)])
    smooth = noise.removed(noisy[None])[0]
    middle = len(S) // 2
    np.testing.assert_allclose(smooth[: middle + 1], direct[: middle + 1], atol=1e-5)
    left = noise.std**2 * S[middle, middle:]
    np.testing.assert_allclose(noise.left, left, atol=1e-8)
    residual = smooth - u(x)
    assert residual.std() == pytest.approx(np.sqrt(noise.left[0]), rel=0.4)
    assert residual.std() < 0.6 * 0.05


def test_exact_inputs_have_no_noise():
    for exact in (u(STEP * np.arange(150)), np.random.default_rng(1).normal(size=150).cumsum()):
        assert Noise.of(exact[None]).log_odds < 20
        np.testing.assert_allclose(Noise.of(exact[None], 1e-9).removed(exact[None])[0], exact, atol=1e-6)


# The errors of f that noise on u makes


@pytest.mark.parametrize("operator", [Radial(STEP, 6), Convolution(STEP, 6), Convolution(STEP, 6, "two-sided")])
def test_covariance_through_the_kernel(operator):
    """Against the tokens of many draws of the noise, whose own errors go together."""
    generator = np.random.default_rng(0)
    y, points = operator.grid, np.array([7, 8, 12, 25, 7])
    rows = np.array([0, 0, 0, 0, 1])
    K = torch.from_numpy(generator.normal(size=y.size))
    draws = generator.normal(size=(8000, 2, 41))
    noise = draws[..., 1:] + 0.5 * draws[..., :-1]
    f = []
    for row, point in zip(rows, points, strict=True):
        windows = noise[:, row, point - operator.reach[0] : point + operator.reach[1] + 1]
        f.append(operator.tokens(torch.from_numpy(windows)) @ (y.weights * K))
    empirical = torch.cov(torch.stack(f))
    places = operator.places(STEP * points, rows, True)
    U, F = torch.ones(y.size, 5).double(), torch.ones(1, 5).double()
    R = torch.tensor([[1.25, 0.5]]).double()
    context = Context(U, F, y, grids.point(), places, operator=operator.name, u_errors=R)
    exact = covariance_through(K, context, places)
    torch.testing.assert_close(exact, empirical, rtol=0.05, atol=0.06 * float(exact.max()))
    assert float(exact[0, 4]) == 0
    assert float(exact[0, 3]) == pytest.approx(0, abs=1e-9)


def test_autocovariance_is_that_of_a_moving_average():
    h, R = (torch.tensor(values, dtype=torch.float64) for values in ([1.0, -2.0, 0.5], [1.0, 0.3]))
    n = 8
    T = torch.zeros(n, n + 2).double()
    for i in range(n):
        T[i, i : i + 3] = h
    C = torch.eye(n + 2).double() + 0.3 * (torch.ones(n + 1).diag(1) + torch.ones(n + 1).diag(-1)).double()
    expected = (T @ C @ T.mT)[0, :5]
    torch.testing.assert_close(autocovariance(h, R), expected, atol=1e-12, rtol=0)


# What it does for the kernel


def test_noise_on_u_is_taken_into_account_or_named(tmp_path):
    exact, K = line(0.0)
    clean = error(context_of(exact, tmp_path), K)
    noisy, _ = line(0.01)
    ignored = discover(model(), context_of(noisy, tmp_path))
    assert any("seems to have noise" in d.seen for d in ignored.diagnostics)
    assert error(ignored.context, K) > 3 * clean
    known = context_of(noisy | {"u_std": 0.01 * u(noisy["x"]).std()}, tmp_path)
    assert known.u_errors is not None
    assert error(known, K) < 3 * clean
    found = discover(model(), context_of(noisy | {"u_std": "estimate"}, tmp_path))
    assert not [d for d in found.diagnostics if "seems to have noise" in d.seen]
    assert 0 <= found.to_json()["errors_from_u"] < 1
    assert "of the errors' variance from noise on u" in dict(besides(found))


def test_exact_inputs_are_not_said_to_be_noisy(tmp_path):
    found = discover(model(), context_of(line(0.0)[0], tmp_path))
    assert not [d for d in found.diagnostics if "noise" in d.seen]
    assert context_of(line(0.0)[0] | {"u_std": "estimate"}, tmp_path).u_errors is None


def test_most_of_the_errors_from_u_is_said(tmp_path):
    noisy, _ = line(0.1, noise=0.001)
    found = discover(model(), context_of(noisy | {"u_std": "estimate"}, tmp_path))
    assert found.posterior.through_kernel is not None
    assert found.posterior.through_kernel >= 0.5
    assert any("comes from noise on u" in d.seen for d in found.diagnostics)


def test_errors_of_u_are_checked_and_kept(tmp_path):
    noisy, _ = line(0.01)
    for wrong in (np.array([0.1, 0.2]), -1.0, "much"):
        with pytest.raises(InputError, match=r"u_std must be|u_std"):
            context_of(noisy | {"u_std": wrong}, tmp_path)
    context = context_of(noisy | {"u_std": 0.1}, tmp_path)
    context.save(tmp_path / "context.h5")
    again = read_measurements(tmp_path / "context.h5").context
    assert torch.equal(again.u_errors, context.u_errors)  # pyright: ignore
    with pytest.raises(InputError, match="need the operator and the places"):
        Context(context.U, context.F, context.y, context.x, u_errors=torch.ones(1, 1))
    with pytest.raises(InputError, match="a row for each of 1 input"):
        Context(context.U, context.F, context.y, context.x, u_errors=torch.ones(2, 1))
    wrapped = {"t": noisy["x"][:100], "u": noisy["u"][:100], "f": noisy["f"][:100], "lags": "periodic", "u_std": 0.1}
    with pytest.raises(InputError, match="periodic u"):
        context_of(wrapped | {"radius": 2.0}, tmp_path)


# Known errors of f


def test_known_errors_weigh_the_pairs(tmp_path):
    """Half of the pairs have fifty times the error of the others: with f_std they hardly touch the kernel."""
    entries, K = line(0.0, noise=0.001)
    rng = np.random.default_rng(5)
    std = np.where(rng.random(len(entries["f"])) < 0.5, 0.2, 0.004) * np.nanstd(entries["f"])
    entries["f"] = entries["f"] + std * rng.normal(size=len(std))
    kept = model()
    kept.keep_outliers = True
    errors = []
    for extra in ({}, {"f_std": std}):
        context = context_of(entries | extra, tmp_path)
        off = kept.posterior(context).mean[0] - torch.from_numpy(K)
        errors.append(float(((context.y.weights * off) @ context.U).norm()))
    assert errors[1] < 0.5 * errors[0]
    assert model().posterior(context_of(entries | {"f_std": std}, tmp_path)).outliers == {}


def test_known_errors_are_checked(tmp_path):
    entries, _ = line(0.0)
    with pytest.raises(InputError, match="shape of f"):
        context_of(entries | {"f_std": np.ones(3)}, tmp_path)
    with pytest.raises(InputError, match="f_std must be positive"):
        context_of(entries | {"f_std": np.zeros(len(entries["f"]))}, tmp_path)
    table = "time,u,f,f_std\n" + "".join(f"{i},{np.sin(i)},{np.cos(i)},{0.1 + i}\n" for i in range(40))
    (tmp_path / "table.csv").write_text("# radius = 5\n" + table)
    context = read_measurements(tmp_path / "table.csv").context
    assert context.F_std is not None
    assert context.F_std[0, 0] == pytest.approx(5.1)
    assert context.y.components == 1


def test_corners_of_u_are_not_noise():
    """A wave that is cut off seems to have noise, beside covariances that are the same everywhere."""
    x = np.linspace(0, 1, 200)
    rng = np.random.default_rng(0)
    centre = rng.uniform(0.1, 0.9, (40, 1))
    cut = (np.abs(x - centre) < 0.1) * np.cos(40 * (x - centre))
    assert Noise.of(cut).log_odds > CERTAIN
    assert noise_everywhere(cut) is None
    noisy = np.cos(20 * (x - centre)) + 0.05 * rng.normal(size=(40, 200))
    assert noise_everywhere(noisy) is not None
