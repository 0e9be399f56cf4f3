"""Pictures of a kernel K(x, y) of two coordinates: maps of it and its band, cuts, and the part h(x) beside it."""

from typing import Any

import numpy as np

from kernelmap.discovery import Discovery
from kernelmap.posterior import GenericIntegralPosterior
from kernelmap.report import drawing
from kernelmap.report.drawing import Picture

IN_BAND = 1.96
CUT_POINTS = 200


def map_pictures(discovery: Discovery) -> list[Picture]:
    """Where x and y are both lines of several points."""
    kernel = discovery.kernel
    if kernel.x.is_point or kernel.x.dim != 1 or kernel.y.dim != 1 or kernel.x.components * kernel.y.components != 1:
        return []
    pictures = [
        Picture(
            "The kernel as a map",
            "K(x, y) and half the width of its 95 % band. The dashed line is the diagonal x = y.",
            drawing.inline_svg(_maps(discovery), "maps"),
        )
    ]
    if _overlap(discovery) is not None:
        caption = "K along the diagonal x = y, and across it: at distance s on both sides of the middle of the domain."
        pictures.append(Picture("Cuts", caption, drawing.inline_svg(_cuts(discovery), "cuts")))
    if (figure := _homogeneous(discovery)) is not None:
        caption = "h(x), the response without any input, with its 95 % band: it is not part of the kernel."
        pictures.append(Picture("Without input", caption, drawing.inline_svg(figure, "homogeneous")))
    return pictures


def _maps(discovery: Discovery) -> Any:
    x, y = (drawing.position(grid) for grid in (discovery.kernel.x, discovery.kernel.y))
    K = drawing.array(discovery.kernel.values)
    shown = [(K, "RdBu_r", -np.abs(K).max(), np.abs(K).max(), "K(x, y)")]
    if discovery.has_band:
        band = IN_BAND * drawing.array(discovery.std)
        shown.append((band, "Purples", 0, band.max(), "± band"))
    figure = drawing.new_figure(drawing.HALF, 2.9)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, (values, colours, low, high, label) in zip(panels, shown, strict=True):
        coloured = axes.pcolormesh(y, x, values, cmap=colours, vmin=low, vmax=high or 1.0, rasterized=True)
        ends = max(x[0], y[0]), min(x[-1], y[-1])
        if ends[0] < ends[1]:
            axes.plot(ends, ends, color=drawing.FAINT, lw=0.7, ls=(0, (4, 3)))
        axes.set_xlabel("y")
        figure.colorbar(coloured, ax=axes, location="bottom", label=label).ax.locator_params(nbins=4)
    panels[0].set_ylabel("x")
    return figure


def _cuts(discovery: Discovery) -> Any:
    ends = _overlap(discovery)
    assert ends is not None
    low, high = ends
    middle, along = (low + high) / 2, np.linspace(low, high, CUT_POINTS)
    across = np.linspace(low - middle, high - middle, CUT_POINTS)
    figure = drawing.new_figure(drawing.HALF, 3.2)
    upper, lower = figure.subplots(2, 1)
    for axes, at, x, y, label in (
        (upper, along, along, along, "x, along the diagonal: K(x, x)"),
        (lower, across, middle + across, middle - across, f"s, across it: K({middle:.3g} + s, {middle:.3g} - s)"),
    ):
        K = _at(discovery, drawing.array(discovery.kernel.values), x, y)
        if discovery.has_band:
            band = IN_BAND * _at(discovery, drawing.array(discovery.std), x, y)
            axes.fill_between(at, K - band, K + band, color=drawing.BAND, lw=0, label="95 % band")
        axes.plot(at, K, color=drawing.MODEL, lw=1.6, label="discovered")
        axes.set(xlabel=label, ylabel="K", xmargin=0)
    drawing.legend_above(figure, upper)
    return figure


def _homogeneous(discovery: Discovery) -> Any | None:
    """Where it differs from zero anywhere by more than its band."""
    if not isinstance(discovery.posterior, GenericIntegralPosterior):
        return None
    h, std = (drawing.array(values[:, 0]) for values in discovery.posterior.homogeneous)
    if not (np.abs(h) > IN_BAND * std).any():
        return None
    figure = drawing.new_figure(drawing.HALF, 2.4)
    axes, x = figure.subplots(), drawing.position(discovery.kernel.x)
    axes.fill_between(x, h - IN_BAND * std, h + IN_BAND * std, color=drawing.BAND, lw=0)
    axes.plot(x, h, color=drawing.MODEL, lw=1.6)
    axes.set(xlabel="x", ylabel="h(x)", xmargin=0)
    return figure


def _overlap(discovery: Discovery) -> tuple[float, float] | None:
    """Where x and y are both known."""
    x, y = (drawing.position(grid) for grid in (discovery.kernel.x, discovery.kernel.y))
    low, high = max(x.min(), y.min()), min(x.max(), y.max())
    return (low, high) if low < high else None


def _at(discovery: Discovery, table: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values at pairs of points, linear between those of the grids."""
    from scipy.interpolate import RegularGridInterpolator

    axes = tuple(drawing.position(grid) for grid in (discovery.kernel.x, discovery.kernel.y))
    order = tuple(np.argsort(axis) for axis in axes)
    sorted_table = table[np.ix_(*order)]
    points = tuple(axis[index] for axis, index in zip(axes, order, strict=True))
    return RegularGridInterpolator(points, sorted_table)(np.column_stack([x, y]))
