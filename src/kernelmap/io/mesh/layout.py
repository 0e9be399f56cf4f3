"""The layout of a mesh: a pair for each point at which f was measured."""

import numpy as np
import torch

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.io.entries import (
    MOST_TOKENS,
    Entries,
    listed,
    numbers,
    radius_steps,
    require_finite,
    require_pairs,
    require_token_memory,
    unknown_of,
)
from kernelmap.io.mesh.mesh import Mesh, functions_on, read_mesh
from kernelmap.io.placed import Inputs
from kernelmap.io.series.noise import errors_of, without_noise

UNKNOWN_RADIUS = 1 / 3
"""Of the mesh's shortest side, taken where no radius is given: the kernel may end anywhere before."""


def mesh_context(entries: Entries) -> tuple[Context, str]:
    """A pair for each point where f was measured and u is known within the radius; in words, those dropped."""
    mesh = read_mesh(entries)
    if len(mesh.axes) > 1 and "trend" in (unknown_of(entries) or ()):
        raise InputError("unknown: a trend is one along a line or in time; on this mesh f may have an offset.")
    u, f = (functions_on(entries, name, mesh) for name in ("u", "f"))
    if len(u) != len(f):
        raise InputError(f"u holds {len(u)} functions but f holds {len(f)}; every u needs its f.")
    require_finite("u", u)
    if np.isinf(f).any():
        raise InputError(f"f holds {np.isinf(f).sum()} infinite value(s); write NaN where it was not measured.")
    if len(mesh.axes) == 1:
        smooth, u_errors = without_noise(entries, u[None])
        u = smooth[0]
    elif "u_std" in entries:
        raise InputError("noise on u is known of along a line only; leave u_std out, and smooth u beforehand.")
    else:
        u_errors = None
    operator = mesh.operator(_count_radii(entries, mesh))
    measured, reached = ~np.isnan(f), (mesh.outside == "zero") | operator.reached(*mesh.shape)
    rows, points = _used(measured & reached, f)
    require_token_memory(
        len(rows),
        len(u),
        operator.count,
        "radii do not fit into memory. Write NaN into f at some points, or take a smaller radius or a coarser mesh; "
        "radius and x must have the same unit.",
    )
    tokens = operator.tokens_at(u, rows, points)
    informative = tokens.any(dim=1)
    dropped = listed(
        {
            "f is NaN": int((~measured).sum()),
            "the mesh ends within the radius": int((measured & ~reached).sum()),
            "all tokens are zero": int((~informative).sum()),
        }
    )
    require_pairs(int(informative.sum()), dropped)
    places = operator.places(mesh.at(points), rows, len(u) > 1).select(informative)
    F = torch.from_numpy(f[measured & reached])[informative]
    F_std = errors_of(entries, f.shape, measured & reached)
    F_std = None if F_std is None else F_std[0, informative]
    return operator.context(tokens[informative], F, places, F_std, u_errors), dropped


def mesh_inputs(entries: Entries, kernel: Kernel) -> Inputs:
    """Radial tokens at all points of the mesh within which u is known to the last radius."""
    mesh, y = read_mesh(entries), kernel.y
    if y.dim != 1 or not kernel.x.is_point:
        raise InputError("the discovery is not of a radial mesh; give inputs laid out as its data were.")
    own = float(y.points[0, 0])
    if abs(mesh.step - own) > 1e-6 * own:
        raise InputError(
            f"the kernel's radii have steps of {own:.6g}, the mesh {mesh.step:.6g}; interpolate u to that step."
        )
    u, operator = functions_on(entries, "u", mesh), mesh.operator(y.size)
    require_finite("u", u)
    if len(mesh.axes) == 1:
        u = without_noise(entries, u[None])[0][0]
    reached = np.broadcast_to((mesh.outside == "zero") | operator.reached(*mesh.shape), u.shape)
    if not reached.any():
        raise InputError(
            f"the mesh is {mesh.shortest:.6g} long, but u must be known within {operator.reach[0] * mesh.step:.6g} on "
            'both sides of a point: give u on a longer mesh, or set outside = "zero" if u is zero beyond it.'
        )
    rows, points = _used(reached, u)
    tokens = operator.tokens_at(u, rows, points)
    places = operator.places(mesh.at(points), rows, len(u) > 1)
    shape = numbers(entries, "u").shape
    return Inputs(tokens.T.contiguous(), shape, np.flatnonzero(reached), of_inputs=places, responses=entries.get("f"))


def _used(chosen: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and sample of each."""
    rows, points = np.nonzero(np.broadcast_to(chosen, u.shape).reshape(len(u), -1))
    return rows, points


def _count_radii(entries: Entries, mesh: Mesh) -> int:
    length = mesh.shortest
    largest = (1 / 2 if mesh.outside == "periodic" else UNKNOWN_RADIUS) * length
    count = radius_steps(entries, mesh.step, largest, "mesh", "x")
    operator = mesh.operator(count)
    if operator.dim > 1 and count * (2 * operator.reach[0] + 1) ** operator.dim > MOST_TOKENS:
        raise InputError(
            f"the radius is {count} steps of the mesh, too many in {operator.dim} dimensions; take a smaller radius or "
            "a coarser mesh. radius and x1 must have the same unit."
        )
    if mesh.outside == "periodic" and 2 * count > min(mesh.shape):
        raise InputError(
            f"the radius {count * mesh.step:.6g} is more than half the period {length:.6g}, where u is what it was "
            "before; set a smaller radius."
        )
    if not mesh.outside and not operator.reached(*mesh.shape).any():
        around = operator.reach[0] * mesh.step
        raise InputError(
            f"the mesh is {length:.6g} long, but u must be known within the radius {around:.6g} on both "
            f'sides of a point: measure u on a mesh longer than {2 * around:.6g}, set outside = "zero" if u is '
            'zero beyond the mesh, "periodic" if it begins again there, or set a smaller radius if the kernel has one.'
        )
    return count
