"""Import of the authors' released Darcy NAO checkpoints."""

from pathlib import Path
from typing import NamedTuple

import torch

from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.errors import InputError
from kernelmap.core.files import reading
from kernelmap.core.grids import Grid
from kernelmap.core.systems import SystemSet
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.released.checkpoint import (
    STD_OFFSET,
    layer_count,
    network,
    projection,
    read_checkpoint,
    widths,
)

DARCY = ("fcq_0_0", "fck_0_0", "kernel", "kernelf", "fcn0")
"""Layers of a Darcy NAO."""

COLUMNS = (3, 2, 0, 1)
"""Where our networks' inputs (x, z) stand among the released ones': W is applied transposed, to a transposed grid."""


class Moments(NamedTuple):
    """Mean and standard deviation that tokens are standardised with."""

    u_mean: float
    u_std: float
    f_mean: float
    f_std: float

    @classmethod
    def of(cls, train: SystemSet) -> "Moments":
        """As the released code takes them from training systems."""
        u, f = train.u, train.f
        return cls(float(u.mean()), float(u.std()) + STD_OFFSET, float(f.mean()), float(f.std()) + STD_OFFSET)


def import_released_darcy(path: Path | str, grid: Grid, moments: Moments) -> NAO:
    """A released state dict of any number of layers as a NAO on a square grid, with LayerNorm over the array of tokens.

    Its kernel takes standardised sources to pressures as they are; ours takes both as they are. So W is divided by the
    deviation of pressures, which standardised maps multiply it by. The constant that a mean source adds is not kept.
    """
    weights = read_checkpoint(path, DARCY)
    (dk, d), layers = widths(weights, path), layer_count(weights, path)
    domain = Domain.of(grid, 1.0)
    options = NAOOptions(dk=dk, layers=layers, normaliser="array", mixer="network")
    model = NAO(ContextShape(d, grid.size, grid.size, domain, domain), options).double()
    state = {name: torch.tensor(value, dtype=torch.float64) for name, value in moments._asdict().items()}
    with reading(path, "released Darcy NAO", "download it again"):
        for part in ("weight", "bias"):
            for layer in range(layers):
                state[f"projections.{layer}.{part}"] = projection(weights, layer, part)
                state[f"norms.{layer}.{part}"] = weights[f"fcn{layer}.{part}"]
        for theirs, ours in (("kernel", "w_u.parts.0"), ("kernelf", "w_f.parts.0")):
            state |= network(weights, theirs, ours)
            state[f"{ours}.0.weight"] = state[f"{ours}.0.weight"][:, list(COLUMNS)]
            for part in ("weight", "bias"):
                state[f"{ours}.4.{part}"] = state[f"{ours}.4.{part}"] / moments.f_std
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} is not a released NAO on {len(grid.points)} nodes with one head: {error}") from error
    return model
