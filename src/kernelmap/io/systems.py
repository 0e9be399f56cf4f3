"""`read_systems`: a user's own systems from a file, to train on or to evaluate on."""

from pathlib import Path

import numpy as np
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file
from kernelmap.core.systems import SystemSet
from kernelmap.io.entries import Entries, numbers, require_finite
from kernelmap.io.formats import file_format, read_entries
from kernelmap.io.integral import NAMES, sampled

KNOWN = {*NAMES, "names", "kernels"}


def read_systems(path: Path | str) -> SystemSet:
    """S systems with P pairs each: f (S, P, M), u (S, P, N) or (P, N), y, x; optionally weights, names and kernels.

    Files of `SystemSet.save` are read too. The true kernels (S, M, N) are for evaluation; training never reads them.
    """
    path = existing_file(path, "a file of systems (HDF5, NPZ or MAT)")
    try:
        kind = file_format(path)
        entries = read_entries(path, kind, KNOWN)
        if "a kernelmap systems file" in entries:
            return SystemSet.load(path)
        missing = [name for name in ("u", "f", "y") if name not in entries]
        if missing:
            raise InputError(
                f"expected systems: f (S, P, M), u (S, P, N) or (P, N), y (N,), x (M,); got "
                f"{', '.join(sorted(entries)) or 'no entries'}. Add {', '.join(missing)}; capitals matter."
            )
        return _systems(entries, path.name)
    except InputError as error:
        raise error.within(path) from error


def _systems(entries: Entries, file: str) -> SystemSet:
    u, f, y, x = sampled(entries)
    return SystemSet(
        _names(entries, len(f)),
        torch.from_numpy(u),
        torch.from_numpy(f),
        y,
        x,
        _kernels(entries, (len(f), x.size, y.size)),
        {"data": file},
    )


def _kernels(entries: Entries, shape: tuple[int, int, int]) -> torch.Tensor | None:
    if "kernels" not in entries:
        return None
    values = numbers(entries, "kernels")
    if values.shape != shape and not (shape[1] == 1 and values.shape == (shape[0], shape[2])):
        S, M, N = shape
        swapped = values.shape == (S, N, M) and " Its axes seem swapped: columns belong to the points of y."
        raise InputError(f"kernels must have shape (S, M, N) = ({S}, {M}, {N}), got {values.shape}.{swapped or ''}")
    require_finite("kernels", values)
    return torch.from_numpy(values.reshape(shape))


def _names(entries: Entries, count: int) -> tuple[str, ...]:
    """Of the systems; their numbers by default."""
    if "names" not in entries:
        return tuple(f"system {i}" for i in range(count))
    given = entries["names"]
    names = tuple(_text(name) for name in np.ravel(given)) if isinstance(given, np.ndarray) else ()
    if len(names) != count or len(set(names)) != count:
        raise InputError(f"names must be {count} different texts, one for each system of f, got {list(names)[:5]}.")
    return names


def _text(name: object) -> str:
    """HDF5 holds bytes, MAT pads with blanks and wraps cells in arrays."""
    if isinstance(name, np.ndarray):
        return _text(name.item()) if name.size == 1 else str(name)
    return (name.decode() if isinstance(name, bytes) else str(name)).strip()
