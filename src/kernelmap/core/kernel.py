"""`Kernel`: a hidden kernel on its grids, as values or as low-rank factors, applied without being built."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import LinearNDInterpolator, make_interp_spline
from torch import Tensor

from kernelmap.core.algebra.products import shared_matmul
from kernelmap.core.context import read_grid, write_grid
from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, open_hdf5, read_array
from kernelmap.core.grids import Grid

Points = np.ndarray | Tensor | Sequence[float]


@dataclass(frozen=True)
class Kernel:
    """K(x_m, y_k) = Σ_r left[m, r] right[r, k]; without `left`, `right` holds the values themselves.

    Its operator is u -> f, f(x_m) = Σ_k K(x_m, y_k) w_k g[u](y_k) with the quadrature weights w of the grid y.
    Leading dimensions are a batch of systems.

        >>> from kernelmap import grids
        >>> y = grids.radii(0.5, 4)
        >>> kernel = Kernel(torch.exp(-y.points.T), y, grids.point())
        >>> print([round(float(K), 3) for K in kernel([0.5, 1.0])])
        [0.607, 0.368]
        >>> print(round(float(kernel.apply(torch.ones(4, 1, dtype=torch.float64))), 3))  # ∫ K(r) dr
        0.666
    """

    right: Float[Tensor, "*#b R N"]
    y: Grid
    x: Grid
    left: Float[Tensor, "*#b M R"] | None = None

    def __post_init__(self) -> None:
        if self.right.shape[-1] != self.y.size:
            raise InputError(f"the kernel has {self.right.shape[-1]} columns but the grid y has {self.y.size} values.")
        rows = (self.right if self.left is None else self.left).shape[-2]
        if rows != self.x.size:
            raise InputError(f"the kernel has {rows} rows but the grid x has {self.x.size} values.")

    @property
    def values(self) -> Float[Tensor, "*#b M N"]:
        return self.right if self.left is None else self.left @ self.right

    def apply(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*#b M n"]:
        """f = K diag(w) U for n inputs, from the factors or from the values, whichever takes fewer operations."""
        if U.shape[-2] != self.y.size:
            raise InputError(
                f"the kernel takes inputs with {self.y.size} values, got {U.shape[-2]} (shape {tuple(U.shape)})."
            )
        weights = self.y.value_weights.to(self.right)
        if self.left is None or self.x.size <= self.left.shape[-1]:
            return shared_matmul(self.values * weights, U)
        return self.left @ shared_matmul(self.right * weights, U)

    def expand(self, batch: Sequence[int]) -> "Kernel":
        """The same kernel for every system of a batch."""
        left = None if self.left is None else self.left.expand(*batch, *self.left.shape[-2:])
        return Kernel(self.right.expand(*batch, *self.right.shape[-2:]), self.y, self.x, left)

    @classmethod
    def joined(cls, kernels: "Sequence[Kernel]", dim: int) -> "Kernel":
        """The batch that was split along one of its dimensions; counted from the end, -3 is the last of the batch."""
        right, left = ([getattr(kernel, name) for kernel in kernels] for name in ("right", "left"))
        return cls(torch.cat(right, dim), kernels[0].y, kernels[0].x, None if left[0] is None else torch.cat(left, dim))

    def __getitem__(self, system: int | tuple[int, ...]) -> "Kernel":
        """One system of a batch."""
        return Kernel(self.right[system], self.y, self.x, None if self.left is None else self.left[system])

    def __call__(self, y: Points, x: Points | None = None) -> np.ndarray:
        """Values at any points y (and x) of the domain, linear between the grid's points.

        One step beyond its ends is still the domain. Points of a one-dimensional grid may be given as a flat array.
        The answer has shape (..., cx, |x|, cy, |y|) with the axes of single points and single components left out; x is
        the kernel's own grid by default.
        """
        table = self.values.detach().cpu().numpy()
        lead = table.shape[:-2]
        table = table.reshape(*lead, self.x.components, len(self.x.points), self.y.components, len(self.y.points))
        table = _interpolate(self.y, table, y, axis=-1, name="y")
        if x is not None:
            table = _interpolate(self.x, table, x, axis=-3, name="x")
        drop = [axis for axis in (-4, -3, -2) if table.shape[axis] == 1]
        return np.squeeze(table, axis=tuple(drop))

    def save(self, path: Path | str) -> None:
        """Write HDF5, to be read again by `Kernel.load`."""
        with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
            self.write(file)

    def write(self, file: h5py.File) -> None:
        file.attrs["kernelmap"] = "kernel"
        file["right"] = self.right.detach().cpu().numpy()
        if self.left is not None:
            file["left"] = self.left.detach().cpu().numpy()
        write_grid(file, "y", self.y)
        write_grid(file, "x", self.x)

    @classmethod
    def load(cls, path: Path | str) -> "Kernel":
        with open_hdf5(path) as file:
            return cls.read(file)

    @classmethod
    def read(cls, file: h5py.File) -> "Kernel":
        left = read_array(file, "left") if "left" in file else None
        return cls(read_array(file, "right"), read_grid(file, "y"), read_grid(file, "x"), left)

    def export(self, path: Path | str, std: Float[Tensor, "M N"] | None = None, coordinate: str = "r") -> None:
        """Write the values for other programs: .npz (y, x, K, std) or, for K of one coordinate, .csv (r, K, std).

        Several inputs have columns K1, std1, K2, std2, ..
        """
        path = Path(path)
        values, y, x = (t.detach().cpu().numpy() for t in (self.values, self.y.points, self.x.points))
        if path.suffix == ".npz":
            bar: dict[str, Any] = {} if std is None else {"std": std.detach().cpu().numpy()}
            with atomic_path(path) as temporary:
                np.savez(temporary, y=y, x=x, K=values, **bar)
        elif path.suffix == ".csv" and values.shape == (1, self.y.size) and y.shape[1] == 1:
            inputs, columns = self.y.components, [(coordinate, y[:, 0])]
            stds = [None] * inputs if std is None else np.split(std[0].detach().cpu().numpy(), inputs)
            for i, (K, own) in enumerate(zip(np.split(values[0], inputs), stds, strict=True), 1):
                number = str(i) if inputs > 1 else ""
                columns += [(f"K{number}", K), *([] if own is None else [(f"std{number}", own)])]
            table = np.column_stack([column for _, column in columns])
            header = ",".join(name for name, _ in columns)
            with atomic_path(path) as temporary:
                np.savetxt(temporary, table, delimiter=",", header=header, comments="")
        else:
            raise InputError(
                f"cannot export a kernel of shape {values.shape} to {path.name}: use .npz, or .csv for K(r)."
            )


def _interpolate(grid: Grid, table: np.ndarray, points: Points, axis: int, name: str) -> np.ndarray:
    where = np.asarray(points, dtype=np.float64)
    if where.ndim < 2 and grid.dim == 1:
        where = where.reshape(-1, 1)
    if where.ndim != 2 or where.shape[1] != grid.dim:
        raise InputError(f"points {name} must have shape (n, {grid.dim}), got {where.shape}.")
    if grid.is_point:
        raise InputError(f"the kernel has a single point {name}: leave {name} out.")
    known = grid.points.cpu().numpy()
    low, high = known.min(axis=0), known.max(axis=0)
    # A radial grid starts one step from r = 0, which belongs to its domain.
    margin = (high - low) / max(len(known) ** (1 / grid.dim) - 1, 1) * 1.001
    if not ((where >= low - margin) & (where <= high + margin)).all():
        raise InputError(f"points {name} lie outside the kernel's domain {low.tolist()} to {high.tolist()}.")
    if grid.dim == 1:
        return np.asarray(make_interp_spline(known[:, 0], table, k=1, axis=axis)(where[:, 0]))
    inside = np.clip(where, low, high)
    moved = np.moveaxis(table, axis, 0)
    return np.moveaxis(LinearNDInterpolator(known, moved)(inside), 0, axis)
