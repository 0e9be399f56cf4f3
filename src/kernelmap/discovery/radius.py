"""Where a kernel ends, when the user does not say: by the evidence of the same pairs for a few radii."""

from typing import NamedTuple

import torch

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.posterior import Kernel1dMap

FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Of the largest radius."""


class SelectedRadius(NamedTuple):
    """The pairs with radii up to the likeliest end, and the log evidence of all that were tried, by radius."""

    context: Context
    radius: float
    log_evidence: dict[float, float]


def select_radius(model: Kernel1dMap, context: Context) -> SelectedRadius:
    """Tokens on radii up to the largest one: cut where the evidence is largest."""
    count = len(context.y.points)
    tried = {rows: cut(context, rows) for rows in (round(fraction * count) for fraction in FRACTIONS) if rows >= 4}
    with torch.no_grad():
        found = {rows: model.posterior(part).log_evidence for rows, part in tried.items()}
    best = max(found, key=lambda rows: found[rows])
    radii = {rows: float(context.y.points[rows - 1, 0]) for rows in tried}
    return SelectedRadius(tried[best], radii[best], {radii[rows]: found[rows] for rows in tried})


def cut(context: Context, rows: int) -> Context:
    """The same pairs with the first radii only."""
    y = Grid(context.y.points[:rows], context.y.weights[:rows])
    return Context(context.U[:rows], context.F, y, context.x, context.places, context.F_std)
