"""Simulation-based calibration and coverage: whether intervals hold what they say, and errors are what is expected.

Of kernels drawn with their pairs, the posterior's probability P(K(y) < truth) at random points y ~ ρ is uniform on
[0, 1] if the model is right (Talts et al., 2018), and the central interval of a level holds the truth as often.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.files import atomic_path
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.maps import ProbabilisticMap

LEVELS = (0.5, 0.8, 0.95)
POINTS = 20
"""Points of a kernel that are looked at."""

BINS = 20


@dataclass(frozen=True)
class Calibration:
    """Of every system: ranks P(K < truth) at some points, error in L2(rho), and the error expected by the posterior."""

    ranks: Float[np.ndarray, "systems points"]
    errors: Float[np.ndarray, " systems"]
    expected: Float[np.ndarray, " systems"]

    def coverage(self, level: float) -> float:
        """Share of the points whose truth lies in the central interval of a level."""
        return float(np.mean(np.abs(self.ranks - 0.5) <= level / 2))

    def summary(self) -> dict[str, Any]:
        counts, _ = np.histogram(self.ranks, BINS, (0, 1))
        return {
            "systems": len(self.errors),
            "coverage": {f"{level:g}": self.coverage(level) for level in LEVELS},
            "ranks": (counts / counts.sum()).tolist(),
            "kernel_error_median": float(np.median(self.errors)),
            "expected_error_median": float(np.median(self.expected)),
            "error_above_twice_expected": float(np.mean(self.errors > 2 * self.expected)),
        }

    def plot(self, path: Path) -> None:
        """Histogram of the ranks, and coverage against level."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        left.hist(self.ranks.ravel(), BINS, range=(0, 1), density=True, color="0.6")
        left.axhline(1, color="k", lw=1)
        left.set(xlabel="P(K < truth)", ylabel="density", title=f"{len(self.errors)} systems")
        levels = np.linspace(0.02, 0.98, 49)
        right.plot(levels, [self.coverage(level) for level in levels])
        right.plot([0, 1], [0, 1], "k", lw=1)
        right.set(xlabel="level of the interval", ylabel="share of truths inside")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=150)


@torch.no_grad()
def calibrate(model: ProbabilisticMap, systems: Iterable[tuple[Context, Tensor]], seed: int) -> Calibration:
    """Over contexts of one output with their true kernels (N,)."""
    generator = torch.Generator().manual_seed(seed)
    ranks, errors, expected = [], [], []
    for context, truth in systems:
        posterior = model.posterior(context)
        rho = exploration_measure(context.U.mT, context.y)
        weights = rho * context.y.value_weights
        points = torch.multinomial(weights, POINTS, replacement=True, generator=generator)
        ranks.append(posterior.cdf(truth[None])[0, points].numpy())
        mean, std = posterior.mean, posterior.std
        errors.append(float(kernel_error(mean, truth[None], rho, context.y)))
        expected.append(float(kernel_error(mean + std, mean, rho, context.y)))
    return Calibration(np.array(ranks), np.array(errors), np.array(expected))
