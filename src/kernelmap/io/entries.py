"""The entries of a file, and the checks that its layouts share."""

from typing import Any

import numpy as np
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places

Entries = dict[str, Any]


def numbers(entries: Entries, name: str) -> np.ndarray:
    values = entries[name]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an array of real numbers, got {kind}; write it in float64.")
    return values.astype(np.float64, order="C")


def vector(entries: Entries, name: str, advice: str = "") -> np.ndarray:
    """MAT files hold vectors as single rows or columns."""
    values = numbers(entries, name)
    if values.size == 0 or values.size != max(values.shape, default=0):
        raise InputError(f"{name} must be a vector, got shape {values.shape}{advice}.")
    return values.ravel()


def require_finite(name: str, values: np.ndarray) -> None:
    bad = np.size(values) - np.isfinite(values).sum()
    if bad:
        raise InputError(f"{name} holds {bad} value(s) that are NaN or infinite; measure them or cut them out.")


def require_distinct(names: list[str]) -> None:
    """Of two entries with one name, nobody knows which is meant."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"the file holds {', '.join(twice)} more than once; write each entry once.")


def is_uniform(points: np.ndarray, first: float) -> bool:
    """To one per cent of a step, which single precision and printed decimals keep."""
    ideal, step = np.linspace(first, points[-1], len(points), retstep=True)
    return bool((np.abs(points - ideal) <= 0.01 * step).all())


def context_of(
    U: Tensor, F: Tensor, y: Grid, x: Grid, operator: str, dropped: str = "none", places: Places | None = None
) -> Context:
    """The context of at least two pairs; `dropped` says which others the file held."""
    if U.shape[-1] < 2:
        raise InputError(f"expected at least 2 pairs, got {U.shape[-1]} (dropped: {dropped}).")
    return Context(U, F, y, x, places=places, operator=operator)
