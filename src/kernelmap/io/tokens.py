"""The layouts of tokens: U and F themselves, on radii or on points with weights."""

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.io.entries import Entries, context_of, is_uniform, numbers, require_finite, vector


def token_context(entries: Entries) -> Context:
    U, y = token_inputs(entries)
    F = numbers(entries, "F")
    if "x" in entries:
        F = np.atleast_2d(F)
        x = _output_grid(_points(entries, "x", "F", F), y)
    else:
        F = vector(entries, "F", "; for several outputs give x, (M, dim)")[None]
        x = grids.point()
    return context_of(torch.from_numpy(U), torch.from_numpy(F), y, x, "tokens")


def token_inputs(entries: Entries) -> tuple[np.ndarray, Grid]:
    """U and the grid of its rows."""
    U = numbers(entries, "U")
    if U.ndim != 2:
        raise InputError(f"U must have shape (N, d), got {U.shape}.")
    return U, _radial_grid(vector(entries, "r")) if "r" in entries else _weighted_grid(entries, U)


def _radial_grid(r: np.ndarray) -> Grid:
    require_finite("r", r)
    if not (np.diff(r, prepend=0) > 0).all():
        raise InputError(f"r must begin above 0 and increase, got {r[0]:.6g} to {r[-1]:.6g}; sort r and the rows of U.")
    dx = float(r[-1]) / len(r)
    return grids.radii(dx, len(r)) if is_uniform(r, dx) else grids.from_points(r)


def _weighted_grid(entries: Entries, U: np.ndarray) -> Grid:
    points, weights = _points(entries, "y", "U", U), vector(entries, "weights")
    if len(weights) != len(points):
        raise InputError(f"y holds {len(points)} points but weights holds {len(weights)} values; give one for each.")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InputError("weights must be positive: the share of the domain that each point of y stands for.")
    return Grid(torch.from_numpy(points), torch.from_numpy(weights))


def _output_grid(points: np.ndarray, y: Grid) -> Grid:
    """With the weights of y where the points are those of y, otherwise with equal weights."""
    p = torch.from_numpy(points)
    same = p.shape == y.points.shape and torch.allclose(p, y.points)
    return Grid(p, y.weights if same else torch.full((len(p),), 1 / len(p), dtype=torch.float64))


def _points(entries: Entries, name: str, fields: str, rows: np.ndarray) -> np.ndarray:
    """Points (n, dim), one for each row of the fields U or F."""
    values = numbers(entries, name)
    points = values.reshape(-1, 1) if max(values.shape, default=0) == values.size == len(rows) else values
    if points.ndim != 2 or len(points) != len(rows):
        swapped = ""
        if values.shape[:1] == rows.shape[1:]:
            swapped = f" The axes of {fields} seem swapped: pairs go last."
        elif values.shape[1:] == rows.shape[:1]:
            swapped = f" The axes of {name} seem swapped: points go first."
        raise InputError(
            f"{name} must have shape ({len(rows)}, dim), a point for each row of {fields}, got {values.shape}.{swapped}"
        )
    require_finite(name, points)
    return points
