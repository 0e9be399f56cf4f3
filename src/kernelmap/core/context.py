"""`Context`: the d measured pairs of one system, or of a batch of systems, checked once on entry."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import h5py
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, entry, open_hdf5, parse_json, read_array, read_attribute, read_text
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places


@dataclass(frozen=True)
class Context:
    """d pairs of a system that is linear in its hidden kernel: F[m, j] ≈ Σ_k K[m, k] w[k] U[k, j].

    `U[..., k, j] = g[u_j](y_k)` and `F[..., m, j] = f_j(x_m)`. Leading dimensions are a batch of systems; where all
    systems share their inputs, U may have size 1 there and is broadcast, which maps use to work once for all.

    What else may be known of the pairs:
        places: where or when each of them was measured.
        F_std: the standard deviation of every measured value's error.
        blocks: how many rows of U, one after the other, belong to each of several inputs that act together.
        operator: the name of the functional g that made the tokens.
        unknown: what f has besides the kernel's response, `offset` or `trend`; None leaves it to the operator.
        u_errors: autocovariance of the errors of each input's samples at 0, 1, .. steps of y; None for exact inputs.

    Three pairs on two points:

        >>> from kernelmap import grids
        >>> U, F = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]), torch.tensor([[3.0, 4.0, 10.0]])
        >>> context = Context(U, F, grids.radii(1.0, 2), grids.point())
        >>> context.d, context.select(torch.tensor([0, 2])).F.tolist()
        (3, [[3.0, 10.0]])
    """

    U: Float[Tensor, "*bu N d"]
    F: Float[Tensor, "*bf M d"]
    y: Grid
    x: Grid
    places: Places | None = None
    F_std: Float[Tensor, "*bf M d"] | None = None
    blocks: tuple[int, ...] | None = None
    operator: str | None = None
    unknown: tuple[str, ...] | None = None
    u_errors: Float[Tensor, "n L"] | None = None

    def __post_init__(self) -> None:
        _check_pairs(self)
        _check_optional(self)
        _check_unknown(self)

    @property
    def d(self) -> int:
        return self.U.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        return torch.broadcast_shapes(self.U.shape[:-2], self.F.shape[:-2])

    def __getitem__(self, system: int | tuple[int, ...]) -> "Context":
        """One system of a batch, or a smaller batch."""
        index = system if isinstance(system, tuple) else (system,)
        if len(index) > len(self.batch_shape):
            raise InputError(f"the batch has shape {tuple(self.batch_shape)}; it cannot be indexed by {list(index)}.")

        def part(values: Tensor) -> Tensor:
            return values.expand(*self.batch_shape, *values.shape[-2:])[index]

        return self._with(U=part(self.U), F=part(self.F), F_std=None if self.F_std is None else part(self.F_std))

    def split(self, size: int, dim: int) -> "list[Context]":
        """A batch in parts of so many systems along one of its dimensions; inputs that all share stay shared."""
        batch = self.batch_shape
        axis = dim % len(batch) - len(batch) - 2

        def parts(values: Tensor) -> Sequence[Tensor]:
            shared = values.ndim < -axis or values.shape[axis] == 1
            return [values] * -(-batch[dim] // size) if shared else values.split(size, axis)

        F_std = [None] * -(-batch[dim] // size) if self.F_std is None else parts(self.F_std)
        columns = zip(parts(self.U), parts(self.F), F_std, strict=True)
        return [self._with(U=U, F=F, F_std=std) for U, F, std in columns]

    def select(self, pairs: Tensor) -> "Context":
        """The same system with some of its pairs, in the order given."""
        return self._with(
            U=self.U[..., pairs],
            F=self.F[..., pairs],
            places=None if self.places is None else self.places.select(pairs),
            F_std=None if self.F_std is None else self.F_std[..., pairs],
        )

    def thinned(self, count: int) -> "Context":
        """At most so many of its pairs, in equal strides."""
        if self.d <= count:
            return self
        return self.select(torch.linspace(0, self.d - 1, count, device=self.F.device).long())

    def to(self, target: torch.dtype | torch.device | str) -> "Context":
        """Values in another dtype or on another device; grids stay in float64."""
        moved = self._with(
            U=self.U.to(target), F=self.F.to(target), F_std=None if self.F_std is None else self.F_std.to(target)
        )
        return moved if isinstance(target, torch.dtype) else moved._with(y=self.y.to(target), x=self.x.to(target))

    def name(self, pair: int) -> str:
        """What to call a pair in a message: its number from 0 on, and its place where that is known."""
        return f"pair {pair}" + ("" if self.places is None else f" ({self.places.name(pair)})")

    @classmethod
    def unchecked(cls, U: Tensor, F: Tensor, y: Grid, x: Grid) -> "Context":
        """Without the checks: for pieces of what has been checked."""
        context = object.__new__(cls)
        for name, value in (("U", U), ("F", F), ("y", y), ("x", x), *((name, None) for name in OPTIONAL)):
            object.__setattr__(context, name, value)
        return context

    @classmethod
    def without_pairs(cls, y: Grid, x: Grid, d: int) -> "Context":
        """The grids and the number of pairs alone, in the place of a context that is not known any more."""
        zero = y.weights.new_zeros(1, 1)
        return cls.unchecked(zero.expand(y.size, d), zero.expand(x.size, d), y, x)

    def _with(self, **changes: Any) -> "Context":
        """`dataclasses.replace` without the checks."""
        context = object.__new__(type(self))
        for name, value in (vars(self) | changes).items():
            object.__setattr__(context, name, value)
        return context

    def save(self, path: Path | str) -> None:
        """Write HDF5: U, F, the grids as y/points, y/weights, x/points, x/weights, and what else is known."""
        with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["kernelmap"] = "context"
            file["U"], file["F"] = self.U.cpu().numpy(), self.F.cpu().numpy()
            write_grid(file, "y", self.y)
            write_grid(file, "x", self.x)
            if self.places is not None:
                file["places"] = self.places.values.cpu().numpy()
                file.attrs["place_names"] = json.dumps(self.places.names)
            if self.F_std is not None:
                file["F_std"] = self.F_std.cpu().numpy()
            if self.blocks is not None:
                file["blocks"] = self.blocks
            if self.operator is not None:
                file.attrs["operator"] = self.operator
            if self.unknown is not None:
                file.attrs["unknown"] = json.dumps(self.unknown)
            if self.u_errors is not None:
                file["u_errors"] = self.u_errors.cpu().numpy()

    @classmethod
    def load(cls, path: Path | str) -> "Context":
        with open_hdf5(path) as file:
            places = None
            if "places" in file:
                names = parse_json(read_text(file, "place_names"), path)
                places = Places(read_array(file, "places"), tuple(names))
            return cls(
                read_array(file, "U"),
                read_array(file, "F"),
                read_grid(file, "y"),
                read_grid(file, "x"),
                places,
                read_array(file, "F_std") if "F_std" in file else None,
                tuple(read_array(file, "blocks").tolist()) if "blocks" in file else None,
                read_text(file, "operator") if "operator" in file.attrs else None,
                tuple(parse_json(read_text(file, "unknown"), path)) if "unknown" in file.attrs else None,
                read_array(file, "u_errors") if "u_errors" in file else None,
            )


OPTIONAL = ("places", "F_std", "blocks", "operator", "unknown", "u_errors")
UNKNOWN = ("offset", "trend")


def distinct_inputs(U: Float[Tensor, "N d"]) -> Int[Tensor, " d"]:
    """The number of every pair's input among the different ones: equal for pairs that repeat one."""
    some = U[torch.linspace(0, len(U) - 1, min(len(U), 8), device=U.device).long()]
    if torch.unique(some, dim=1).shape[1] == U.shape[1]:
        return torch.arange(U.shape[1], device=U.device)
    return torch.unique(U, dim=1, return_inverse=True)[1]


