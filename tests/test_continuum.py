"""The continuum claim: a NAO whose W is a function of position is one operator on every mesh of its domain."""

import pytest
import torch

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid, rectangle
from kernelmap.core.metrics import relative_difference
from kernelmap.maps import NAO, NAOOptions

COARSE, FINE = 11, 21


def smooth(grid: Grid) -> Context:
    """The same four pairs on any mesh."""
    x, y = grid.points.T
    U = torch.stack([torch.sin(x + j * y + 1) for j in range(4)], dim=-1)
    F = torch.stack([torch.sin(3 * x) * torch.cos(j * y) for j in range(4)], dim=-1)
    return Context(U, F, grid, grid)


def with_the_measure_of(coarse: int, fine: int) -> Grid:
    """Nodes of the boundary have the weight of a whole cell: the fine mesh is given the same measure."""
    weights = torch.full((fine,), 1 / (fine - 1), dtype=torch.float64)
    weights[[0, -1]] = 0.5 / (fine - 1) + 0.5 / (coarse - 1)
    return Grid(rectangle(fine).points, torch.outer(weights, weights).flatten())


@pytest.mark.parametrize("mixer", ["spectral", "convolution", "network"])
def test_a_finer_mesh_with_the_same_measure_gives_the_same_responses(mixer):
    coarse, fine, cells = map(smooth, (rectangle(COARSE), with_the_measure_of(COARSE, FINE), rectangle(FINE)))
    torch.manual_seed(0)
    model = NAO(ContextShape.of(coarse), NAOOptions(dk=3, waves=3, mixer=mixer)).double()
    model.standardise(coarse.U, coarse.F)
    common = torch.arange(FINE**2).reshape(FINE, FINE)[::2, ::2].flatten()
    with torch.no_grad():
        here = model(coarse).apply(coarse.U)
        there, other = (model(context).apply(context.U)[common] for context in (fine, cells))
    assert relative_difference(there, here) < 0.03
    assert relative_difference(other, here) > 0.06
