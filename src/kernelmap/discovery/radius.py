"""Where a kernel ends, when the user does not say: by the evidence of the same pairs for a few radii."""

from dataclasses import replace
from typing import NamedTuple

import torch

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.progress import tracked
from kernelmap.posterior import Kernel1dMap

FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Of the largest radius."""


class SelectedRadius(NamedTuple):
    """The pairs with radii up to the likeliest end, and the log evidence of all that were tried, by radius."""

    context: Context
    radius: float
    log_evidence: dict[float, float]


def select_radius(model: Kernel1dMap, context: Context) -> SelectedRadius:
    """Tokens on radii or lags up to the largest one: cut where the evidence is largest."""
    model.check_inputs(context)
    y = context.y.points[:, 0]
    count, last = int((y > 0).sum()), float(y.max())
    radii = [last * steps / count for steps in (round(fraction * count) for fraction in FRACTIONS) if steps >= 4]
    tried = {radius: cut(context, radius) for radius in radii}
    with torch.no_grad():
        found = {radius: model.posterior(tried[radius]).log_evidence for radius in tracked(radii)}
    best = max(found, key=lambda radius: found[radius])
    return SelectedRadius(tried[best], best, found)


def cut(context: Context, radius: float) -> Context:
    """The same pairs with the radii, or lags on both sides of zero, up to a last one."""
    near = context.y.points[:, 0].abs() <= radius * (1 + 1e-9)
    inputs = context.y.components
    y = Grid(context.y.points[near], context.y.weights[near], inputs)
    blocks = None if context.blocks is None else (int(near.sum()),) * inputs
    return replace(context, U=context.U[near.repeat(inputs)], y=y, blocks=blocks)
