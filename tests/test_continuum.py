"""The continuum claim: a NAO whose W is a function of position is trained on one mesh and used on a finer one."""

import torch

from contract import source_to_pressure
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import operator_error
from kernelmap.maps import NAO, NAOOptions

D, COARSE, FINE = 6, 7, 13


def with_the_measure_of(coarse: int, context: Context, fine: int) -> Context:
    """Nodes of the coarse boundary have the weight of a whole cell: the fine mesh is given the same measure."""
    weights = torch.full((fine,), 1 / (fine - 1), dtype=torch.float64)
    weights[[0, -1]] = 0.5 / (fine - 1) + 0.5 / (coarse - 1)
    grid = Grid(context.y.points, torch.outer(weights, weights).flatten())
    return Context(context.U, context.F, grid, grid)


def test_a_map_trained_on_one_mesh_is_used_on_a_finer_one():
    """The same media and sources; at most twice the error. With the spectral part off by a node it is not."""
    coarse = source_to_pressure(D, 1)
    torch.manual_seed(0)
    model = NAO(ContextShape.of(coarse), NAOOptions(dk=D, waves=4)).double()
    model.standardise(coarse.U, coarse.F)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        operator_error(model(coarse).apply(coarse.U), coarse.F, coarse.x).mean().backward()
        optimizer.step()

    def error(context: Context) -> float:
        with torch.no_grad():
            return float(operator_error(model(context).apply(context.U), context.F, context.x).mean())

    fine = with_the_measure_of(COARSE, source_to_pressure(D, 2), FINE)
    there = error(coarse)
    print(there, error(fine), error(source_to_pressure(D, 2)))
    assert there < 0.15
    assert error(fine) < 2 * there
