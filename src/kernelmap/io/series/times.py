"""Times: numbers in any unit, or dates, which count in days."""

from typing import NamedTuple

import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, is_uniform, numbers, require_finite, sorted_by

DAY = np.timedelta64(1, "D").astype("timedelta64[us]")


class Times(NamedTuple):
    """values (S, J) of S runs; days since 1970-01-01 where they were dates."""

    values: np.ndarray
    dated: bool


def read_times(entries: Entries, name: str) -> Times:
    """(J,), or (S, J) for S runs. MAT files hold vectors as single rows or columns."""
    values = entries[name]
    dated = isinstance(values, np.ndarray) and values.dtype.kind in "MUSO" and values.ndim > 0
    values = days(values, name) if dated else numbers(entries, name)
    if values.ndim not in (1, 2) or not values.size:
        raise InputError(f"{name} must have shape (J,), or (S, J) for S runs, got {values.shape}.")
    return Times(values.reshape(1, -1) if values.size == max(values.shape) else values, dated)


def days(values: np.ndarray, name: str) -> np.ndarray:
    """Dates, or texts such as 2003-01-31 or 2003-01-31T06:30, as days since 1970-01-01; NaN where there is none."""
    if values.dtype.kind != "M":
        texts = [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values.flat]
        try:
            values = np.array([text.strip() for text in texts], dtype="datetime64[us]").reshape(values.shape)
        except ValueError as error:
            raise InputError(
                f"{name} must hold numbers or dates such as 2003-01-31 or 2003-01-31T06:30, got one that cannot be "
                f"read ({error})."
            ) from error
    return (values.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")) / DAY


def date(day: float) -> np.datetime64:
    """The inverse of `days`, to the second."""
    if np.isnan(day):
        return np.datetime64("NaT", "s")
    return np.datetime64("1970-01-01", "s") + np.timedelta64(round(86400 * day), "s")


def common_step(times: Times, entries: Entries) -> float:
    """Of all runs, which must be sampled in the same equal steps."""
    t = times.values
    require_finite("t", t)
    if t.shape[1] < 3 or not (np.diff(t, axis=1) > 0).all():
        belonging = [name for name in ("u", "f") if name in entries and "t_f" not in entries]
        raise InputError(
            "t must hold at least 3 increasing times; sort t, u and f by t, and drop times given twice.",
            sorted_by("t", entries, belonging, -1) if len(t) == 1 and "t_f" not in entries else None,
        )
    if not all(is_uniform(run, run[0]) for run in t):
        steps = np.diff(t, axis=1)
        raise InputError(
            f"t must go in equal steps, got steps from {steps.min():.6g} to {steps.max():.6g}. Interpolate u to equal "
            "steps; f may be at times of its own, t_f."
        )
    steps = (t[:, -1] - t[:, 0]) / (t.shape[1] - 1)
    if steps.max() - steps.min() > 0.01 / t.shape[1] * steps.max():
        raise InputError(
            f"all runs must have the same step of time, got from {steps.min():.6g} to {steps.max():.6g}. Interpolate."
        )
    return float(steps.mean())
