"""The benchmark of own use: its responses, its Gaussian process, its scores."""

import numpy as np
import torch
from scipy.integrate import quad

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.paper.benchmarks import own_use
from kernelmap.paper.benchmarks.gaussian_process import matern, matern_posterior


def test_twelve_families_and_six_inputs() -> None:
    names = set(own_use.families(np.random.default_rng(0)))
    assert len(names) == 12
    assert len(own_use.INPUTS) == 6


def test_responses_are_those_of_the_integral() -> None:
    rng = np.random.default_rng(0)
    kernel = own_use.families(rng)["inverse root"]
    nodes, masses = own_use.cell_masses(kernel)
    found = np.sum(masses * np.cos(nodes))
    expected = quad(
        lambda s: 2 * s * float(kernel(np.array(s**2))) * np.cos(s**2), 0, np.sqrt(own_use.RADIUS), limit=200
    )
    assert abs(found - expected[0]) < 1e-4 * abs(expected[0])


def test_process_is_dense_regression_at_its_likeliest_parameters() -> None:
    rng, y = np.random.default_rng(0), grids.radii(0.1, 30)
    U = torch.from_numpy(rng.normal(size=(30, 25)))
    r = y.points[:, 0].numpy()
    F = torch.from_numpy((np.exp(-r) * 0.1 @ U.numpy() + 0.01 * rng.normal(size=25))[None])
    found = matern_posterior(Context(U, F, y, grids.point()), 1.5)
    # Somewhere on the grid of lengths and ratios is a dense regression with this mean, at the largest evidence.
    A, f, distance = U.mT.numpy() * 0.1, F[0].numpy(), np.abs(r[:, None] - r)
    best = (-np.inf, np.zeros(30))
    for length in np.geomspace(0.2, 3, 16):
        C = matern(distance / length, 1.5)
        S = A @ C @ A.T
        for ratio in np.linalg.eigvalsh(S)[-1] * np.geomspace(1e-13, 10, 80):
            total = S + ratio * np.eye(25)
            size = f @ np.linalg.solve(total, f) / 25
            evidence = -12.5 * np.log(size) - 0.5 * np.linalg.slogdet(total)[1]
            best = max(best, (evidence, C @ A.T @ np.linalg.solve(total, f)), key=lambda pair: pair[0])
    np.testing.assert_allclose(found.mean, best[1], rtol=1e-4, atol=1e-6)


def test_scores_know_silent_failures_and_false_alarms() -> None:
    score = own_use.Scores
    assert score(error=0.5, coverage=0.5, expected=0.1, diagnostics=0).silent
    assert not score(error=0.5, coverage=0.5, expected=0.1, diagnostics=1).silent
    assert not score(error=0.5, coverage=0.5, expected=0.3, diagnostics=0).silent
    assert score(error=0.05, coverage=1.0, expected=0.05, diagnostics=1).false_alarm
    assert not score(error=0.05, coverage=1.0, expected=0.05, diagnostics=0).false_alarm
