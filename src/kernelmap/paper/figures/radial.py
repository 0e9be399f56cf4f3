"""The figure of learned kernels: d = 30 in the sine setting and d = 302 in the diverse one, each with the truth."""

from pathlib import Path
from typing import Any

import torch

from kernelmap.core.files import atomic_path
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.evaluation.evaluate import Estimated, estimate
from kernelmap.paper.resolution import coarser_radii
from kernelmap.paper.tables.radial import TABLE1, TABLE2
from kernelmap.paper.tables.rows import LABELS
from kernelmap.paper.tables.run import trained_model
from kernelmap.problems.radial import radial

PANELS = (
    ("d = 30, sine setting: ID", "id", TABLE1, ("discrete-30-10", "nao-30-10", "posterior-30"), 3.0),
    ("d = 30, sine setting: OOD1", "ood1", TABLE1, ("discrete-30-10", "nao-30-10", "posterior-30"), 3.0),
    (
        "d = 302, diverse setting: OOD1",
        "ood1",
        TABLE2,
        ("autoencoder-302-31-diverse", "discrete-302-20-diverse", "nao-302-20-diverse", "posterior-302"),
        3.0,
    ),
    (
        "d = 302, diverse setting: OOD2",
        "ood2",
        TABLE2,
        ("autoencoder-302-31-diverse", "discrete-302-20-diverse", "nao-302-20-diverse", "posterior-302"),
        5.0,
    ),
)
COLOURS = {"nao": "C0", "discrete-nao": "C2", "autoencoder": "C4", "posterior": "C1"}


def figure_kernels(out: Path) -> Path:
    """Kernels from the first context of a test system, with the 95 % band where there is one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)
    test = radial("sine").test
    coarse = coarser_radii(test)
    for axes, (title, system, table, names, right) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        index = test.names.index(system)
        assert test.kernels is not None
        truth = test.kernels[index, 0]
        for name in names:
            row = table.rows[name]
            model = trained_model(row, out)
            assert model is not None
            model = model.double()
            draw(axes, test, first_context(model, test, index, row.d), LABELS[row.map], color=COLOURS[row.map])
            if name == "nao-30-10" and system == "id":
                found = first_context(model, coarse, index, row.d)
                draw(axes, coarse, found, "NAO at twice the spacing", color=COLOURS[row.map], ls=":")
        axes.plot(test.y.points[:, 0], truth, "k--", lw=1.5, label="truth")
        low, high = float(truth.min()), float(truth.max())
        margin = 0.6 * (high - low)
        axes.set(title=title, xlabel="r", ylabel="K(r)", xlim=(0, right), ylim=(low - margin, high + margin))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    path = out / "figure-kernels.png"
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110)
    return path


def first_context(model: Any, systems: SystemSet, index: int, d: int) -> Estimated:
    return estimate(model, systems.batch(strided_draws(systems.pairs, d)[:1], torch.tensor([index])))


def draw(axes: Any, systems: SystemSet, found: Estimated, label: str, **style: Any) -> None:
    r, kernel = systems.y.points[:, 0], found.kernel.values[0, 0, 0]
    if found.std is not None:
        band = 1.96 * found.std[0, 0, 0]
        axes.fill_between(r, kernel - band, kernel + band, color=style["color"], alpha=0.25, lw=0)
    axes.plot(r, kernel, lw=1.3, label=label, **style)
