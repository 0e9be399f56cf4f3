"""Pictures of the answer: the kernel (a few rows K(x_m, ·) where it has many), and its predictions."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelmap.core.context import responding
from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path
from kernelmap.core.grids import Grid
from kernelmap.discovery import Check, Discovery
from kernelmap.evaluation.microstructure import far_mass, microstructure
from kernelmap.report import drawing
from kernelmap.report.drawing import Picture
from kernelmap.report.maps import map_pictures

IN_BAND = 1.96
MOST_POINTS = 120

WITH_BAND = (
    "The discovered kernel with its 95 % band, and the classical estimate (DARTR) from the same pairs. "
    "Where the band is wide, the pairs leave the kernel open."
)
WITHOUT_BAND = (
    "The discovered kernel, and the classical estimate (DARTR) from the same pairs. This map gives a kernel without an "
    "error bar."
)

NEAR = 4.5
"""Mesh steps around x_m that are drawn of a local kernel."""

FAINTEST = 0.1
"""Of the kernel's size: a classical estimate that is smaller would be an empty map, and is left out."""

LOCAL = 0.05
"""A kernel with less of its mass than this beyond two mesh steps is local."""


def plot(discovery: Discovery, path: Path | str, truth: Tensor | None = None) -> None:
    """The kernel with its band, as PNG, SVG or PDF."""
    path = Path(path)
    check_picture(path)
    save_figure(kernel_figure(discovery, truth), path)


