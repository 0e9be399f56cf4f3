"""The layout of fields: u and f on the nodes of a uniform mesh, of a line or, with components, of a plane."""

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.io.entries import Entries, context_of, is_uniform, numbers, require_finite, vector


def field_context(entries: Entries) -> Context:
    mesh, shape = field_mesh(entries)
    u, f = (fields_on(entries, name, shape) for name in ("u", "f"))
    if len(u) != len(f):
        raise InputError(f"u holds {len(u)} fields but f holds {len(f)}; every u needs its f.")
    y, x = (mesh.with_components(values.shape[1]) for values in (u, f))
    U, F = (torch.from_numpy(values.reshape(len(values), -1).T) for values in (u, f))
    return context_of(U, F, y, x, "fields")


def field_mesh(entries: Entries) -> tuple[Grid, tuple[int, ...]]:
    """The nodes of x1, or of x1 and x2, and how many there are of each."""
    axes = [_axis(entries, name) for name in ("x1", "x2") if name in entries]
    return grids.mesh(*(torch.from_numpy(axis) for axis in axes)), tuple(len(axis) for axis in axes)


def _axis(entries: Entries, name: str) -> np.ndarray:
    values = vector(entries, name)
    require_finite(name, values)
    if len(values) < 3 or not (np.diff(values) > 0).all() or not is_uniform(values, values[0]):
        raise InputError(f"{name} must hold at least 3 mesh points, increasing in equal steps; interpolate u and f.")
    return values


def fields_on(entries: Entries, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """(d, components, *shape)."""
    values, dims = numbers(entries, name), len(shape)
    if values.ndim not in (dims + 1, 2 * dims) or values.shape[-dims:] != shape:
        swapped = values.ndim > dims and values.shape[:dims] == shape
        last = f'np.moveaxis(d["{name}"], range({dims}), range(-{dims}, 0))'
        raise InputError(
            f"{name} must have shape {_wanted(shape)}, got {values.shape}.{SWAPPED if swapped else ''}",
            {name: last} if swapped else None,
        )
    require_finite(name, values)
    return values if values.ndim == 4 else values[:, None]


SWAPPED = " Its axes seem swapped: pairs go first."


def _wanted(shape: tuple[int, ...]) -> str:
    points = ", ".join(map(str, shape))
    if len(shape) == 1:
        return f"(d, {points}), a field for each pair on the points of x1 (fields on a plane need x2 too)"
    return f"(d, {points}), a field for each pair on the points of x1 and x2, or (d, components, {points})"