MAGNITUDES = 1e-152, 1e152
"""Of u, f and lengths, so that their squares, and ratios of them, are numbers."""


def check_magnitude(context: Context) -> None:
    """Refuse values whose squares double precision cannot hold."""
    least, most = MAGNITUDES
    grids = [(name, grid) for name, grid in (("y", context.y), ("x", context.x)) if not grid.is_point]
    lengths = [(f"the points of {name}", grid.points) for name, grid in grids]
    weights = [(f"the weights of {name}", grid.weights) for name, grid in grids]
    for name, values in (("u", context.U), ("f", context.F), *lengths, *weights):
        largest = float(torch.linalg.vector_norm(values, inf))
        if largest > most or 0 < largest < least:
            raise InputError(
                f"the largest value of {name} is {largest:.3g}; it must lie between {least:g} and {most:g}. Give "
                f"{name} in another unit."
            )


def responding(F: Float[Tensor, "*b M d"]) -> Bool[Tensor, " M"]:
    """The values that are not zero in every pair of every system; the others are constrained degrees of freedom."""
    return (F != 0).any(dim=-1).reshape(-1, F.shape[-2]).any(dim=0)


def write_grid(file: h5py.Group, name: str, grid: Grid) -> None:
    group = file.create_group(name)
    group["points"], group["weights"] = grid.points.cpu().numpy(), grid.weights.cpu().numpy()
    group.attrs["components"] = grid.components


