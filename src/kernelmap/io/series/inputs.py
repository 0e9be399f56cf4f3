"""New inputs in time for a kernel that is known."""

import numpy as np

from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.io.entries import Entries
from kernelmap.io.placed import Inputs
from kernelmap.io.series.record import read_positions, read_record, without_noise_on
from kernelmap.io.series.times import date
from kernelmap.operators import Convolution


def series_inputs(entries: Entries, kernel: Kernel) -> Inputs:
    """The tokens at all times of `t_f`, or of `t`, at which u is known over the memory."""
    record, _ = without_noise_on(read_record(entries), entries)
    operator = Convolution(record.step, _count(kernel, record.step, record.lags == "two-sided"), record.lags)
    if record.u.shape[1] != kernel.y.components:
        raise InputError(
            f"the discovery has a kernel for each of {kernel.y.components} input(s), u holds {record.u.shape[1]}."
        )
    positions = read_positions(entries, record)
    reached = positions.reached(record, operator)
    if not reached.any():
        raise InputError(
            f"the record is {record.length:.6g} long, but u must be known over {operator.count * record.step:.6g} "
            'before a time: give u from earlier on, or set outside = "zero" if u is zero before the record.'
        )
    tokens = positions.tokens(record, operator, reached)
    times = positions.times
    rows, _ = np.nonzero(reached)
    of_inputs = operator.places(times[reached], rows, len(times) > 1, "date" if record.t.dated else "")
    if record.t.dated:
        times = np.array([date(day) for day in times.flat])
    return Inputs(
        tokens.T.contiguous(),
        positions.shape,
        np.flatnonzero(reached),
        {"t": times.reshape(positions.shape)},
        of_inputs,
        entries.get("f"),
    )


def _count(kernel: Kernel, step: float, two_sided: bool) -> int:
    """Steps from zero to the end of the kernel."""
    y = kernel.y
    if y.dim != 1 or not kernel.x.is_point or len(y.points) < 2:
        raise InputError("the discovery is not of a convolution; give inputs laid out as its data were.")
    first, last, own = float(y.points[0, 0]), float(y.points[-1, 0]), float(y.points[1, 0] - y.points[0, 0])
    if abs(first + two_sided * last) > 0.01 * own:
        raise InputError(
            f"the kernel's lags run from {first:.6g} to {last:.6g}; say so by the entry lags: 'two-sided' for both "
            "sides of 0, 'causal' or 'periodic' from 0 on."
        )
    if abs(step - own) > 1e-6 * own:
        raise InputError(f"the kernel's lags have steps of {own:.6g}, t {step:.6g}; interpolate u to that step.")
    return round(last / own)
