"""The entries of a file, and the checks that its layouts share."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from kernelmap.core.context import UNKNOWN, Context
from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import free_memory
from kernelmap.core.grids import Grid
from kernelmap.core.places import Places
from kernelmap.core.terminal import shown

Entries = dict[str, Any]

MOST_TOKENS = 2**26
"""Half a gigabyte; a window of u on both sides of every pair takes twice as much while they are made."""

BYTES_PER_TOKEN = 40

FEWEST_SORTED = 3
"""Points or times that every layout needs which asks for them in order."""

LABELS = ("u_name", "u_unit", "f_name", "f_unit", "x_name", "x_unit", "t_name", "t_unit")
LONGEST_LABEL = 100

OUTSIDE = ("zero", "periodic")
"""What u may be where it is not given: zero, or what it was at the other end."""


def numbers(entries: Entries, name: str) -> np.ndarray:
    values = entries[name]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an array of real numbers, got {kind}; write it in float64.")
    return np.asarray(values, np.float64, order="C")


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
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InputError(f"the file holds {', '.join(twice)} more than once; write each entry once.")


def is_uniform(points: np.ndarray, first: float) -> bool:
    """To one per cent of a step, which single precision and printed decimals keep."""
    ideal, step = np.linspace(first, points[-1], len(points), retstep=True)
    return bool((np.abs(points - ideal) <= 0.01 * step).all())


def sorted_by(name: str, entries: Entries, others: Sequence[str], axis: int) -> dict[str, str] | None:
    """What mends a vector that is not sorted, and the arrays that belong to it; None where that would not do."""
    values = np.ravel(entries[name])
    if len(np.unique(values)) < max(len(values), FEWEST_SORTED):
        return None
    order = f'np.argsort(np.ravel(d["{name}"]))'
    moved = {other: f'np.take(d["{other}"], {order}, axis={axis})' for other in others}
    return {name: f'np.sort(np.ravel(d["{name}"]))'} | moved


def word(entries: Entries, name: str) -> str | None:
    """A text; None where the entry is something else."""
    value = np.asarray(entries[name])
    text = value.item() if value.size == 1 else None
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    return text if isinstance(text, str) else None


def labels_of(entries: Entries) -> dict[str, str]:
    """Units and names of u, f and x or t, where the file gives them."""
    found = {name: word(entries, name) for name in LABELS if name in entries}
    for name, text in found.items():
        if text is None or max(map(len, text.split(","))) > LONGEST_LABEL:
            raise InputError(
                f"{name} must be a text of at most {LONGEST_LABEL} characters, such as 'mm/day'; of several inputs, "
                "one for each, with commas between them."
            )
    dated = "t" in entries and np.asarray(entries["t"]).dtype.kind in "MUSO"
    return {name: shown(text) for name, text in found.items() if text} | ({"t_unit": "days"} if dated else {})


def outside_of(entries: Entries, known: tuple[str, ...] = OUTSIDE) -> str:
    """What u is where it is not given, as the entry `outside` says; empty where that is not known."""
    said = word(entries, "outside") if "outside" in entries else ""
    if said is None or said not in ("", *known):
        allowed = " or ".join(f'"{name}"' for name in known)
        raise InputError(f"outside must be the text {allowed} or be left out, got {np.asarray(entries['outside'])}.")
    return said


def unknown_of(entries: Entries) -> tuple[str, ...] | None:
    """What f has besides the kernel's response, as the entry `unknown` says: `offset`, `offset, trend` or `none`."""
    if "unknown" not in entries:
        return None
    said = word(entries, "unknown") or ""
    names = tuple(name.strip() for name in said.split(","))
    if names == ("none",):
        return ()
    if not set(names) <= set(UNKNOWN) or len(set(names)) != len(names):
        raise InputError(
            f'unknown must be the text "offset", "trend", both with a comma, or "none", got {entries["unknown"]}.'
        )
    return names


def radius_steps(entries: Entries, step: float, default: float, samples: str, letter: str) -> int:
    """Where the kernel ends, in steps of the samples of u."""
    given = numbers(entries, "radius") if "radius" in entries else np.asarray(default)
    if given.size != 1 or not step / 2 < given.item() < np.inf:
        raise InputError(
            f"radius must be one number above the step {step:.6g} of the {samples}, in the unit of {letter}, got "
            f"{given}."
        )
    if not given.item() / step < MOST_TOKENS:
        raise InputError(
            f"the radius {given.item():g} is more than {MOST_TOKENS} steps of the {samples}; give it in the unit of "
            f"{letter}."
        )
    return round(given.item() / step)


def require_token_memory(pairs: int, rows: int, count: int, what: str) -> None:
    """Refuse more tokens than memory holds; u is padded in every row."""
    if (pairs + rows) * count > min(MOST_TOKENS, free_memory() / BYTES_PER_TOKEN):
        raise InputError(f"{pairs} pairs of {count} {what}")


def require_pairs(count: int, dropped: str) -> None:
    if count < 2:
        raise InputError(f"expected at least 2 pairs, got {count} (dropped: {dropped}).")


def listed(dropped: dict[str, int]) -> str:
    """Which pairs were left out, and why."""
    return "; ".join(f"{count} where {why}" for why, count in dropped.items() if count) or "none"


def context_of(
    U: Tensor,
    F: Tensor,
    y: Grid,
    x: Grid,
    operator: str,
    dropped: str = "none",
    places: Places | None = None,
    blocks: tuple[int, ...] | None = None,
    F_std: Tensor | None = None,
    u_errors: Tensor | None = None,
) -> Context:
    """The context of at least two pairs; `dropped` says which others the file held."""
    require_pairs(U.shape[-1], dropped)
    return Context(U, F, y, x, places, F_std, blocks, operator, u_errors=u_errors)
