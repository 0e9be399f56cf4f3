"""The record: t, u and what is said of the lags, checked; and where in it f is wanted."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, numbers, outside_of, require_finite, word
from kernelmap.io.series.noise import without_noise
from kernelmap.io.series.times import Times, common_step, read_times
from kernelmap.operators import LAGS, Convolution, Lags


class Record(NamedTuple):
    """u (S, n, J) of S runs and n inputs that act together, at the times t."""

    t: Times
    step: float
    u: np.ndarray
    lags: Lags
    zero_outside: bool

    @property
    def samples(self) -> int:
        return self.u.shape[-1]

    @property
    def length(self) -> float:
        """From the first to the last time; of a period, one step more."""
        return self.step * (self.samples - (self.lags != "periodic"))


class Positions(NamedTuple):
    """Where f is wanted, (S, m) in steps since a run's first time, NaN where there is no time; times in their unit."""

    steps: np.ndarray
    times: np.ndarray
    shape: tuple[int, ...]

    def reached(self, record: Record, operator: Convolution) -> np.ndarray:
        """Whether u is known as far back (and ahead) as the kernel reaches; between two samples, from both."""
        J = record.samples
        inside = operator.reached(J) | record.zero_outside
        low, part = _split(self.steps, record)
        known = (low >= 0) & ((low + (part > 0) < J) | operator.wraps)
        low = np.where(known, low, 0)
        return ~np.isnan(self.steps) & known & inside[low] & inside[(low + (part > 0)) % J]

    def tokens(self, record: Record, operator: Convolution, used: np.ndarray) -> Tensor:
        """(d, n N): u(t - s) of each input, linear between the samples of u."""
        rows, columns = np.nonzero(used)
        low, part = (values[rows, columns] for values in _split(self.steps, record))
        fraction = torch.from_numpy(part)[:, None]
        found = []
        for u in record.u.swapaxes(0, 1):
            tokens = operator.tokens_at(u, rows, low)
            if part.any():
                tokens = torch.lerp(tokens, operator.tokens_at(u, rows, (low + (part > 0)) % record.samples), fraction)
            found.append(tokens)
        return torch.cat(found, dim=1)


def _split(steps: np.ndarray, record: Record) -> tuple[np.ndarray, np.ndarray]:
    """The sample before, and the part of a step since; a position within a thousandth of a sample is there."""
    snapped = np.where(np.abs(steps - np.round(steps)) < 1e-3, np.round(steps), steps)
    if record.lags == "periodic":
        snapped = snapped % record.samples
    low = np.floor(np.nan_to_num(snapped, nan=-1.0))
    return np.clip(low, -1, record.samples).astype(np.int64), np.nan_to_num(snapped - low)


def read_record(entries: Entries) -> Record:
    t = read_times(entries, "t")
    step = common_step(t)
    return Record(t, step, _inputs(entries, *t.values.shape), _lags(entries), outside_of(entries, ("zero",)) == "zero")


def without_noise_on(record: Record, entries: Entries) -> tuple[Record, Tensor | None]:
    """The record without the noise of u, if the file says that u has some, and the errors that are left."""
    if "u_std" in entries and record.lags == "periodic":
        raise InputError("noise on a periodic u is not known of; leave u_std out, or give several periods as causal.")
    u, errors = without_noise(entries, record.u.swapaxes(0, 1))
    return record._replace(u=u.swapaxes(0, 1)), errors


def read_positions(entries: Entries, record: Record) -> Positions:
    """Of `t_f`, or of all samples of u."""
    t = record.t
    if "t_f" not in entries:
        steps = np.broadcast_to(np.arange(record.samples, dtype=np.float64), t.values.shape)
        return Positions(steps, t.values, np.shape(entries["t"]))
    at = read_times(entries, "t_f")
    if at.dated != t.dated or len(at.values) != len(t.values):
        raise InputError(
            f"t_f must be times like t, in one row for each of {len(t.values)} run(s), got shape "
            f"{np.shape(entries['t_f'])}{'' if at.dated == t.dated else '; one of them holds dates, the other not'}."
        )
    if np.isinf(at.values).any():
        raise InputError("t_f holds infinite times; write NaN where there is none.")
    return Positions((at.values - t.values[:, :1]) / record.step, at.values, np.shape(entries["t_f"]))


def _inputs(entries: Entries, runs: int, samples: int) -> np.ndarray:
    """u as (S, n, J)."""
    u = numbers(entries, "u")
    require_finite("u", u)
    if runs == 1 and u.size == max(u.shape, default=0) == samples:
        return u.reshape(1, 1, samples)
    if runs == 1 and u.ndim == 2 and u.shape[1] == samples:
        return u[None]
    if u.ndim == 2 and u.shape == (runs, samples):
        return u[:, None]
    if u.ndim == 3 and (u.shape[0], u.shape[2]) == (runs, samples):
        return u
    one = "(J,), or (n, J) for n inputs that act together," if runs == 1 else f"({runs}, J) or ({runs}, n, J)"
    swapped = " Its axes seem swapped: times go last." if u.ndim == 2 and len(u) == samples else ""
    raise InputError(f"u must have shape {one} with the J = {samples} times of t, got {u.shape}.{swapped}")


def _lags(entries: Entries) -> Lags:
    if "lags" not in entries:
        return "causal"
    said = word(entries, "lags")
    for lags in LAGS:
        if said == lags:
            return lags
    raise InputError(f"lags must be the text {', '.join(map(repr, LAGS))} or be left out, got {entries['lags']}.")
