"""`read_measurements`: from the path of a file to the context in it, and to what was found."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelmap.core.context import Context, check_magnitude
from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file, reading
from kernelmap.io.entries import LABELS, Entries, context_of, labels_of, unknown_of
from kernelmap.io.fields import field_context
from kernelmap.io.formats import file_format, read_entries
from kernelmap.io.integral import STRUCTURE, integral_context
from kernelmap.io.layouts import LAYOUTS, MESHES, also, decide
from kernelmap.io.mesh import mesh_context
from kernelmap.io.particles import interaction_context
from kernelmap.io.series import series_context
from kernelmap.io.series.noise import left_on
from kernelmap.io.tokens import token_context
from kernelmap.operators import OPERATORS

KNOWN = {
    "radius",
    "outside",
    "operator",
    "lags",
    "t",
    "t_f",
    "f_std",
    "u_std",
    "unknown",
    "velocities",
    *STRUCTURE,
    *LABELS,
}.union(*(layout.names for layout in LAYOUTS.values()))


@dataclass(frozen=True)
class Measurements:
    """The pairs of one system in float64, and in plain words what was found in the file.

    has_radius: False where u and f came without one: the largest possible was taken.
    places: how many values f has on a mesh, in time or of particles, measured or not; 0 in other layouts.
    labels: units and names that the file gives of u, f and x or t: u_unit, f_name, ...; and K_unit where it follows.
    others: what else the entry `operator` could say of the same entries, if it were there.
    """

    context: Context
    found: dict[str, str]
    has_radius: bool = True
    labels: dict[str, str] = field(default_factory=dict)
    places: int = 0
    others: tuple[str, ...] = ()


def read_measurements(path: Path | str, given: Mapping[str, Any] | None = None) -> Measurements:
    """Format by the file's first bytes, layout by the names of its entries.

    given: entries in the place of those of the file, such as a radius, an operator or a unit.

    Thirty responses at one point:

        >>> y = np.linspace(0, 1, 20)
        >>> u = np.sin(np.outer(np.arange(1, 31), y))
        >>> np.savez("rows.npz", y=y, x=[0.5], u=u, f=u.mean(axis=1))
        >>> measured = read_measurements("rows.npz")
        >>> measured.context.operator, measured.context.d
        ('integral', 30)
    """
    path = existing_file(path, "a file of measurements (HDF5, NPZ, MAT or CSV)")
    try:
        with reading(path, "file of measurements", "write it again"):
            kind = file_format(path)
            entries = read_entries(path, kind, KNOWN)
            if given and "a kernelmap context file" in entries:
                raise InputError(f"{', '.join(given)} cannot be given for a file of tokens that kernelmap wrote.")
            entries = entries | {name: np.asarray(value) for name, value in (given or {}).items()}
            layout = "context" if "a kernelmap context file" in entries else decide(entries)
            context, dropped = _context(path, entries, layout)
            if layout != "context" and (unknown := unknown_of(entries)) is not None:
                context = replace(context, unknown=unknown)
            check_magnitude(context)
            labels = labels_of(entries)
            labels |= kernel_unit(labels, layout)
    except InputError as error:
        raise error.within(path) from error
    saved = {"U": context.U, "F": context.F}
    arrays = saved if layout == "context" else {name: entries[name] for name in entries if name in KNOWN}
    x, y = context.x, context.y
    low, high = (", ".join(f"{v:.6g}" for v in corner) for corner in (y.points.amin(0), y.points.amax(0)))
    found = {
        "format": kind,
        "layout": layout,
        "operator": _named(context, layout),
        "entries": ", ".join(f"{name} {tuple(np.shape(array)) or 'scalar'}" for name, array in arrays.items()),
        _grid_name(context): f"{len(y.points)} from {low} to {high}",
        "outputs": str(x.size),
        "pairs": str(context.d),
        "dropped": dropped,
    }
    others = {} if layout == "context" else also(entries, layout)
    if others:
        found["could also be"] = "; ".join(f"{meaning}: operator = {name!r}" for name, meaning in others.items())
    if context.u_errors is not None:
        found["noise on u"] = f"smoothed; errors of ± {left_on(context.u_errors)} are left"
    if context.blocks is not None:
        found["inputs"] = f"{len(context.blocks)} that act together"
    if labels:
        found["labels"] = ", ".join(f"{name} {text}" for name, text in labels.items())
    sampled = layout in (*MESHES, "convolution")
    places = np.size(entries["f"]) if sampled else context.d if layout == "interaction" else 0
    return Measurements(context, found, not sampled or "radius" in entries, labels, places, tuple(others))


def kernel_unit(labels: dict[str, str], layout: str) -> dict[str, str]:
    """K_unit: f per u and per volume of x, or a velocity per distance; of several inputs, one for each."""
    f, x = labels.get("f_unit"), labels.get("x_unit", labels.get("t_unit"))
    if layout == "interaction":
        return {"K_unit": f"{f} / {x}"} if f and x else {}
    power = {"mesh of a plane": "²", "mesh of space": "³"}.get(layout, "")
    each = [f"{f} / ({u.strip()} · {x}{power})" for u in labels.get("u_unit", "").split(",") if u and f and x]
    return {"K_unit": ", ".join(each)} if each else {}


def _named(context: Context, layout: str) -> str:
    """The operator, and what it means."""
    meaning = LAYOUTS[layout].meaning if layout in LAYOUTS else "pairs that kernelmap saved"
    return f"{context.operator or 'tokens'}: {meaning}"


def _grid_name(context: Context) -> str:
    if context.operator == "convolution":
        return "lags"
    return "radii" if context.x.is_point and context.y.dim == 1 else "points"


def _context(path: Path, entries: Entries, layout: str) -> tuple[Context, str]:
    """The context, and in words which pairs were dropped."""
    if layout in MESHES:
        return mesh_context(entries)
    if layout == "convolution":
        return series_context(entries)
    if layout == "interaction":
        return interaction_context(entries)
    if layout == "fields":
        return field_context(entries), "none"
    if layout == "integral":
        return integral_context(entries), "none"
    return _saved_context(path) if layout == "context" else token_context(entries), "none"


def _saved_context(path: Path) -> Context:
    context = Context.load(path)
    if context.batch_shape.numel() != 1:
        raise InputError(f"expected one system, got a batch of shape {tuple(context.batch_shape)}; save one by one.")
    one = context[(0,) * len(context.batch_shape)].to(torch.float64)
    if one.operator in OPERATORS and not one.y.resembles(OPERATORS[one.operator].on(one.y).grid):
        raise InputError(f"y is no grid of the operator {one.operator}; leave out what the file says of the operator.")
    context = context_of(one.U, one.F, one.y, one.x, one.operator or "tokens", places=one.places, blocks=one.blocks)
    return replace(context, unknown=one.unknown, F_std=one.F_std, u_errors=one.u_errors)
