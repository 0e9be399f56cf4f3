"""The figure of hidden stiffness: digit, load, displacement, and the stiffness map that the discovered kernel shows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelmap.core.files import atomic_path
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.io.models import load_model
from kernelmap.posterior.elastic.map import MaterialPosteriorMap
from kernelmap.problems.mechanics import Split
from kernelmap.problems.mechanics.errors import solved, specimens_of
from kernelmap.problems.mechanics.images import modulus

PAIRS, LOADS = 100, 100
SHOWN: tuple[tuple[Split, int], ...] = (("id", 0), ("ood", 0))
"""Test specimens of which the figure is made, by split and place."""


def figure_stiffness(out: Path) -> Path:
    """Moduli are shown by their logarithms, cell by cell, with the posterior's standard deviation beside them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    model, _ = load_model("mechanics")
    assert isinstance(model, MaterialPosteriorMap)
    figure = Figure(figsize=(16, 3.2 * len(SHOWN)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (split, place) in zip(figure.subplots(len(SHOWN), 5), SHOWN, strict=True):
        chosen = specimens_of(split, place + 1)
        specimen = type(chosen)(chosen.names[-1:], chosen.images[-1:], None)
        test, heldout = solved(specimen, LOADS)
        context = test.batch(strided_draws(test.pairs, PAIRS)[:1], torch.zeros(1, dtype=torch.long))
        posterior = model.posterior(context)
        truth = np.log10(modulus(specimen.images[0]))
        found, std = (
            values.reshape(truth.shape).numpy() / np.log(10) for values in (posterior.theta, posterior.spread)
        )
        scale = {"vmin": 0, "vmax": 2, "cmap": "viridis"}
        _show(axes[0], truth, f"{specimen.names[0]}: log₁₀ modulus", **scale)
        _arrows(axes[1], heldout.u[0, 0], "a load not in the context", heldout)
        _arrows(axes[2], heldout.f[0, 0], "its displacement", heldout)
        error = float(np.abs(found - truth).mean())
        _show(axes[3], found, f"discovered from {PAIRS} pairs\nmean error {error:.2f} decades", **scale)
        _show(axes[4], std, "its standard deviation", vmin=0, cmap="Greys")
    path = out / "figure-stiffness.png"
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=100)
    return path


def _show(axes: Any, values: np.ndarray, title: str, **style: Any) -> None:
    image = axes.imshow(values.T, origin="lower", extent=(0, 1, 0, 1), **style)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set(title=title, xticks=[], yticks=[])


def _arrows(axes: Any, values: torch.Tensor, title: str, systems: SystemSet) -> None:
    x, y = systems.x.points.T
    vx, vy = values.chunk(2)
    axes.quiver(x, y, vx, vy)
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
