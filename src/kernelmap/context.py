"""`Context`: the d measured pairs of one system, or of a batch of systems, checked once on entry."""

from dataclasses import dataclass
from pathlib import Path

import h5py
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.errors import InputError
from kernelmap.files import atomic_path, open_hdf5, read_array, read_attribute
from kernelmap.grids import Grid


@dataclass(frozen=True)
class Context:
    """d pairs of a system that is linear in its hidden kernel: F[m, j] ≈ Σ_k K[m, k] w[k] U[k, j].

    `U[..., k, j] = g[u_j](y_k)` and `F[..., m, j] = f_j(x_m)`. Leading dimensions are a batch of systems; where all
    systems share their inputs, U may have size 1 there and is broadcast, which maps use to work once for all.
    """

    U: Float[Tensor, "*bu N d"]
    F: Float[Tensor, "*bf M d"]
    y: Grid
    x: Grid

    def __post_init__(self) -> None:
        _check(self)

    @property
    def d(self) -> int:
        return self.U.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        return torch.broadcast_shapes(self.U.shape[:-2], self.F.shape[:-2])

    def select(self, pairs: Tensor) -> "Context":
        """The same system with some of its pairs, in the order given."""
        return self._trusted(self.U[..., pairs], self.F[..., pairs], self.y, self.x)

    def to(self, target: torch.dtype | torch.device | str) -> "Context":
        """Values in another dtype or on another device; grids stay in float64."""
        if isinstance(target, torch.dtype):
            return self._trusted(self.U.to(target), self.F.to(target), self.y, self.x)
        return self._trusted(self.U.to(target), self.F.to(target), self.y.to(target), self.x.to(target))

    @classmethod
    def _trusted(cls, U: Tensor, F: Tensor, y: Grid, x: Grid) -> "Context":
        """Without the checks: for pieces of what has been checked."""
        context = object.__new__(cls)
        for name, value in (("U", U), ("F", F), ("y", y), ("x", x)):
            object.__setattr__(context, name, value)
        return context

    def save(self, path: Path | str) -> None:
        """Write HDF5: U, F, and the grids as y/points, y/weights, x/points, x/weights."""
        with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["kernelmap"] = "context"
            file["U"], file["F"] = self.U.cpu().numpy(), self.F.cpu().numpy()
            write_grid(file, "y", self.y)
            write_grid(file, "x", self.x)

    @classmethod
    def load(cls, path: Path | str) -> "Context":
        with open_hdf5(path) as file:
            return cls(read_array(file, "U"), read_array(file, "F"), read_grid(file, "y"), read_grid(file, "x"))


def write_grid(file: h5py.Group, name: str, grid: Grid) -> None:
    group = file.create_group(name)
    group["points"], group["weights"] = grid.points.cpu().numpy(), grid.weights.cpu().numpy()
    group.attrs["components"] = grid.components


def read_grid(file: h5py.Group, name: str) -> Grid:
    group = file[name]
    if not isinstance(group, h5py.Group):
        raise InputError(f"{file.file.filename}: {name} should be a group with points and weights.")
    return Grid(read_array(group, "points"), read_array(group, "weights"), int(read_attribute(group, "components")))


def _check(c: Context) -> None:
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


def _kind(values: object) -> str:
    return f"a {values.dtype} tensor" if isinstance(values, Tensor) else type(values).__name__
