"""What predicting takes of a fit, as arrays: the features that the mixture's cells use, and every cell's Gaussians."""

import torch
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.core.state import prefixed, under
from kernelmap.posterior.kernel1d.components import Component, Features
from kernelmap.posterior.kernel1d.errors import Density, ErrorShape
from kernelmap.posterior.kernel1d.evidence import Conditioned
from kernelmap.posterior.kernel1d.fit import Fit
from kernelmap.posterior.kernel1d.mixture import Cell, Mixture
from kernelmap.posterior.kernel1d.units import Units


def state_of(fit: Fit) -> dict[str, Tensor]:
    """Blocks of features under their numbers, cells in their order."""
    mixture, units = fit.mixture, fit.units
    used = sorted(mixture.blocks)
    state = {
        "units": mixture.weights.new_tensor([units.length, units.u, units.f]),
        "kernel_squared": fit.kernel_squared,
        "weights": mixture.weights,
        "log_evidence": mixture.weights.new_tensor(mixture.log_evidence),
    }
    state |= {f"block{number}": mixture.features.blocks[number] for number in used}
    for i, cell in enumerate(mixture.cells):
        columns, shape = cell.component.columns, cell.shape
        numbers = [cell.index, cell.component.block, columns.start, columns.stop]
        own = {
            "numbers": cell.chosen.new_tensor(numbers),
            "errors": cell.weights.new_tensor([float(shape.n.mean()), shape.nugget, shape.least, shape.spread]),
            "chosen": cell.chosen,
            "weights": cell.weights,
        }
        state |= prefixed(f"cell{i}", own | prefixed("given", cell.given._asdict()))
    return state


def fit_of(state: dict[str, Tensor], y: Grid) -> Fit:
    """The fit on a grid in the user's units; the errors of single pairs, and their prior, are gone."""
    own = under(state, "")
    units = Units(*own["units"].tolist())
    numbers = sorted(int(name.removeprefix("block")) for name in own if name.startswith("block"))
    blocks = [own[f"block{number}"] for number in numbers]
    cells, i = [], 0
    while part := under(state, f"cell{i}"):
        index, block, start, stop = part["numbers"].tolist()
        n, nugget, least, spread = part["errors"].tolist()
        given = Conditioned(**under(part, "given"))
        component = Component(numbers.index(block), slice(start, stop), given.omega)
        nothing = Density(own["units"][:0], own["units"][:0])
        errors = ErrorShape(torch.tensor([n], dtype=torch.float64), nugget, least, 0.0, spread, nothing)
        cells.append(Cell(index, component, errors, given, part["chosen"], part["weights"]))
        i += 1
    features = Features(blocks, [cell.component for cell in cells])
    mixture = Mixture(features, cells, own["weights"], float(own["log_evidence"]))
    return Fit(mixture, units, units.scaled(y), own["kernel_squared"])
