"""The mesh: its axes, what u is beyond them, and the functions on it."""

from typing import NamedTuple

import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, is_uniform, numbers, outside_of, require_finite, sorted_by, vector
from kernelmap.operators import Radial

AXES = ("x",), ("x1", "x2"), ("x1", "x2", "x3")
"""The entries that hold the mesh, by its dimension."""

ALIKE = 1e-4
"""Part of a step by which the steps of two axes may differ, which single precision keeps."""


class Mesh(NamedTuple):
    """Coordinates along every axis, in steps of one length, and what u is beyond: zero, periodic or, empty, unknown."""

    axes: tuple[np.ndarray, ...]
    step: float
    outside: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    @property
    def shortest(self) -> float:
        """Side; of a period, one step more."""
        return self.step * (min(self.shape) - (self.outside != "periodic"))

    def operator(self, count: int) -> Radial:
        return Radial(self.step, count, len(self.axes), self.outside == "periodic")

    def at(self, points: np.ndarray) -> np.ndarray:
        """Coordinates (d,) or (d, dim) of samples counted through all axes."""
        each = [axis[i] for axis, i in zip(self.axes, np.unravel_index(points, self.shape), strict=True)]
        return each[0] if len(each) == 1 else np.stack(each, axis=1)


def read_mesh(entries: Entries) -> Mesh:
    names = max((names for names in AXES if set(names) <= set(entries)), key=len)
    axes = tuple(_axis(entries, name, axis - len(names)) for axis, name in enumerate(names))
    steps = [float(axis[-1] - axis[0]) / (len(axis) - 1) for axis in axes]
    if max(steps) - min(steps) > ALIKE * min(steps):
        raise InputError(
            f"{' and '.join(names)} must go in the same steps, got {' and '.join(f'{step:.6g}' for step in steps)}; a "
            "radial kernel knows no direction. Interpolate u and f to a mesh of squares."
        )
    return Mesh(axes, steps[0], outside_of(entries))


def _axis(entries: Entries, name: str, axis: int) -> np.ndarray:
    x = vector(entries, name)
    require_finite(name, x)
    if len(x) < 3 or not (np.diff(x) > 0).all():
        raise InputError(
            f"{name} must hold at least 3 increasing mesh points; sort {name}, u and f by {name}.",
            sorted_by(name, entries, [other for other in ("u", "f") if other in entries], axis),
        )
    if not is_uniform(x, x[0]):
        steps = np.diff(x)
        raise InputError(
            f"{name} must be a uniform mesh, got steps from {steps.min():.6g} to {steps.max():.6g}. Interpolate u and "
            "f to a uniform mesh, or write tokens."
        )
    return x


def functions_on(entries: Entries, name: str, mesh: Mesh) -> np.ndarray:
    """(n, *J)."""
    values, shape = numbers(entries, name), mesh.shape
    if len(shape) == 1 and max(values.shape, default=0) == values.size == shape[0]:
        return values.reshape(1, -1)
    rows = values[None] if values.shape == shape else values
    if rows.ndim != len(shape) + 1 or rows.shape[1:] != shape or not len(rows):
        letters = ["J"] if len(shape) == 1 else [f"J{axis + 1}" for axis in range(len(shape))]
        one, points = ", ".join(letters), " x ".join(letters) + " = " + " x ".join(map(str, shape))
        swapped = values.ndim == len(shape) + 1 and values.shape[:-1] == shape
        raise InputError(
            f"{name} must have shape ({one}{',' * (len(shape) == 1)}) or (n, {one}) with the {points} points of "
            f"{', '.join(AXES[len(shape) - 1])}, got {values.shape}."
            f"{' Its axes seem swapped: mesh points go last.' if swapped else ''}",
            {name: f'np.moveaxis(d["{name}"], -1, 0)'} if swapped else None,
        )
    return rows
