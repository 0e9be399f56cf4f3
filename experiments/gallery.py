"""Pages of the gallery whose data may not be copied: figures and numbers, from the files' folders.

    python experiments/gallery.py [groundwater | pastas | green]

Each part writes `experiments/results/gallery/NAME.json`, the first and the last a figure in `docs/gallery` too.
`groundwater` and `pastas` read the directory KERNELMAP_GROUNDWATER, with obs.csv, rain.csv and evap.csv of the first
example of pastas; `green` reads KERNELMAP_GREEN, with helmholtz.mat and laplace.mat of GreenLearning. `pastas` needs
that package (`pip install pastas`), which nothing else does.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import RESULTS, ROOT
from measurements import heads
from parts import run_parts
from scipy.io import loadmat

from kernelmap.core import Context, grids
from kernelmap.core.metrics import relative_difference
from kernelmap.discovery import discover
from kernelmap.io import load_model
from kernelmap.io.series import series_context
from kernelmap.posterior import Kernel1dMap

PAGES = ROOT / "docs" / "gallery"


def groundwater() -> dict:
    """Every tenth head of the first half, and the second predicted; as `measurements.py groundwater`, with a figure."""
    t, u, f, known = heads(Path(os.environ["KERNELMAP_GROUNDWATER"]))
    series, half = {"operator": "convolution", "t": t, "u": u}, len(known) // 2
    used, later = known[:half:10], known[half:]
    context, predicted = (series_context(_at(series, f, which))[0] for which in (used, later))
    model = load_model("kernel1d")[0]
    assert isinstance(model, Kernel1dMap)
    posterior = model.posterior(context)
    mean, std = (values[0].numpy() for values in posterior.predict_at(predicted.U, predicted.places))
    lag, rows = context.y.points[:, 0].numpy(), posterior.mean[0].reshape(2, -1).numpy()
    _draw_heads(t, f, used, later, mean, std)
    own = predicted.F[0].numpy()
    return {
        "pairs": context.d,
        "r2": 1 - float(((own - mean) ** 2).sum() / ((own - own.mean()) ** 2).sum()),
        "coverage": float((np.abs(own - mean) <= 1.96 * std).mean()),
        "half_of_rain_after_days": float(lag[np.searchsorted(np.cumsum(rows[0]), rows[0].sum() / 2)]),
    }


def _at(series: dict, f: np.ndarray, which: np.ndarray) -> dict:
    """The entries of a file with f at some days."""
    measured = np.full(len(f), np.nan)
    measured[which] = f[which]
    return series | {"f": measured, "radius": np.asarray(365.0)}


def _draw_heads(t: np.ndarray, f: np.ndarray, used: np.ndarray, later: np.ndarray, mean: Any, std: Any) -> None:
    figure, axes = _figure(1)
    axes[0].plot(t[used], f[used], ".", color="k", ms=3, label="used")
    axes[0].plot(t[later], f[later], color="0.5", lw=1, label="measured later")
    axes[0].fill_between(
        t[later], mean - 1.96 * std, mean + 1.96 * std, color="C0", alpha=0.25, lw=0, label="95 % band"
    )
    axes[0].plot(t[later], mean, color="C0", lw=1, label="predicted")
    axes[0].set(ylabel="head (m)")
    axes[0].legend(ncols=4, frameon=False, fontsize=8)
    figure.savefig(PAGES / "groundwater.png", dpi=100)


def pastas() -> dict:
    """A recharge model with linear recharge, a Gamma response and AR(1) noise, from all heads of the first half."""
    import pandas  # pyright: ignore[reportMissingImports]
    import pastas as ps  # pyright: ignore[reportMissingImports]

    t, u, f, known = heads(Path(os.environ["KERNELMAP_GROUNDWATER"]))
    days = pandas.DatetimeIndex(t.astype("datetime64[ns]"))
    first, later = np.split(known, [len(known) // 2])
    model = ps.Model(pandas.Series(f[first], days[first]))
    rain, evaporation = (pandas.Series(values, days) for values in u)
    ps.RechargeModel(model, rain, evaporation, rfunc=ps.Gamma(), recharge=ps.rch.Linear())
    ps.ArNoiseModel(model)
    model.solve(report=False)
    simulated = model.simulate(tmin=days[later[0]], tmax=days[later[-1]]).reindex(days[later]).to_numpy()
    own = f[later]
    return {
        "pairs": len(first),
        "r2": 1 - float(((own - simulated) ** 2).sum() / ((own - own.mean()) ** 2).sum()),
        "version": ps.__version__,
    }


EXACT: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "helmholtz": lambda x, y: np.sin(15 * np.minimum(x, y)) * np.sin(15 * (np.maximum(x, y) - 1)) / (15 * np.sin(15)),
    "laplace": lambda x, y: np.minimum(x, y) * (1 - np.maximum(x, y)),
}
"""The kernels, as the files say them in words."""


def green() -> dict:
    """Kernels from the first 80 or 40 pairs, beside the exact ones."""
    results, model = {}, load_model("integral")[0]
    figure, axes = _figure(4)
    for number, (name, exact) in enumerate(EXACT.items()):
        data = loadmat(Path(os.environ["KERNELMAP_GREEN"]) / f"{name}.mat")
        x, y = (data[letter].ravel() for letter in "XY")
        truth = torch.from_numpy(exact(x[:, None], y))
        for pairs in (80, 40):
            U, F = (torch.from_numpy(data[letter][:, :pairs].copy()) for letter in "FU")
            context = Context(U, F, grids.from_points(y), grids.from_points(x), operator="integral")
            found = discover(model, context)
            off = found.kernel.values - truth
            results[f"{name} {pairs}"] = {
                "error": relative_difference(found.kernel.values, truth),
                "classical": relative_difference(found.classical.kernel.values, truth),
                "coverage": float((off.abs() <= 1.96 * found.std).double().mean()),
                "heldout": found.check.error if found.check else None,
            }
            if pairs == 40:
                for place, values in ((2 * number, found.kernel.values), (2 * number + 1, truth)):
                    axes[place].pcolormesh(y, x, values.numpy(), cmap="RdBu_r", rasterized=True)
                    axes[place].set(title=f"{name}, {'exact' if place % 2 else '40 pairs'}", xlabel="y", aspect="equal")
    figure.savefig(PAGES / "green.png", dpi=80)
    return results


def _figure(panels: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


PARTS = {"groundwater": groundwater, "pastas": pastas, "green": green}

if __name__ == "__main__":
    run_parts("gallery.py", RESULTS / "gallery", PARTS, seed=0)
