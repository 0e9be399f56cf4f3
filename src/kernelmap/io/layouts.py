"""Which layout a file has: the entry `operator` decides, and without it the names of the other entries do."""

from dataclasses import dataclass

import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, word
from kernelmap.operators import Convolution, Interaction, Radial


@dataclass(frozen=True)
class Layout:
    """`names` are the entries it cannot do without, `marks` those that tell it from the others."""

    names: tuple[str, ...]
    marks: tuple[str, ...]
    meaning: str


MESHES = ("mesh", "mesh of a plane", "mesh of space")

LAYOUTS = {
    "mesh": Layout(("x", "u", "f"), (), "f(x) = ∫ K(r) [u(x+r) + u(x-r) - 2u(x)] dr, u and f on the mesh x"),
    "mesh of a plane": Layout(("x1", "x2", "u", "f"), (), f"{Radial.formula}, u and f on the plane mesh x1, x2"),
    "mesh of space": Layout(
        ("x1", "x2", "x3", "u", "f"), ("x3",), f"{Radial.formula}, u and f on the mesh x1, x2, x3 of space"
    ),
    "interaction": Layout(("positions",), ("positions",), f"{Interaction.formula}, particles and their velocities"),
    "convolution": Layout(("t", "u", "f"), ("t",), f"{Convolution.formula}, u and f in time"),
    "fields": Layout(("x1", "u", "f"), ("x1",), "fields u and f on the plane mesh x1, x2, or the line x1"),
    "tokens on radii": Layout(("U", "F", "r"), ("U", "F"), "f_j = Σ K(r) w(r) U[r, j], a pair in each column"),
    "tokens on points": Layout(
        ("U", "F", "y", "weights"), ("U", "F"), "f_j(x) = Σ K(x, y) w(y) U[y, j], a pair in each column"
    ),
    "integral": Layout(("y", "u", "f"), ("y",), "f_j(x) = ∫ K(x, y) u_j(y) dy, a pair in each row of u and f"),
}
"""In the order in which they are listed in messages; the mesh, which has no mark, is what is left."""

OPERATORS = {
    "radial": MESHES,
    "convolution": ("convolution",),
    "interaction": ("interaction",),
    "fields": ("fields",),
    "tokens": ("tokens on radii", "tokens on points"),
    "integral": ("integral",),
}
"""What the entry `operator` may say, and the layouts that it allows."""


def decide(entries: Entries) -> str:
    """The name of the layout."""
    allowed = _said(entries)
    fitting = fitting_layouts(entries, allowed)
    marked = [layout for layout in fitting if LAYOUTS[layout].marks]
    if len(fitting) == 1:
        return fitting[0]
    if len(marked) == 1 and not {"U", "F"} & set(LAYOUTS[marked[0]].marks):
        # x belongs to the layout of y, as the points of f; the radial mesh is what a file without marks has.
        return marked[0]
    if fitting:
        listed = "; or ".join(f"{layout}: {LAYOUTS[layout].meaning}" for layout in fitting)
        words = operators_of(fitting)
        raise InputError(
            f"the entries {', '.join(sorted(entries))} could be two things ({listed}). Keep one layout, or say which "
            f"it is by an entry operator: {' or '.join(map(repr, words))}.",
            {"operator": repr(words[0])},
        )
    known = "; ".join(f"{layout}: {', '.join(shape.names)}" for layout, shape in LAYOUTS.items() if layout in allowed)
    raise InputError(
        f"expected the entries of one layout ({known}), got {', '.join(sorted(entries)) or 'no entries'}. "
        "Rename or add entries; capitals matter.",
        _in_other_letters(entries, allowed),
    )


def fitting_layouts(entries: Entries, allowed: tuple[str, ...] = tuple(LAYOUTS)) -> list[str]:
    """Those of which all entries are there, and not only a part of those that mark another."""
    fitting = [layout for layout in allowed if set(LAYOUTS[layout].names) <= set(entries)]
    names = {layout: set(LAYOUTS[layout].names) for layout in fitting}
    marked = [names[layout] for layout in fitting if LAYOUTS[layout].marks]
    return [layout for layout in fitting if not any(names[layout] < other for other in marked)]


def also(entries: Entries, chosen: str) -> dict[str, str]:
    """What else the same entries could mean, by what the entry `operator` would say."""
    if chosen not in LAYOUTS or "operator" in entries:
        return {}
    others = [layout for layout in fitting_layouts(entries) if layout != chosen]
    return {operators_of([layout])[0]: f"{layout}, {LAYOUTS[layout].meaning}" for layout in others}


def _said(entries: Entries) -> tuple[str, ...]:
    """The layouts that the entry `operator` allows; all without it."""
    if "operator" not in entries:
        return tuple(LAYOUTS)
    name = word(entries, "operator")
    if name not in OPERATORS:
        given = np.asarray(entries["operator"])
        raise InputError(f"operator must be the text {', '.join(map(repr, OPERATORS))} or be left out, got {given}.")
    return OPERATORS[name]


def operators_of(layouts: list[str]) -> list[str]:
    """The values of `operator` that stand for layouts."""
    return [name for name, meant in OPERATORS.items() if set(meant) & set(layouts)]


def _in_other_letters(entries: Entries, allowed: tuple[str, ...]) -> dict[str, str] | None:
    """The entries of a layout that are there, but for capitals."""
    there = {name.lower(): name for name in entries}
    for names in (LAYOUTS[layout].names for layout in allowed):
        if all(name.lower() in there for name in names):
            return {name: f'd["{there[name.lower()]}"]' for name in names if name not in entries}
    return None