def read_grid(file: h5py.Group, name: str) -> Grid:
    group = entry(file, name)
    if not isinstance(group, h5py.Group):
        raise InputError(f"{file.file.filename}: {name} should be a group with points and weights.")
    points, weights = (read_array(group, name).double() for name in ("points", "weights"))
    return Grid(points, weights, int(read_attribute(group, "components")))


def _check_pairs(c: Context) -> None:
    for name, values, grid, letter in (("U", c.U, c.y, "N"), ("F", c.F, c.x, "M")):
        if not isinstance(values, Tensor) or not values.is_floating_point():
            raise InputError(f"{name} must be a floating-point torch tensor, got {_kind(values)}.")
        if values.ndim < 2:
            raise InputError(f"{name} must have shape (..., {letter}, d), got {tuple(values.shape)}.")
        if values.shape[-2] != grid.size:
            swapped = " Its axes seem swapped: pairs go last." if values.shape[-1] == grid.size else ""
            raise InputError(
                f"{name} has {values.shape[-2]} rows but its grid has {grid.size} values "
                f"({grid.components} component(s) on {len(grid.points)} points); {name} must be "
                f"({letter}, d).{swapped}"
            )
        if values.shape[-1] == 0:
            raise InputError(f"{name} holds no pairs (shape {tuple(values.shape)}); give at least one.")
        bad = values.numel() - int(torch.isfinite(values).sum())
        if bad:
            raise InputError(f"{name} holds {bad} value(s) that are NaN or infinite; drop those pairs.")
    if c.U.shape[-1] != c.F.shape[-1]:
        raise InputError(f"U holds {c.U.shape[-1]} pairs but F holds {c.F.shape[-1]}; pair j needs both.")
    if c.U.dtype != c.F.dtype:
        raise InputError(f"U is {c.U.dtype} but F is {c.F.dtype}; give both in one precision.")
    try:
        torch.broadcast_shapes(c.U.shape[:-2], c.F.shape[:-2])
    except RuntimeError as error:
        raise InputError(
            f"the batch dimensions of U {tuple(c.U.shape[:-2])} and F {tuple(c.F.shape[:-2])} do not fit together."
        ) from error


def _check_optional(c: Context) -> None:
    if c.places is not None and len(c.places) != c.d:
        raise InputError(f"there are {c.d} pairs but {len(c.places)} places; give one for each pair, or none.")
    if c.F_std is not None:
        if c.F_std.shape != c.F.shape or c.F_std.dtype != c.F.dtype:
            raise InputError(
                f"F_std must have the shape and precision of F, {tuple(c.F.shape)} and {c.F.dtype}, got "
                f"{tuple(c.F_std.shape)} and {c.F_std.dtype}."
            )
        if not ((c.F_std > 0) & torch.isfinite(c.F_std)).all():
            raise InputError("F_std holds values that are not positive and finite; a measurement has some error.")
    if c.blocks is not None and (sum(c.blocks) != c.y.size or min(c.blocks, default=0) < 1):
        raise InputError(
            f"blocks are the numbers of rows of U that belong to each input, {c.y.size} in all, got {list(c.blocks)}."
        )


def _check_unknown(c: Context) -> None:
    if c.u_errors is not None:
        if c.u_errors.ndim != 2 or len(c.u_errors) != c.y.components or not (c.u_errors[:, 0] >= 0).all():
            raise InputError(
                f"u_errors are autocovariances, a row for each of {c.y.components} input(s), which begin with a "
                f"variance, got shape {tuple(c.u_errors.shape)}."
            )
        if c.operator is None or c.places is None:
            raise InputError("errors of u need the operator and the places of the pairs, which say who shares them.")
    if c.unknown is None:
        return
    if wrong := [name for name in c.unknown if name not in UNKNOWN]:
        raise InputError(f"unknown names what f has besides the kernel's response, {UNKNOWN}, got {wrong}.")
    if "trend" in c.unknown and c.places is None:
        raise InputError("a trend of f needs the places or times of the pairs.")


def _kind(values: object) -> str:
    return f"a {values.dtype} tensor" if isinstance(values, Tensor) else type(values).__name__
