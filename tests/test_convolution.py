"""The convolution against closed forms, and the rate of its quadrature."""

from typing import cast

import numpy as np
import pytest
import torch

from kernelmap.io.series import series_context
from kernelmap.operators import OPERATORS, Convolution, Lags, Radial

TAU = 0.7


def responses(entries: dict, kernel=lambda s: np.exp(-s / TAU)) -> tuple[np.ndarray, np.ndarray]:
    """Σ_k K(s_k) w_k U[k, j] of the file's tokens, and the times of its pairs."""
    context, _ = series_context({name: np.asarray(value) for name, value in entries.items()})
    K = torch.from_numpy(kernel(context.y.points[:, 0].numpy()))
    assert context.places is not None
    return ((K * context.y.weights) @ context.U).numpy(), context.places.values[:, -1].numpy()


def step_response(samples: int, at_the_step: float) -> float:
    """Largest error of f = τ (1 - exp(-t/τ)), t <= 3, for u = 0 before t = 0 and 1 after."""
    t = np.linspace(0, 3, samples)
    u = np.where(t > 0, 1.0, at_the_step)
    found, at = responses({"t": t, "u": u, "f": t, "radius": 3.0, "outside": "zero"})
    # The first pair has a window that holds the step alone.
    return float(np.abs(found - TAU * (1 - np.exp(-at / TAU)))[1:].max())


@pytest.mark.parametrize(("at_the_step", "rate"), [(0.5, 2), (1.0, 1)])
def test_step_response_of_an_exponential(at_the_step, rate):
    """Second order where u has its mean at the jump, first order where it does not."""
    errors = [step_response(samples, at_the_step) for samples in (31, 61, 121)]
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx(rate, abs=0.1)
    assert errors[-1] < (1e-4 if rate == 2 else 0.02)


def cosine_response(samples: int, **changes) -> float:
    """Largest error for u = cos ωt over one period P = 2: f = Re e^{iωt} ∫_0^P exp(-s/τ) e^{-iωs} ds."""
    t, omega = 2.0 * np.arange(samples) / samples, np.pi
    entries = {"t": t, "u": np.cos(omega * t), "f": t, "lags": "periodic"} | changes
    found, at = responses(entries)
    rate = 1 / TAU + 1j * omega
    return float(np.abs(found - np.real(np.exp(1j * omega * at) * (1 - np.exp(-2 * rate)) / rate)).max())


def test_cosine_through_a_period():
    errors = [cosine_response(samples) for samples in (20, 40, 80)]
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx(2, abs=0.1)
    assert errors[-1] < 1e-3


def test_times_of_its_own_between_the_samples():
    """u is linear between its samples, also from the last to the first of a period: the rate stays."""
    at = np.array([0.013, 0.71, 1.2345, 1.999, 3.3])
    errors = [cosine_response(samples, t_f=at, f=at) for samples in (20, 40, 80, 160)]
    assert np.log2(errors[0] / errors[-1]) / 3 == pytest.approx(2, abs=0.3)


def test_two_sided_sees_the_future():
    """K = exp(-|s|) and u = exp(ct): f = exp(ct) ∫ exp(-|s| - cs) ds."""
    t, c = np.linspace(-12, 12, 2401), 0.3
    found, at = responses(
        {"t": t, "u": np.exp(c * t), "f": t, "radius": 11.0, "lags": "two-sided"}, lambda s: np.exp(-np.abs(s))
    )
    ends = sum((1 - np.exp(-11 * (1 + sign * c))) / (1 + sign * c) for sign in (-1, 1))
    np.testing.assert_allclose(found, np.exp(c * at) * ends, rtol=1e-4)
    assert at[0] == pytest.approx(-1)
    assert at[-1] == pytest.approx(1)


def test_causal_looks_back_alone():
    """What comes after a time does not change its tokens; what comes before does."""
    operator, u = Convolution(0.1, 4), np.arange(20.0)[None]
    rows, points = np.array([0]), np.array([10])
    before = operator.tokens_at(u, rows, points)
    assert before.tolist() == [[10, 9, 8, 7, 6]]
    later = u.copy()
    later[:, 11:] = 0
    torch.testing.assert_close(operator.tokens_at(later, rows, points), before)


@pytest.mark.parametrize("lags", ["causal", "two-sided", "periodic"])
def test_an_operator_knows_its_grid_and_its_places(lags):
    operator = Convolution(0.5, 6, cast(Lags, lags))
    assert operator.grid.size == (13 if lags == "two-sided" else 7)
    assert float(operator.grid.weights.sum()) == pytest.approx(6 if lags == "two-sided" else 3)
    assert operator.reached(20).sum() == {"causal": 14, "two-sided": 8, "periodic": 20}[lags]
    tokens = operator.tokens_at(np.ones((2, 20)), np.array([0, 1]), np.array([7, 8]))
    assert tokens.shape == (2, operator.grid.size)
    assert operator.places(np.array([3.5]), np.array([0]), several=False).name(0) == "t = 3.5"
    assert operator.places(np.array([3.5]), np.array([1]), several=True).name(0) == "run = 1, t = 3.5"
    assert {"radial": Radial, "convolution": Convolution} == OPERATORS


def test_dates_are_days():
    place = Convolution.places(np.array([12053.0, 12053.25]), np.array([0, 0]), several=False, place="date")
    assert [place.name(0), place.name(1)] == ["2003-01-01", "2003-01-01T06:00:00"]
