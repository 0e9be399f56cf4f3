"""Finite elements on the uniform mesh of a square: P1, Q1 and Q2.

All cells of a kind are alike, so one small table of shape gradients serves every one of them. Two triangles of P1
make one cell with four nodes and two quadrature points, which lets them share the code of the quadrilaterals.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from kernelmap.core.errors import InputError
from kernelmap.core.mesh.elements import Shape, quadrilateral, triangles

Kind = Literal["p1", "q1", "q2"]
Diagonals = Literal["right", "alternating"]


@dataclass(frozen=True)
class Patch:
    """The cells of one shape: their place in the mesh and their nodes."""

    shape: Shape
    cells: Int[np.ndarray, " E"]
    nodes: Int[np.ndarray, "E a"]


@dataclass(frozen=True)
class Mesh:
    """cells x cells cells of a square; nodes and cells are numbered with the last coordinate, y, fastest."""

    kind: Kind
    cells: int
    side: float
    diagonals: Diagonals = "right"

    def __post_init__(self) -> None:
        if self.cells < 1 or not 0 < self.side < np.inf:
            raise InputError(f"a mesh needs at least one cell and a positive side, got {self.cells} and {self.side}.")

    @property
    def degree(self) -> int:
        return 2 if self.kind == "q2" else 1

    @property
    def width(self) -> float:
        return self.side / self.cells

    @cached_property
    def points(self) -> Float[np.ndarray, "n 2"]:
        axis = np.linspace(0, self.side, self.degree * self.cells + 1)
        return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def patches(self) -> tuple[Patch, ...]:
        i, j = (index.ravel() for index in np.divmod(np.arange(self.cells**2), self.cells))
        local = np.arange(self.degree + 1)
        row = self.degree * self.cells + 1
        within = (local[:, None] * row + local).ravel()
        nodes = self.degree * (i * row + j)[:, None] + within
        cells = np.arange(self.cells**2)
        if self.kind != "p1":
            return (Patch(quadrilateral(self.degree), cells, nodes),)
        falling = (i + j) % 2 == 0 if self.diagonals == "alternating" else np.zeros(len(cells), bool)
        parts = ((triangles(down), falling == down) for down in (True, False))
        return tuple(Patch(shape, cells[chosen], nodes[chosen]) for shape, chosen in parts if chosen.any())

    def on(self, *sides: Literal["left", "right", "bottom", "top"]) -> Int[np.ndarray, " k"]:
        """The nodes on some sides."""
        x, y = self.points.T
        where = {"left": x == 0, "right": x == self.side, "bottom": y == 0, "top": y == self.side}
        return np.flatnonzero(np.any([where[side] for side in sides], axis=0))

    def corners(self, n: int) -> Int[np.ndarray, " k"]:
        """The nodes at the (n+1)² corners of a coarser mesh of n x n cells."""
        if n < 1 or self.cells % n:
            raise InputError(
                f"a mesh of {self.cells} x {self.cells} cells does not resolve {n} x {n} pixels: choose a multiple of "
                f"{n}, such as {self.kind}-{n}."
            )
        axis = np.arange(n + 1) * self.degree * (self.cells // n)
        return (axis[:, None] * (self.degree * self.cells + 1) + axis).ravel()


def read_elements(name: str, side: float = 1.0) -> Mesh:
    """The mesh that a name such as q2-28 or p1-140 stands for."""
    kind, _, cells = name.partition("-")
    if kind not in ("p1", "q1", "q2") or not cells.isdecimal() or int(cells) < 1:
        raise InputError(f"elements are named p1-, q1- or q2- and the cells per side, as in q2-28; got {name!r}.")
    return Mesh(kind, int(cells), side)
