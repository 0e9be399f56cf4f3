"""The mesh layout: functions u and f on a uniform mesh x, as pairs of radial tokens."""

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.io.entries import (
    Entries,
    context_of,
    is_uniform,
    listed,
    numbers,
    radius_steps,
    require_finite,
    require_token_memory,
    vanishes_outside,
    vector,
)
from kernelmap.io.series.noise import errors_of, without_noise
from kernelmap.operators import Radial

UNKNOWN_RADIUS = 1 / 3
"""Of the mesh's length, taken where no radius is given: the kernel may end anywhere before."""


def mesh_context(entries: Entries) -> tuple[Context, str]:
    """A pair for each point where f was measured and u is known within the radius; in words, those dropped."""
    x = vector(entries, "x")
    dx = mesh_step(x)
    u, f = (functions_on(entries, name, len(x)) for name in ("u", "f"))
    if len(u) != len(f):
        raise InputError(f"u holds {len(u)} functions but f holds {len(f)}; every u needs its f.")
    require_finite("u", u)
    if np.isinf(f).any():
        raise InputError(f"f holds {np.isinf(f).sum()} infinite value(s); write NaN where it was not measured.")
    u, u_errors = without_noise(entries, u[None])
    zero_outside = vanishes_outside(entries)
    operator = Radial(dx, _count_radii(entries, x, dx, zero_outside))
    measured, reached = ~np.isnan(f), zero_outside | operator.reached(len(x))
    used = measured & reached
    require_token_memory(
        int(used.sum()),
        len(u),
        operator.count,
        "radii do not fit into memory. Write NaN into f at some points, or take a smaller radius or a coarser mesh; "
        "radius and x must have the same unit.",
    )
    rows, points = np.nonzero(used)
    tokens = operator.tokens_at(u[0], rows, points)
    informative = tokens.any(dim=1)
    dropped = listed(
        {
            "f is NaN": int((~measured).sum()),
            "the mesh ends within the radius": int((measured & ~reached).sum()),
            "all tokens are zero": int((~informative).sum()),
        }
    )
    U, F = tokens[informative].T, torch.from_numpy(f[used])[informative][None]
    places = operator.places(x[points], rows, len(u) > 1).select(informative)
    F_std = errors_of(entries, f.shape, used)
    F_std = None if F_std is None else F_std[:, informative]
    y = operator.grid
    context = context_of(U, F, y, grids.point(), operator.name, dropped, places, F_std=F_std, u_errors=u_errors)
    return context, dropped


def mesh_step(x: np.ndarray) -> float:
    require_finite("x", x)
    if len(x) < 3 or not (np.diff(x) > 0).all():
        raise InputError("x must hold at least 3 increasing mesh points; sort x, u and f by x.")
    if not is_uniform(x, x[0]):
        steps = np.diff(x)
        raise InputError(
            f"x must be a uniform mesh, got steps from {steps.min():.6g} to {steps.max():.6g}. Interpolate u and f to "
            "a uniform mesh, or write tokens."
        )
    return float(x[-1] - x[0]) / (len(x) - 1)


def functions_on(entries: Entries, name: str, mesh_points: int) -> np.ndarray:
    values = numbers(entries, name)
    rows = values.reshape(1, -1) if max(values.shape, default=0) == values.size == mesh_points else values
    if rows.ndim != 2 or rows.shape[1] != mesh_points:
        swapped = values.ndim == 2 and len(values) == mesh_points
        raise InputError(
            f"{name} must have shape (J,) or (n, J) with the J = {mesh_points} points of x, got {values.shape}."
            f"{' Its axes seem swapped: mesh points go last.' if swapped else ''}"
        )
    return rows


def _count_radii(entries: Entries, x: np.ndarray, dx: float, zero_outside: bool) -> int:
    count = radius_steps(entries, dx, UNKNOWN_RADIUS * float(x[-1] - x[0]), "mesh", "x")
    if not zero_outside and len(x) <= 2 * count:
        raise InputError(
            f"the mesh is {x[-1] - x[0]:.6g} long, but u must be known within the radius {count * dx:.6g} on both "
            f'sides of a point: measure u on a mesh longer than {2 * count * dx:.6g}, set outside = "zero" if u is '
            "zero beyond the mesh, or set a smaller radius if the kernel has one."
        )
    return count
