"""Systems K(x, y) = A(x) exp(-|x - y| / sqrt(w(x) w(y))) on [0, 1], and ridge regression with the best lambda."""

import numpy as np
import torch
from torch import Tensor

from kernelmap.core.grids import Grid, from_points
from kernelmap.core.metrics import operator_error
from kernelmap.core.systems import SystemSet, random_draws

POINTS, PAIRS, NOISE, WAVES = 50, 200, 0.01, 6
LAMBDAS = 10.0 ** torch.arange(-7, 0, 0.25, dtype=torch.float64)


def line_systems(count: int, seed: int = 0) -> tuple[SystemSet, Tensor]:
    """Systems with inputs of their own, sums of ten cosines up to 30 rad, 1 % noise on f; and f without the noise.

    log A = 0.3 v and log(w / 0.2) = 0.3 v', with random smooth v = Σ_k z_k (1 + k)^-1.5 cos πkx, k < 6.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, POINTS)
    grid = from_points(x)

    def smooth() -> np.ndarray:
        k = np.arange(WAVES)
        return np.cos(np.pi * np.outer(x, k)) @ (rng.standard_normal(WAVES) / (1 + k) ** 1.5)

    kernels, inputs = [], []
    for _ in range(count):
        A, w = np.exp(0.3 * smooth()), 0.2 * np.exp(0.3 * smooth())
        kernels.append(A[:, None] * np.exp(-np.abs(x[:, None] - x) / np.sqrt(np.outer(w, w))))
        rates, phases = rng.uniform(0, 30, (PAIRS, 10, 1)), rng.uniform(0, 2 * np.pi, (PAIRS, 10, 1))
        inputs.append((rng.standard_normal((PAIRS, 10, 1)) * np.cos(rates * x + phases)).sum(axis=1))
    K, u = torch.from_numpy(np.stack(kernels)), torch.from_numpy(np.stack(inputs))
    f = u @ (K * grid.weights).mT
    noise = torch.from_numpy(rng.standard_normal(f.shape)) * f.square().mean(dim=(1, 2), keepdim=True).sqrt()
    names = tuple(f"line-{i}" for i in range(count))
    return SystemSet(names, u, f + NOISE * noise, grid, grid, K, {"problem": "line", "seed": seed}), f


def with_best_ridge(test: SystemSet, u: Tensor, f: Tensor, d: int, draws: int) -> dict[str, float]:
    """Held-out and kernel error of K = F (UᵀwU + λ mean(diag))⁻¹ Uᵀ with the λ whose kernel is nearest to the true one.

    λ is chosen for every context; `heldout_best` is the held-out error with the λ that is best for that instead.
    """
    assert test.kernels is not None
    found = []
    for index, truth in enumerate(test.kernels):
        chosen = random_draws(test.pairs, d, draws, torch.Generator().manual_seed(index))
        context = test.batch(chosen, torch.tensor([index]))
        for U, F in zip(context.U[:, 0], context.F[:, 0], strict=True):
            kernels = [_ridge(U, F, test.y, float(value)) for value in LAMBDAS]
            errors = [float((K - truth).norm() / truth.norm()) for K in kernels]
            predicted = [
                float(operator_error((K * test.y.weights) @ u[index].mT, f[index].mT, test.x)) for K in kernels
            ]
            best = int(np.argmin(errors))
            found.append((predicted[best], errors[best], min(predicted)))
    heldout, kernel, least = 100 * np.mean(found, axis=0)
    return {"heldout": round(heldout, 3), "kernel": round(kernel, 3), "heldout_best": round(least, 3)}


def _ridge(U: Tensor, F: Tensor, y: Grid, value: float) -> Tensor:
    S = U.mT @ (y.weights[:, None] * U)
    return F @ torch.linalg.solve(S + value * S.diagonal().mean() * torch.eye(len(S)).to(S), U.mT)
