"""The mesh layout: functions u and f on a uniform mesh x, as pairs of radial tokens."""

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import free_memory
from kernelmap.core.places import Places
from kernelmap.io.entries import Entries, context_of, is_uniform, numbers, require_finite, vector
from kernelmap.operators.radial import radial_tokens

UNKNOWN_RADIUS = 1 / 3
"""Of the mesh's length, taken where no radius is given: the kernel may end anywhere before."""

MOST_TOKENS = 2**26
"""Half a gigabyte; a window of u on both sides of every pair takes twice as much while they are made."""

BYTES_PER_TOKEN = 40


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
    zero_outside = vanishes_outside(entries)
    count = _count_radii(entries, x, dx, zero_outside)
    measured, reached = ~np.isnan(f), np.ones(f.shape, dtype=bool)
    if not zero_outside:
        reached[:, :count] = reached[:, -count:] = False
    used = measured & reached
    pairs = int(used.sum())
    if (pairs + len(u)) * count > min(MOST_TOKENS, free_memory() / BYTES_PER_TOKEN):
        raise InputError(
            f"{pairs} pairs of {count} radii do not fit into memory. Write NaN into f at some points, or take a "
            "smaller radius or a coarser mesh; radius and x must have the same unit."
        )
    windows = torch.from_numpy(np.pad(u, ((0, 0), (count, count)))).unfold(-1, 2 * count + 1, 1)
    tokens = radial_tokens(windows[torch.from_numpy(used)], count)[:, 0]
    informative = tokens.any(dim=1)
    dropped = _listed(
        {
            "f is NaN": int((~measured).sum()),
            "the mesh ends within the radius": int((measured & ~reached).sum()),
            "all tokens are zero": int((~informative).sum()),
        }
    )
    U, F = tokens[informative].T, torch.from_numpy(f[used])[informative][None]
    grid = grids.radii(dx, count)
    places = _places(x, used).select(informative)
    return context_of(U, F, grid, grids.point(), "radial", dropped, places), dropped


def _places(x: np.ndarray, used: np.ndarray) -> Places:
    """x of every pair, and the number of its input where there are several."""
    inputs, points = np.nonzero(used)
    if len(used) == 1:
        return Places(torch.from_numpy(x[points, None]), ("x",))
    return Places(torch.from_numpy(np.column_stack([inputs, x[points]])), ("input", "x"))


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


def vanishes_outside(entries: Entries) -> bool:
    if "outside" not in entries:
        return False
    word = np.asarray(entries["outside"])
    if word.size != 1 or word.item() not in ("zero", b"zero"):
        raise InputError(f'outside must be the text "zero" or be left out, got {word}.')
    return True


def _count_radii(entries: Entries, x: np.ndarray, dx: float, zero_outside: bool) -> int:
    given = numbers(entries, "radius") if "radius" in entries else np.asarray(UNKNOWN_RADIUS * (x[-1] - x[0]))
    if given.size != 1 or not dx / 2 < given.item() < np.inf:
        raise InputError(
            f"radius must be one number above the step {dx:.6g} of the mesh, in the unit of x, got {given}."
        )
    radius = given.item()
    if not radius / dx < MOST_TOKENS:
        raise InputError(
            f"the radius {radius:g} is more than {MOST_TOKENS} steps of the mesh; give it in the unit of x."
        )
    count = round(radius / dx)
    if not zero_outside and len(x) <= 2 * count:
        raise InputError(
            f"the mesh is {x[-1] - x[0]:.6g} long, but u must be known within the radius {radius:g} on both sides of a "
            f'point: measure u on a mesh longer than {2 * count * dx:.6g}, set outside = "zero" if u is zero beyond '
            "the mesh, or set a smaller radius if the kernel has one."
        )
    return count


def _listed(dropped: dict[str, int]) -> str:
    return "; ".join(f"{count} where {why}" for why, count in dropped.items() if count) or "none"
