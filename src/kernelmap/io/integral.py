"""The layout of integrals: inputs u(y) and responses f(x) in rows, of one system or of several."""

from typing import NamedTuple

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.io.entries import Entries, context_of, is_uniform, numbers, require_finite, sorted_by, vector

STRUCTURE = ("symmetric", "symmetry", "kink")
"""Entries that say what the prior of K(x, y) = Σ v_i(x) Z_i(y) cannot: they would couple its factors."""

NAMES = ("u", "f", "y", "x", "weights")


class Sampled(NamedTuple):
    """Inputs (Su, P, N) and responses (S, P, M) on their grids; Su = 1 where the systems share their inputs."""

    u: np.ndarray
    f: np.ndarray
    y: Grid
    x: Grid


def integral_context(entries: Entries) -> Context:
    """f_j(x) = ∫ K(x, y) u_j(y) dy of one system."""
    if told := [name for name in STRUCTURE if name in entries]:
        raise InputError(
            f"the entry {told[0]}: symmetry of K, or a kink on its diagonal, cannot be told to the model integral, "
            "which weighs x and y apart. Leave the entry out; the kernel found may be made symmetric afterwards."
        )
    u, f, y, x = sampled(entries)
    if len(f) != 1:
        raise InputError(
            f"f has shape {np.shape(entries['f'])}, which is {len(f)} systems; here one is expected, u (d, N) and f "
            "(d, M). Many systems are for `kernelmap train own --data FILE`."
        )
    return context_of(torch.from_numpy(u[0].T.copy()), torch.from_numpy(f[0].T.copy()), y, x, "integral")


def sampled(entries: Entries) -> Sampled:
    """`f` (S, P, M) decides that there are S systems; one system has f (P, M). M = 1 may be left out."""
    y = input_grid(entries)
    x = _output_grid(entries, y)
    u = input_rows(entries, y)
    f = _responses(entries, u.shape[1], x)
    if len(u) not in (1, len(f)):
        raise InputError(
            f"u holds {len(u)} systems but f holds {len(f)}; give u as (S, P, N), or as (P, N) where all systems share "
            "their inputs."
        )
    return Sampled(u, f, y, x)


def input_rows(entries: Entries, y: Grid) -> np.ndarray:
    """u as (Su, P, N)."""
    u = numbers(entries, "u")
    if u.ndim not in (2, 3) or u.shape[-1] != y.size:
        swapped = u.ndim in (2, 3) and u.shape[-2] == y.size
        raise InputError(
            f"u must have shape (P, {y.size}) or (S, P, {y.size}), a row for each of P pairs with the values at the "
            f"{y.size} points of y, got {u.shape}.{' Its axes seem swapped: rows are pairs here.' if swapped else ''}",
            {"u": 'np.moveaxis(d["u"], -1, -2)'} if swapped else None,
        )
    require_finite("u", u)
    return u if u.ndim == 3 else u[None]


def _responses(entries: Entries, P: int, x: Grid) -> np.ndarray:
    """f as (S, P, M)."""
    f, M = numbers(entries, "f"), x.size
    if bad := f.size - int(np.isfinite(f).sum()):
        raise InputError(
            f"f holds {bad} value(s) that are NaN or infinite; the model integral takes no missing values: leave out "
            "the pairs, or the points of x, where f was not measured.",
            _without_missing(f) if f.shape == (P, M) == (P, len(entries.get("x", ()))) else None,
        )
    if f.ndim == 3 and f.shape[1:] == (P, M):
        return f
    if M == 1 and f.size == P == max(f.shape, default=0):
        return f.reshape(1, P, 1)
    if f.shape == (P, M):
        return f[None]
    if M == 1 and f.ndim == 2 and f.shape[1] == P:
        return f[..., None]
    hint = ""
    if P not in f.shape:
        hint = f" u holds {P} pairs: every u needs its f."
    elif "x" not in entries:
        hint = " For several output points give x, the M points of f; several systems go first, (S, P)."
    elif f.shape[-2:] == (M, P):
        hint = " Its axes seem swapped: rows are pairs here."
    one = f"(P,) = ({P},) or (S, {P})" if M == 1 else f"(P, M) = ({P}, {M}) or (S, {P}, {M})"
    raise InputError(
        f"f must have shape {one}, a row for each pair of each of S systems, got {f.shape}.{hint}",
        {"f": 'np.moveaxis(d["f"], -1, -2)'} if "swapped" in hint else None,
    )


def _without_missing(f: np.ndarray) -> dict[str, str] | None:
    """Without the pairs at which values are missing, where that leaves half of them, or without those points of x."""
    known, there = np.isfinite(f), 'np.isfinite(d["f"])'
    if known.all(axis=1).sum() >= max(len(f) / 2, 2):
        return {name: f'd["{name}"][{there}.all(axis=1)]' for name in ("u", "f")}
    points = known.any(axis=0)
    if points.any() and known[:, points].all():
        return {"x": f'd["x"][{there}.any(axis=0)]', "f": f'd["f"][:, {there}.any(axis=0)]'}
    return None


def input_grid(entries: Entries) -> Grid:
    points = _points(entries, "y")
    if "weights" not in entries:
        weights = _quadrature(points)
        if weights is None:
            raise InputError(
                f"y holds {len(points)} points that are neither increasing on a line nor a uniform mesh; give weights, "
                "the part of the domain that each point stands for.",
                sorted_by("y", entries, ["u"], -1) if points.shape[1] == 1 and "u" in entries else None,
            )
    else:
        weights = vector(entries, "weights")
        if len(weights) != len(points):
            raise InputError(
                f"y holds {len(points)} points but weights holds {len(weights)} values; give one for each."
            )
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise InputError("weights must be positive: the part of the domain that each point of y stands for.")
    return Grid(torch.from_numpy(points), torch.from_numpy(weights))


def _output_grid(entries: Entries, y: Grid) -> Grid:
    """With the weights of y where the points are those of y; scattered points count alike."""
    if "x" not in entries:
        return grids.point()
    points = _points(entries, "x")
    p = torch.from_numpy(points)
    if p.shape == y.points.shape and torch.allclose(p, y.points):
        return Grid(p, y.weights)
    weights = _quadrature(points)
    return Grid(p, torch.from_numpy(np.full(len(p), 1 / len(p)) if weights is None else weights))


def _points(entries: Entries, name: str) -> np.ndarray:
    """(n, dim); a vector is points on a line."""
    values = numbers(entries, name)
    if values.size and max(values.shape, default=1) == values.size:
        values = values.reshape(-1, 1)
    if values.ndim != 2 or not values.size:
        raise InputError(f"{name} must have shape (n,) or (n, dim), a point in each row, got {values.shape}.")
    if len(values) < values.shape[1]:
        raise InputError(f"{name} has shape {values.shape}. Its axes seem swapped: points go first.")
    require_finite(name, values)
    return values


def _quadrature(points: np.ndarray) -> np.ndarray | None:
    """Trapezoidal weights on a line, cells of a uniform mesh in more dimensions; None for other points."""
    if len(points) == 1:
        return np.ones(1)
    if points.shape[1] == 1:
        return grids.from_points(points[:, 0]).weights.numpy() if (np.diff(points[:, 0]) > 0).all() else None
    axes = [np.unique(column.round(12)) for column in points.T]
    lengths = [len(axis) for axis in axes]
    if min(lengths) < 2 or np.prod(lengths) != len(points) or not all(is_uniform(axis, axis[0]) for axis in axes):
        return None
    cell = np.prod([(axis[-1] - axis[0]) / (len(axis) - 1) for axis in axes])
    return np.full(len(points), cell)