def check_picture(path: Path) -> None:
    """Whether a picture can be drawn to a file of this name."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"cannot draw {path.name}: its name must end in .png, .svg or .pdf.")


def kernel_figure(discovery: Discovery, truth: Tensor | None = None) -> Any:
    with drawing.style():
        return drawing.laid_out(_kernel(discovery, truth))


def save_figure(figure: Any, path: Path) -> None:
    with drawing.style(), atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=200)


def answer_pictures(discovery: Discovery, figure: Any) -> list[Picture]:
    """The kernel, whose figure is given, and how well it predicts the pairs that were kept back."""
    with drawing.style():
        kernel = Picture(
            "The kernel",
            (WITH_BAND if discovery.has_band else WITHOUT_BAND)
            + ("" if discovery.kernel.x.size == 1 else " Shown are a few of its rows K(x, ·).")
            + (
                ""
                if _neighbourhood(discovery) is None
                else " They are local: each map is what lies around its x."
                " A classical estimate that is too small to be seen beside it is left out."
            ),
            drawing.inline_svg(figure, "kernel"),
        )
        pictures = [kernel, *map_pictures(discovery), *_material(discovery), *_hidden(discovery)]
        if discovery.check is None:
            return pictures
        caption = (
            "Each bar is the 95 % band of one measurement that was kept back. "
            "Below, the same bars as errors, in per cent of the typical size of the kernel's response: one that "
            "misses the line of zero is drawn red, with a cross."
        )
        if not bool(discovery.check.std.isfinite().all()):
            caption = "Measurements that were kept back; below, the errors. They are too few for a band."
        return [
            *pictures,
            Picture(
                "Predicted and measured",
                caption,
                drawing.inline_svg(_prediction(discovery, discovery.check), "prediction"),
            ),
        ]


def _material(discovery: Discovery) -> list[Picture]:
    """Of a local kernel on a plane mesh: how strongly each point interacts, and two phases where that shows them."""
    kernel = discovery.kernel
    if not discovery.has_band or kernel.x.dim != 2 or kernel.x.components != 1 or far_mass(kernel) > LOCAL:
        return []
    found = microstructure(kernel, discovery.std)
    two = found.log_odds > 0
    inside = Grid(kernel.x.points[found.known], kernel.x.weights[found.known])
    maps = [(found.strength, {"cmap": "viridis"}, "Σ |K(x, y)| w")]
    if two:
        look = {"cmap": "RdBu_r", "vmin": 0, "vmax": 1}
        maps.append((found.probability, look, "probability of the stiff phase"))
    figure = drawing.new_figure(drawing.HALF, 2.5 if two else 3.2)
    for axes, (values, look, label) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps, strict=True):
        coloured = drawing.draw_map(axes, inside, drawing.array(values[found.known]), **look)
        figure.colorbar(coloured, ax=axes, location="bottom", label=label).ax.locator_params(nbins=4)
    return [Picture(*(TWO_PHASES if two else SMOOTH), drawing.inline_svg(figure, "phases"))]


TWO_PHASES = (
    "Two phases",
    "How strongly each point interacts with those around it, and the probability that it belongs to the stiffer of "
    "two phases; the threshold between them is Otsu's. The boundary ring, which the pairs do not determine, is "
    "left out.",
)
SMOOTH = (
    "The medium",
    "How strongly each point interacts with those around it. It is likelier to vary smoothly than to have two phases. "
    "The boundary ring, which the pairs do not determine, is left out.",
)


def _hidden(discovery: Discovery) -> list[Picture]:
    """The field of the medium, and how well it is known."""
    if discovery.hidden is None:
        return []
    figure = drawing.new_figure(drawing.HALF, 2.5)
    places = Grid(discovery.hidden.points, torch.ones_like(discovery.hidden.values))
    for axes, values, colours, label in zip(
        figure.subplots(1, 2),
        (discovery.hidden.values, discovery.hidden.std),
        ("viridis", "Purples"),
        (discovery.hidden.name, "its standard deviation"),
        strict=True,
    ):
        coloured = drawing.draw_map(axes, places, drawing.array(values), cmap=colours)
        figure.colorbar(coloured, ax=axes, location="bottom", label=label).ax.locator_params(nbins=4)
    caption = "The medium behind the kernel, as the pairs show it. Where its standard deviation is large, they do not."
    return [Picture("The medium", caption, drawing.inline_svg(figure, "hidden"))]


def _kernel(discovery: Discovery, truth: Tensor | None) -> Any:
    y = discovery.kernel.y
    rows = _shown(discovery)
    parts = drawing.inputs if y.dim == 1 and y.components > 1 else _first_component(rows)
    mean, band, classical = (
        parts(y, values)
        for values in (
            discovery.kernel.values,
            IN_BAND * discovery.std.nan_to_num(0.0),
            discovery.classical.kernel.values,
        )
    )
    true = None if truth is None else parts(y, truth)
    if y.dim == 2:
        return _kernel_maps(discovery, rows, mean, band, classical, true)
    figure = drawing.new_figure(drawing.HALF, 3.2 if len(mean) == 1 else 1.6 * len(mean))
    panels = figure.subplots(len(mean), 1, sharex=True, squeeze=False)[:, 0]
    at = drawing.position(y)
    for i, axes in enumerate(panels):
        low, high = mean[i] - band[i], mean[i] + band[i]
        axes.plot(at, mean[i], color=drawing.MODEL, lw=1.8, zorder=4, label="discovered")
        if discovery.has_band:
            axes.fill_between(at, low, high, color=drawing.BAND, lw=0, zorder=1, label="95 % band")
        if true is not None:
            axes.plot(at, true[i], color=drawing.INK, lw=2.6, alpha=0.45, zorder=3, label="truth")
            low, high = np.minimum(low, true[i]), np.maximum(high, true[i])
        axes.plot(
            at, classical[i], color=drawing.CLASSICAL, lw=1.1, ls=(0, (4, 2)), zorder=2, label="classical (DARTR)"
        )
        drawing.shade_unobserved(axes, discovery, i if parts is drawing.inputs else 0)
        # A classical estimate may swing far outside; it must not flatten the answer.
        margin = 0.08 * (high.max() - low.min()) or 1.0
        axes.set(ylim=(low.min() - margin, high.max() + margin), xlim=(at[0], at[-1]))
        if len(mean) > 1 and y.components > 1:
            axes.set_title(drawing.kernel_axis(discovery, i), loc="left", fontsize=9.5)
        else:
            axes.set_ylabel(drawing.kernel_axis(discovery, i))
    panels[-1].set_xlabel(drawing.coordinate_axis(discovery))
    drawing.legend_above(figure, panels[0])
    return figure


def _first_component(rows: list[int]) -> Callable[[Grid, Tensor], np.ndarray]:
    return lambda y, values: drawing.field(y, values)[rows]


def _shown(discovery: Discovery) -> list[int]:
    """Three rows of the kernel, of points that respond at all; in the first component, where that does."""
    free = responding(discovery.context.F).nonzero()[:, 0]
    first = free[free < len(discovery.kernel.x.points)]
    free = first if len(first) else free
    return sorted({int(free[int((k + 0.5) * len(free) / 3)]) for k in range(3)})


def _kernel_maps(
    discovery: Discovery,
    rows: list[int],
    mean: np.ndarray,
    band: np.ndarray,
    classical: np.ndarray,
    true: np.ndarray | None,
) -> Any:
    """One line of maps per row K(x_m, ·), x_m marked by a dot; kernels share one scale of colours."""
    y, x = discovery.kernel.y, discovery.kernel.x
    kernels = {"discovered": mean} | ({} if true is None else {"truth": true})
    if np.abs(classical).max() > FAINTEST * np.abs(mean).max():
        kernels["classical"] = classical
    columns = len(kernels) + discovery.has_band
    figure = drawing.new_figure(drawing.HALF, 1.2 + drawing.HALF / columns * len(rows))
    panels = figure.subplots(len(rows), columns, squeeze=False)
    largest, near = np.abs(mean).max() or 1.0, _neighbourhood(discovery)
    for i, row in enumerate(rows):
        for axes, (name, values) in zip(panels[i], kernels.items(), strict=False):
            coloured = drawing.draw_map(axes, y, values[i], cmap="RdBu_r", vmin=-largest, vmax=largest)
            axes.set_title(name if i == 0 else "", fontsize=9.5)
        if discovery.has_band:
            bands = drawing.draw_map(panels[i, -1], y, band[i], cmap="Purples", vmin=0, vmax=band.max() or 1.0)
            panels[i, -1].set_title("± band" if i == 0 else "", fontsize=9.5)
        if x.dim == 2:
            _mark(panels[i], drawing.array(x.points[row % len(x.points)]), near)
    look = {"location": "bottom", "aspect": 15 * len(kernels), "label": "K(x, y)"}
    bars = [figure.colorbar(coloured, ax=panels[:, : len(kernels)], **look)]
    if discovery.has_band:
        bars.append(figure.colorbar(bands, ax=panels[:, -1], location="bottom", aspect=15, label="1.96 std"))
    for bar in bars:
        bar.ax.locator_params(nbins=3)
    return figure


def _neighbourhood(discovery: Discovery) -> float | None:
    """How far from x_m a map is drawn, where the kernel is local: the whole plane would look empty."""
    kernel = discovery.kernel
    if kernel.x.dim != 2 or kernel.x.components != 1 or far_mass(kernel) > LOCAL:
        return None
    low, high = kernel.y.points.amin(0), kernel.y.points.amax(0)
    return NEAR * float((high - low).max()) / (len(kernel.y.points) ** 0.5 - 1)


def _mark(panels: Iterable[Any], place: np.ndarray, near: float | None) -> None:
    """x_m, and the part of the plane around it."""
    for axes in panels:
        axes.plot(*place, "o", mfc="white", mec=drawing.INK, ms=4)
        if near is not None:
            axes.set(xlim=(place[0] - near, place[0] + near), ylim=(place[1] - near, place[1] + near))


def _prediction(discovery: Discovery, check: Check) -> Any:
    mean, std = check.mean, check.std
    measured = drawing.array(check.heldout.F).ravel()
    beside = drawing.array(discovery.posterior.beside_kernel(check.heldout.d, check.heldout.places)).ravel()
    scale = np.sqrt(np.mean((measured - beside) ** 2)) or 1.0
    some = np.unique(np.linspace(0, len(measured) - 1, MOST_POINTS).round().astype(int))
    measured = measured[some]
    error, band = drawing.array(mean).ravel()[some] - measured, IN_BAND * drawing.array(std).ravel()[some]
    known = np.isfinite(band).all()
    missed, band = np.abs(error) > band, band if known else np.zeros_like(band)
    figure = drawing.new_figure(drawing.HALF, 3.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    at = drawing.times(check.heldout, some)
    if at is None:
        upper.axline((measured[0], measured[0]), slope=1, color=drawing.FAINT, lw=0.8)
    else:
        upper.plot(at, measured, "o", mfc="none", mec=drawing.INK, ms=4, label="measured")
    where = measured if at is None else at
    lower.axhline(0, color=drawing.FAINT, lw=0.8)
    looks = (
        (~missed, drawing.MODEL, "o", "in its 95 % band" if known else "kept back"),
        (missed, drawing.OUTSIDE, "x", "outside its band"),
    )
    for of, colour, marker, name in looks:
        look = {"fmt": marker, "color": colour, "ecolor": colour, "ms": 3, "elinewidth": 0.8}
        if of.any():
            upper.errorbar(where[of], (measured + error)[of], band[of], **look, label=name)
            lower.errorbar(where[of], 100 * error[of] / scale, 100 * band[of] / scale, **look)
    f = drawing.named(discovery, "f")
    unit = drawing.unit(discovery, "f")
    lower.set_ylabel("error, %")
    if at is None:
        upper.set_ylabel(f"predicted {f}")
        lower.set_xlabel(drawing.with_unit(f"measured {f}", unit))
        lower.locator_params(axis="x", nbins=6)
    else:
        upper.set_ylabel(drawing.with_unit(f, unit))
        drawing.set_times(lower, at, drawing.unit(discovery, "t"))
    figure.align_ylabels()
    drawing.legend_above(figure, upper)
    return figure
