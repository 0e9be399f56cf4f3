"""Small contexts of every kind, for tests over all maps."""

import torch

from kernelmap.core import grids
from kernelmap.core.context import Context


def radial_context(
    N: int = 24, d: int = 6, batch: tuple[int, ...] = (3,), shared: bool = False, seed: int = 0
) -> Context:
    """One output point."""
    return _context(grids.radii(11 / N, N), grids.point(), d, batch, shared, seed)


def square_context(
    n: int = 4, d: int = 6, batch: tuple[int, ...] = (3,), shared: bool = False, seed: int = 0
) -> Context:
    """Inputs and outputs on the same n x n nodes."""
    return _context(grids.rectangle(n), grids.rectangle(n), d, batch, shared, seed)


def vector_context(
    n: int = 3, d: int = 6, batch: tuple[int, ...] = (3,), shared: bool = False, seed: int = 0
) -> Context:
    """Inputs and outputs with two components on n x n nodes."""
    grid = grids.rectangle(n).with_components(2)
    return _context(grid, grid, d, batch, shared, seed)


CONTEXTS = {"radial": radial_context, "square": square_context, "vector": vector_context}


def _context(y: grids.Grid, x: grids.Grid, d: int, batch: tuple[int, ...], shared: bool, seed: int) -> Context:
    generator = torch.Generator().manual_seed(seed)
    inputs = (*batch[:-1], 1) if shared and batch else batch
    U = torch.randn(*inputs, y.size, d, generator=generator, dtype=torch.float64)
    F = torch.randn(*batch, x.size, d, generator=generator, dtype=torch.float64)
    return Context(U, F, y, x)
