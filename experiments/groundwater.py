"""The picture of the start page: a well, the rain and the evaporation that move it, their kernels, and a prediction.

    python experiments/groundwater.py well

Reads obs.csv, rain.csv and evap.csv from the directory KERNELMAP_GROUNDWATER, as `measurements.py groundwater` does.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from laws import shipped
from measured import RESULTS, ROOT
from measurements import heads
from parts import run_parts

from kernelmap.discovery import discover
from kernelmap.io.series import series_context, series_inputs

SEED = 0
INK, MODEL, BAND, DATA = "#1c2733", "#1b5e9e", "#bcd6ee", "#b4560f"


def figure() -> dict[str, Any]:
    """Kernels from every tenth head of the first half; the second half predicted."""
    from matplotlib.figure import Figure

    t, u, f, known = heads(Path(os.environ["KERNELMAP_GROUNDWATER"]))
    half = len(known) // 2
    measured = np.full(len(f), np.nan)
    measured[known[:half:10]] = f[known[:half:10]]
    entries = {"operator": np.asarray("convolution"), "t": t, "u": u, "f": measured, "radius": np.asarray(365.0)}
    context, _ = series_context(entries)
    found = discover(shipped(), context)
    inputs = series_inputs(entries, found.kernel)
    mean, std = (inputs.laid_out(values) for values in found.predict(inputs.U, inputs.of_inputs))

    picture = Figure(figsize=(10, 4.6), layout="constrained")
    grid = picture.add_gridspec(2, 2, height_ratios=[1, 1.1])
    s = context.y.points[:, 0].numpy()
    parts = (values[0].reshape(2, -1).numpy() for values in (found.kernel.values, found.std))
    for i, (K, error, name) in enumerate(zip(*parts, ("rain", "evaporation"), strict=True)):
        axes = picture.add_subplot(grid[0, i])
        axes.fill_between(s, K - 1.96 * error, K + 1.96 * error, color=BAND, lw=0, label="95 % band")
        axes.plot(s, K, color=MODEL, label="kernel")
        axes.axhline(0, color=INK, lw=0.5)
        axes.set(title=f"What a day of {name} does to the well", xlabel="days later", xlim=(0, 365))
        axes.legend(frameon=False)
    axes = picture.add_subplot(grid[1, :])
    axes.fill_between(t, mean - 1.96 * std, mean + 1.96 * std, color=BAND, lw=0, label="predicted, 95 % band")
    axes.plot(t, mean, color=MODEL, lw=0.8)
    axes.plot(t[known], f[known], ".", color=INK, ms=1, label="measured")
    axes.plot(t, measured, ".", color=DATA, ms=3, label=f"the {context.d} that were used")
    axes.set(title="The level of the well", xlim=(t[known[0]], t[-1]))
    axes.legend(frameon=False, ncols=3, markerscale=4, loc="upper right")
    for axes in picture.axes:
        axes.spines[["top", "right"]].set_visible(False)
    picture.savefig(ROOT / "docs" / "groundwater.png", dpi=110)
    second = known[half:]
    error = f[second] - mean[second]
    return {
        "pairs": context.d,
        "r2": 1 - float((error**2).sum() / ((f[second] - f[second].mean()) ** 2).sum()),
        "coverage": float((np.abs(error) <= 1.96 * std[second]).mean()),
        "error_time": found.posterior.error_time,
    }


PARTS = {"well": figure}

if __name__ == "__main__":
    run_parts("groundwater.py", RESULTS / "measurements", PARTS, seed=SEED)
