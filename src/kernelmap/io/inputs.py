"""`read_inputs`: new inputs u for a kernel that is known, and the shape that their responses f have in the file."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.io.entries import Entries, numbers, require_finite
from kernelmap.io.fields import field_mesh, fields_on
from kernelmap.io.formats import file_format, read_entries
from kernelmap.io.integral import input_grid, input_rows
from kernelmap.io.layouts import MESHES, decide
from kernelmap.io.measurements import KNOWN
from kernelmap.io.mesh import mesh_inputs
from kernelmap.io.particles import interaction_inputs
from kernelmap.io.placed import Inputs
from kernelmap.io.series import series_inputs
from kernelmap.io.tokens import token_inputs


class Candidates(NamedTuple):
    """Tokens (N, n) of the places at which a file has no f, and these places."""

    U: Float[Tensor, "N n"]
    places: Places


def read_candidates(path: Path | str, kernel: Kernel) -> Candidates:
    """Of a mesh, a time series or particles: what could be measured next."""
    inputs = read_inputs(path, kernel)
    if inputs.of_inputs is None:
        raise InputError(
            f"{path}: candidates are the places of a mesh, a time series or particles at which f was not measured."
        )
    free = torch.ones(len(inputs.at), dtype=torch.bool)
    if inputs.responses is not None:
        f = numbers({"f": inputs.responses}, "f")
        if f.size != np.prod(inputs.shape):
            raise InputError(
                f"{path}: f must have a value for each place, NaN where it was not measured, in the shape "
                f"{inputs.shape}; got {f.shape}."
            )
        free = torch.from_numpy(np.isnan(f.flat[inputs.at]))
    if not free.any():
        raise InputError(f"{path}: f was measured at every place where u is known; write NaN where it was not.")
    return Candidates(inputs.U[:, free], inputs.of_inputs.select(free))


def read_inputs(path: Path | str, kernel: Kernel) -> Inputs:
    """The inputs of a file of measurements, which need not hold f; they must be on the kernel's grid."""
    path = existing_file(path, "a file of inputs (HDF5, NPZ, MAT or CSV)")
    try:
        entries = read_entries(path, file_format(path), KNOWN)
        if "a kernelmap context file" in entries:
            context = Context.load(path)
            return _columns(context.U.double(), context.y, kernel, True)
        layout = decide(entries | {"F" if "U" in entries else "f": None})
        if layout in MESHES:
            return mesh_inputs(entries, kernel)
        if layout == "convolution":
            return series_inputs(entries, kernel)
        if layout == "interaction":
            return interaction_inputs(entries, kernel)
        if layout == "fields":
            return _fields(entries, kernel)
        if layout == "integral":
            u = input_rows(entries, input_grid(entries))
            if len(u) != 1:
                raise InputError(f"u holds {len(u)} systems, but a discovery is of one; give u as (P, N).")
            U, y = torch.from_numpy(u[0].T.copy()), input_grid(entries)
            return _rows(U, y, kernel, np.shape(entries["f"]) if "f" in entries else ())
        U, y = token_inputs(entries)
        require_finite("U", U)
        return _columns(torch.from_numpy(U), y, kernel, "x" in entries or not kernel.x.is_point)
    except InputError as error:
        raise error.within(path) from error


def _fields(entries: Entries, kernel: Kernel) -> Inputs:
    mesh, shape = field_mesh(entries)
    u = fields_on(entries, "u", shape)
    U = torch.from_numpy(u.reshape(len(u), -1).T.copy())
    components = kernel.x.components
    plain = components == 1 and numbers(entries, "u").ndim == 1 + len(shape)
    lead = (len(u),) if plain else (len(u), components)
    return _placed(U, mesh.with_components(u.shape[1]), kernel, (*lead, *shape))


def _rows(U: Tensor, y: Grid, kernel: Kernel, given: tuple[int, ...]) -> Inputs:
    """A response in each row; with one output point the last axis is left out, unless f has it."""
    n, M = U.shape[1], kernel.x.size
    shape = (n,) if M == 1 else (n, M)
    return _placed(U, y, kernel, given if given and np.prod(given) == n * M else shape)


def _columns(U: Tensor, y: Grid, kernel: Kernel, matrix: bool) -> Inputs:
    """A response in each column."""
    n, M = U.shape[1], kernel.x.size
    placed = _placed(U, y, kernel, (M, n) if matrix else (n,))
    return Inputs(placed.U, placed.shape, np.arange(M * n).reshape(M, n).T.ravel())


def _placed(U: Tensor, y: Grid, kernel: Kernel, shape: tuple[int, ...]) -> Inputs:
    own = kernel.y
    if U.shape[0] != own.size or y.components != own.components or y.points.shape != own.points.shape:
        raise InputError(
            f"the kernel takes inputs with {own.size} values on {len(own.points)} points, got {U.shape[0]} on "
            f"{len(y.points)}; give u on the grid that the kernel was found on."
        )
    if not torch.allclose(y.points, own.points, rtol=1e-6, atol=1e-9):
        low, high = (points.flatten().tolist() for points in (own.points.amin(dim=0), own.points.amax(dim=0)))
        raise InputError(
            f"the inputs are on other points than the kernel, which runs from {low} to {high}; interpolate u."
        )
    return Inputs(U, shape, np.arange(kernel.x.size * U.shape[1]))
