"""`read_measurements`: from the path of a file to the context in it, and to what was found."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.files import existing_file
from kernelmap.reading.entries import Entries, context_of
from kernelmap.reading.fields import field_context
from kernelmap.reading.formats import file_format, read_entries
from kernelmap.reading.mesh import mesh_context
from kernelmap.reading.tokens import token_context

LAYOUTS = {
    "mesh": ("x", "u", "f"),
    "fields": ("x1", "x2", "u", "f"),
    "tokens on radii": ("U", "F", "r"),
    "tokens on points": ("U", "F", "y", "weights"),
}
KNOWN = {"radius", "outside"}.union(*LAYOUTS.values())


@dataclass(frozen=True)
class Measurements:
    """The pairs of one system in float64, and in plain words what was found in the file."""

    context: Context
    found: dict[str, str]


def read_measurements(path: Path | str) -> Measurements:
    """Format by the file's first bytes, layout by the names of its entries."""
    path = existing_file(path, "a file of measurements (HDF5, NPZ or MAT)")
    try:
        kind = file_format(path)
        entries = read_entries(path, kind, KNOWN)
        layout = _layout(entries)
        context, dropped = _context(path, entries, layout)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    saved = {"U": context.U, "F": context.F}
    arrays = saved if layout == "context" else {name: entries[name] for name in entries if name in KNOWN}
    x, y = context.x, context.y
    low, high = (", ".join(f"{v:.6g}" for v in corner) for corner in (y.points.amin(0), y.points.amax(0)))
    found = {
        "format": kind,
        "layout": layout,
        "entries": ", ".join(f"{name} {tuple(np.shape(array)) or 'scalar'}" for name, array in arrays.items()),
        "radii" if x.is_point and y.dim == 1 else "points": f"{len(y.points)} from {low} to {high}",
        "outputs": str(x.size),
        "pairs": str(context.d),
        "dropped": dropped,
    }
    return Measurements(context, found)


def _layout(entries: Entries) -> str:
    if "a kernelmap context file" in entries:
        return "context"
    fitting = [layout for layout, names in LAYOUTS.items() if set(names) <= set(entries)]
    if len(fitting) == 1:
        return fitting[0]
    known = "; ".join(f"{layout}: {', '.join(names)}" for layout, names in LAYOUTS.items())
    raise InputError(
        f"expected the entries of one layout ({known}), got {', '.join(sorted(entries)) or 'no entries'}. "
        f"{'Keep one layout.' if fitting else 'Rename or add entries; capitals matter.'}"
    )


def _context(path: Path, entries: Entries, layout: str) -> tuple[Context, str]:
    """The context, and in words which pairs were dropped."""
    if layout == "mesh":
        return mesh_context(entries)
    if layout == "fields":
        return field_context(entries), "none"
    return _saved_context(path) if layout == "context" else token_context(entries), "none"


def _saved_context(path: Path) -> Context:
    context = Context.load(path)
    if context.batch_shape.numel() != 1:
        raise InputError(f"expected one system, got a batch of shape {tuple(context.batch_shape)}; save one by one.")
    U, F = (values.reshape(values.shape[-2:]).double() for values in (context.U, context.F))
    return context_of(U, F, context.y, context.x)
