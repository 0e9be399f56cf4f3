"""An operator of one's own is one class: tokens of windows of u, and all that follows works."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from kernelmap import discover, load_discovery, load_model
from kernelmap.core import grids
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.operators import SampledOperator
from kernelmap.report import render


@dataclass(frozen=True)
class Drift(SampledOperator):
    """f(x) = ∫_0^R K(r) [u(x+r)² - u(x-r)²] dr: a nonlocal flux, not linear in u."""

    name: ClassVar[str] = "drift"
    formula: ClassVar[str] = "f(x) = ∫ K(r) [u(x+r)² - u(x-r)²] dr"
    coordinate: ClassVar[str] = "r"
    axis: ClassVar[str] = "distance r"
    place: ClassVar[str] = "x"
    repeated: ClassVar[str] = "input"

    @property
    def grid(self) -> Grid:
        return grids.radii(self.step, self.count)

    @property
    def reach(self) -> tuple[int, int]:
        return self.count, self.count

    def tokens(self, windows: torch.Tensor) -> torch.Tensor:
        ahead, behind = windows[:, self.count + 1 :], windows[:, : self.count].flip(1)
        return ahead.square() - behind.square()


def test_from_the_class_to_kernel_report_and_file(tmp_path):
    rng, operator = np.random.default_rng(0), Drift(0.1, 30)
    x = 0.1 * np.arange(400)
    u = np.sum([np.cos(k * x + phase) for k, phase in rng.uniform(0, 3, size=(12, 2))], axis=0)[None]
    points = rng.choice(np.flatnonzero(operator.reached(400)), 80, replace=False)
    rows = np.zeros_like(points)
    r = operator.grid.points[:, 0]
    tokens = operator.tokens_at(u, rows, points)
    f = tokens @ (operator.grid.weights * torch.exp(-r))
    f = f + 0.01 * f.std() * torch.from_numpy(rng.normal(size=80))
    context = operator.context(tokens, f, operator.places(x[points], rows, several=False))
    assert context.operator == "drift"

    found = discover(load_model("kernel1d")[0], context)
    rho = exploration_measure(context.U.mT, context.y)
    assert float(kernel_error(found.kernel.values, torch.exp(-r)[None], rho, context.y)) < 0.05
    assert float(((found.kernel.values - torch.exp(-r)).abs() < 1.96 * found.std).double().mean()) > 0.85
    assert "K(r)" in render(found)
    found.save(tmp_path / "found.h5")
    saved = load_discovery(tmp_path / "found.h5")
    torch.testing.assert_close(saved.predict(context.U).mean, found.predict(context.U).mean)
