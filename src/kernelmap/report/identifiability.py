"""Pictures of what the pairs can determine of a kernel, and what they cannot."""

from typing import Any

import numpy as np
from torch import Tensor

from kernelmap.discovery import Discovery, Identifiability
from kernelmap.report import drawing
from kernelmap.report.drawing import Picture


def identifiability_pictures(discovery: Discovery) -> list[Picture]:
    """Where the pairs look, how many directions of the kernel they determine, and what is left to the prior."""
    found = discovery.identifiability
    counted = "" if found.informed_directions is None else f"; {_counted(found)} stand out of the noise"
    with drawing.style():
        pictures = [
            Picture(
                "Where the pairs look",
                "The measure ρ: how strongly the inputs probe each part of the kernel. Grey: hardly observed.",
                drawing.inline_svg(_rho(discovery), "rho"),
            ),
            Picture(
                "How much they determine",
                f"Strength of the data along each direction of the kernel, relative to the first{counted}.",
                drawing.inline_svg(_spectrum(discovery), "spectrum"),
            ),
        ]
        if not discovery.has_band:
            return pictures
        return [
            *pictures,
            Picture(
                "Data or prior",
                "Fraction of the prior's variance that the pairs removed: 1 is known from data, 0 from the prior.",
                drawing.inline_svg(_variance_reduction(discovery), "variance-reduction"),
            ),
        ]


def _counted(found: Identifiability) -> str:
    """Of a kernel between fields one row may have more directions than there are pairs."""
    few = (found.informed_directions or 0) <= len(found.spectrum)
    return f"{found.informed_directions} of {len(found.spectrum)}" if few else f"{found.informed_directions} of a row"


def _rho(discovery: Discovery) -> Any:
    y, rho = discovery.context.y, discovery.identifiability.rho
    if y.dim == 2:
        figure, axes = _map(discovery, rho, "ρ(y)")
        drawing.shade_unobserved(axes, discovery)
        return figure
    figure, panels = _panels(discovery, rho, f"ρ({drawing.coordinate(discovery)})")
    for number, (axes, line) in enumerate(panels):
        axes.fill_between(drawing.position(y), line, color=drawing.BAND, lw=0)
        axes.plot(drawing.position(y), line, color=drawing.MODEL, lw=1.6, label="ρ")
        axes.set(ylim=(0, None), xmargin=0)
        drawing.shade_unobserved(axes, discovery, number)
    drawing.legend_above(figure, panels[0][0])
    return figure


def _map(discovery: Discovery, values: Tensor, label: str, **scale: float) -> tuple[Any, Any]:
    """On a plane, the first component."""
    y, figure = discovery.context.y, drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    coloured = drawing.draw_map(axes, y, drawing.field(y, values), cmap="Blues", vmin=0, **scale)
    figure.colorbar(coloured, ax=axes, label=label)
    return figure, axes


def _panels(discovery: Discovery, values: Tensor, label: str) -> tuple[Any, list[tuple[Any, np.ndarray]]]:
    """On a line, a panel and its values for each input, one above the other."""
    lines = drawing.inputs(discovery.context.y, values)
    figure = drawing.new_figure(drawing.THIRD, max(2.7, 1.4 * len(lines)))
    panels = figure.subplots(len(lines), 1, sharex=True, squeeze=False)[:, 0]
    if len(lines) > 1:
        for number, axes in enumerate(panels):
            axes.set_title(f"of {drawing.input_name(discovery, number)}", loc="left", fontsize=9.5)
    panels[-1].set_xlabel(drawing.coordinate_axis(discovery))
    figure.supylabel(label, fontsize=9.5)
    return figure, list(zip(panels, lines, strict=True))


def _spectrum(discovery: Discovery) -> Any:
    found = discovery.identifiability
    spectrum = drawing.array(found.spectrum)
    relative = (spectrum / (spectrum[0] or 1.0)).clip(min=1e-17)
    index = np.arange(1, len(spectrum) + 1)
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    informed = found.informed_directions
    parts = (
        (slice(informed), drawing.MODEL, "direction" if informed is None else "stands out of the noise"),
        (slice(len(index) if informed is None else informed, None), drawing.LOST, "lost in the noise"),
    )
    for part, colour, name in parts:
        if len(index[part]):
            axes.plot(index[part], relative[part], "o", color=colour, ms=3.5, label=name)
    axes.set(yscale="log", xlabel="direction of the kernel", ylabel="eigenvalue, relative")
    # Plain text instead of matplotlib's formulas, so that it takes the font of the page.
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-").replace("1e+00", "1"))
    drawing.legend_above(figure, axes)
    return figure


def _variance_reduction(discovery: Discovery) -> Any:
    y, known = discovery.context.y, discovery.identifiability.variance_reduction.mean(dim=0)
    if y.dim == 2:
        return _map(discovery, known, "fraction determined by data", vmax=1)[0]
    figure, panels = _panels(discovery, known, "fraction determined by data")
    at = drawing.position(y)
    for axes, line in panels:
        axes.fill_between(at, line, color=drawing.BAND, lw=0, label="data")
        axes.fill_between(at, line, 1, color=drawing.PRIOR, lw=0, label="prior")
        axes.plot(at, line, color=drawing.MODEL, lw=1.6)
        axes.set(ylim=(0, 1), xmargin=0)
    drawing.legend_above(figure, panels[0][0])
    return figure
