"""The layout of a convolution: a pair for each time at which f was measured."""

import numpy as np
import torch

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, context_of, listed, numbers, radius_steps, require_token_memory
from kernelmap.io.series.noise import errors_of
from kernelmap.io.series.record import Positions, Record, read_positions, read_record, without_noise_on
from kernelmap.operators import Convolution

UNKNOWN_MEMORY = 1 / 3
"""Of the record's length, taken where no radius is given: the kernel may end anywhere before."""


def series_context(entries: Entries) -> tuple[Context, str]:
    """f(t) = Σ_i ∫ K_i(s) u_i(t - s) ds where f was measured and u is known over the memory; in words, those dropped.

    The tokens of n inputs are blocks, one below the other.
    """
    record, u_errors = without_noise_on(read_record(entries), entries)
    positions = read_positions(entries, record)
    f = _responses(entries, positions, record)
    operator = Convolution(record.step, _memory(entries, record), record.lags)
    measured, reached = ~np.isnan(f), positions.reached(record, operator)
    if (measured & np.isnan(positions.steps)).any():
        raise InputError("t_f is NaN where f was measured; give its time, or write NaN into f.")
    used = measured & reached
    inputs = record.u.shape[1]
    require_token_memory(
        int(used.sum()) * inputs,
        len(f),
        operator.grid.size,
        "lags do not fit into memory. Write NaN into f at some times, or take a smaller radius; radius and t must have "
        "the same unit.",
    )
    tokens = positions.tokens(record, operator, used)
    informative = tokens.any(dim=1)
    dropped = listed(
        {
            "f is NaN": int((~measured).sum()),
            "u is not known over the memory": int((measured & ~reached).sum()),
            "all tokens are zero": int((~informative).sum()),
        }
    )
    rows, columns = np.nonzero(used)
    places = operator.places(positions.times[rows, columns], rows, len(f) > 1, "date" if record.t.dated else "")
    y = operator.grid
    context = context_of(
        tokens[informative].T.contiguous(),
        torch.from_numpy(f[used])[informative][None],
        y.with_components(inputs),
        grids.point(),
        operator.name,
        dropped,
        places.select(informative),
        None if inputs == 1 else (y.size,) * inputs,
        None if (F_std := errors_of(entries, f.shape, used)) is None else F_std[:, informative],
        u_errors,
    )
    return context, dropped


def _responses(entries: Entries, positions: Positions, record: Record) -> np.ndarray:
    """f as (S, m)."""
    f, (runs, count) = numbers(entries, "f"), positions.steps.shape
    if np.isinf(f).any():
        raise InputError(f"f holds {np.isinf(f).sum()} infinite value(s); write NaN where it was not measured.")
    if f.size == runs * count and (f.shape == (runs, count) or runs == 1):
        return f.reshape(runs, count)
    of = "t_f" if "t_f" in entries else "t"
    longer = ""
    if of == "t" and f.size > record.u[:, 0].size:
        longer = " It is longer than u: give the times of f as t_f, or u up to the last of them."
    raise InputError(
        f"f must have the shape of {of}, {np.shape(entries[of])}, with NaN where it was not measured, got {f.shape}."
        f"{longer}"
    )


def _memory(entries: Entries, record: Record) -> int:
    """The memory in steps."""
    periodic = record.lags == "periodic"
    count = radius_steps(entries, record.step, record.length * (1 if periodic else UNKNOWN_MEMORY), "record", "t")
    if periodic and count > record.samples:
        raise InputError(
            f"the radius {count * record.step:.6g} is longer than the period, {record.length:.6g}: the record of a "
            "periodic u is one period, without its first time at the end."
        )
    needed = 2 * count if record.lags == "two-sided" else count
    if not (periodic or record.zero_outside) and record.samples <= needed:
        raise InputError(
            f"the record is {record.length:.6g} long, but u must be known over {needed * record.step:.6g} around a "
            'time: give u from earlier on, set outside = "zero" if u is zero before the record, or set a smaller '
            "radius, the memory, if the kernel has one."
        )
    return count
