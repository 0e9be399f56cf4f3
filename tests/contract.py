"""What the contract in test_contract.py needs to know: small physical systems, and facts about every registered map."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.evaluation.microstructure import interior
from kernelmap.maps import MAPS, KernelMap
from kernelmap.posterior.elastic.medium import Medium
from kernelmap.problems.darcy.fields import microstructures, sources
from kernelmap.problems.darcy.scheme import pressures

SYSTEMS = 3
"""In a batch."""


def radial(d: int, refine: int) -> Context:
    """f = ∫ K(r) g[u](r) dr at one point, with smooth tokens that all systems share."""
    grid = grids.radii(11 / (40 * refine), 40 * refine)
    r = grid.points[:, 0]
    amplitudes = torch.randn(20, d, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    U = torch.stack([torch.cos(k * r / 2) - 1 for k in range(1, 21)], dim=1) @ amplitudes
    K = torch.stack([torch.exp(-r) * torch.sin(k * r) for k in range(2, 2 + SYSTEMS)])
    return Context(U[None], (K * grid.weights)[:, None] @ U, grid, grids.point())


def source_to_pressure(d: int, refine: int) -> Context:
    """Darcy flow on a small mesh, with sources that all systems share."""
    n = 6 * refine + 1
    g = sources(n, range(d))
    p = np.stack([pressures(b, g) for b in microstructures(n, range(SYSTEMS))])
    U, F = (torch.from_numpy(values).flatten(-2).mT for values in (g[None], p))
    return Context(U.contiguous(), F.contiguous(), grids.rectangle(n), grids.rectangle(n))


def pressure_to_source(d: int, refine: int) -> Context:
    """The same pairs the other way round; every system has inputs of its own."""
    context = source_to_pressure(d, refine)
    f = context.U * interior(context.x)[:, None]
    return Context(context.F, f.expand_as(context.F).contiguous(), context.x, context.y)


def load_to_displacement(d: int, refine: int) -> Context:
    """A clamped elastic medium under body forces that all systems share."""
    n = 6 * refine + 1
    grid = grids.rectangle(n).with_components(2)
    free = interior(grids.rectangle(n)).repeat(2).nonzero()[:, 0]
    medium = Medium.of(grid, free, 0.3)
    generator = torch.Generator().manual_seed(0)
    U = torch.randn(grid.size, d, generator=generator, dtype=torch.float64)
    F = torch.zeros(SYSTEMS, grid.size, d, dtype=torch.float64)
    for system in range(SYSTEMS):
        c = torch.randn(medium.count, generator=generator, dtype=torch.float64).exp()
        F[system, free] = torch.linalg.solve(medium.stiffness(c), medium.mass @ U)
    return Context(U[None], F, grid, grid)


EXAMPLES: dict[str, Callable[[int, int], Context]] = {
    "radial": radial,
    "source to pressure": source_to_pressure,
    "pressure to source": pressure_to_source,
    "load to displacement": load_to_displacement,
}
PLANE = {"source to pressure", "pressure to source"}


@dataclass(frozen=True)
class Facts:
    """What a map takes, and which promises of the contract it is known to break.

    order: the order of the pairs does not matter. scale: u and f may be multiplied by one factor. any_d: any number of
    pairs is taken. resolution: any grid of the domain is taken. fit: a map without a loss is fitted to systems like
    these.
    """

    takes: frozenset[str] = frozenset(EXAMPLES)
    breaks: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)


PAIR_IS_FEATURE = frozenset({"order", "scale", "any_d"})
"""Maps that see pair j as feature j, standardised by their training data."""

SMALL_GRID = {
    "cosines": 24,
    "spectra": ((3, 2), (6, 6)),
    "bands": (),
    "peak_widths": (),
    "edges": 0,
    "survivors": (4, 2),
}

FACTS = {
    "nao": Facts(breaks=PAIR_IS_FEATURE, options={"dk": 4}),
    "nao-u": Facts(breaks=PAIR_IS_FEATURE, options={"dk": 4}),
    "softmax-nao": Facts(breaks=PAIR_IS_FEATURE, options={"dk": 4}),
    "discrete-nao": Facts(breaks=PAIR_IS_FEATURE | {"resolution"}, options={"dk": 4}),
    "set-nao": Facts(options={"waves": 3}),
    "afno": Facts(breaks=PAIR_IS_FEATURE, options={"dk": 4}),
    "autoencoder": Facts(breaks=PAIR_IS_FEATURE, options={"dk": 4}),
    "kernel1d": Facts(frozenset({"radial"}), options=SMALL_GRID),
    "integral": Facts(options={"smoothness": (1,), "lengths": 1}),
    "integral-posterior": Facts(options={"waves": 3}),
    "local-posterior": Facts(frozenset(PLANE), options={"reach": 1}),
    "solution-posterior": Facts(frozenset(PLANE), breaks=frozenset({"fit"}), options={"reach": 1}),
    "material-posterior": Facts(frozenset({"load to displacement"}), breaks=frozenset({"fit"})),
}


def build(name: str, context: Context, dtype: torch.dtype = torch.float64) -> KernelMap:
    """A small map with random weights, standardised as after training."""
    torch.manual_seed(0)
    kind = MAPS[name]
    model = kind.build(ContextShape.of(context), kind.Options(**FACTS[name].options)).to(dtype)
    model.standardise(context.U, context.F)
    return model
