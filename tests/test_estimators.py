"""Classical estimators against their textbook definitions."""

import numpy as np
import pytest
import torch
from scipy.linalg import eigh

from examples import square_context
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.estimators import dartr, tikhonov
from kernelmap.estimators.spectral import metric_weights


def measured(d: int, noise: float = 0.0, N: int = 60) -> tuple[Context, torch.Tensor]:
    """Smooth inputs acted on by a smooth kernel."""
    generator = torch.Generator().manual_seed(d)
    grid = grids.radii(5 / N, N)
    r = grid.points[:, 0]
    waves = torch.randn(d, 40, generator=generator, dtype=torch.float64)
    U = torch.stack([torch.sin(k * r) / k**2 for k in range(1, 41)], dim=1) @ waves.T
    K = (torch.exp(-r) * torch.sin(2 * r))[None]
    F = (K * grid.weights) @ U
    F = F + noise * F.std() * torch.randn(F.shape, generator=generator, dtype=torch.float64)
    return Context(U, F, grid, grids.point()), K


@pytest.mark.parametrize("metric", ["l2", "rho"])
@pytest.mark.parametrize("d", [20, 90])
def test_tikhonov_solves_its_normal_equations(metric, d):
    context, _ = measured(d, noise=0.05)
    estimate = tikhonov(context, metric)
    wU = context.U * context.y.weights[:, None]
    R = torch.diag(metric_weights(context, metric))
    expected = torch.linalg.solve(wU @ wU.T + estimate.regularisation * R, wU @ context.F.T).T
    torch.testing.assert_close(estimate.kernel.values, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d", [20, 90])
def test_dartr_is_the_generalised_eigenproblem(d):
    """A V = B V Λ, Vᵀ B V = I, coefficients λ_i β_i / (λ_i² + λ) with β = Vᵀ b."""
    context, _ = measured(d, noise=0.05)
    estimate = dartr(context)
    wU = (context.U * context.y.weights[:, None]).numpy()
    B = np.diag(metric_weights(context, "rho").numpy())
    eigenvalues, V = eigh(wU @ wU.T, B)
    beta = V.T @ wU @ context.F.numpy().T
    keep = eigenvalues > 1e-12 * eigenvalues.max()
    lam = eigenvalues[keep, None]
    expected = V[:, keep] @ (lam * beta[keep] / (lam**2 + estimate.regularisation))
    np.testing.assert_allclose(estimate.kernel.values[0], expected[:, 0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("estimator", [tikhonov, dartr])
def test_noisy_data_are_regularised(estimator):
    context, K = measured(90, noise=0.1)
    rho = exploration_measure(context.U.mT, context.y)
    error = kernel_error(estimator(context).kernel.values, K, rho, context.y)
    least_squares = torch.linalg.lstsq((context.U * context.y.weights[:, None]).T, context.F.T).solution.T
    assert error < 0.5
    assert error < 0.5 * kernel_error(least_squares, K, rho, context.y)


def test_gcv_is_the_minimum_of_its_score():
    """Leave-one-out by rotation, with 1.4 per degree of freedom, from the influence matrix and on a fine grid."""
    context, _ = measured(30, noise=0.1)
    estimate = tikhonov(context, "l2")
    A = (context.U * context.y.weights[:, None]).T.numpy()
    D = np.diag(context.y.weights.numpy())
    F = context.F[0].numpy()

    def score(lam: float) -> float:
        influence = A @ np.linalg.solve(A.T @ A + lam * D, A.T)
        return float(np.sum((F - influence @ F) ** 2) / (len(F) - 1.4 * np.trace(influence)) ** 2)

    around = estimate.regularisation * np.logspace(-3, 3, 61)
    assert score(estimate.regularisation) <= min(score(lam) for lam in around) * (1 + 1e-6)


def test_rows_of_a_matrix_kernel_are_estimated_together():
    generator = torch.Generator().manual_seed(3)
    grid = grids.rectangle(4)
    K = torch.randn(16, 16, generator=generator, dtype=torch.float64)
    U = torch.randn(16, 40, generator=generator, dtype=torch.float64)
    context = Context(U, (K * grid.weights) @ U, grid, grid)
    torch.testing.assert_close(tikhonov(context, "l2").kernel.values, K, rtol=1e-4, atol=1e-4)


def test_a_batch_is_refused():
    with pytest.raises(InputError, match="takes one system"):
        dartr(square_context(batch=(2,)))
