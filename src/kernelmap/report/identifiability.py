"""Pictures of what the pairs can determine of a kernel, and what they cannot."""

from typing import Any

import numpy as np

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
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(drawing.draw_map(axes, y, drawing.field(y, rho), cmap="Blues", vmin=0), ax=axes, label="ρ(y)")
    else:
        axes.fill_between(drawing.position(y), drawing.field(y, rho), color=drawing.BAND, lw=0)
        axes.plot(drawing.position(y), drawing.field(y, rho), color=drawing.MODEL, lw=1.6, label="ρ")
        at, letter = drawing.coordinate_axis(discovery), drawing.coordinate(discovery)
        axes.set(xlabel=at, ylabel=f"ρ({letter})", ylim=(0, None), xmargin=0)
    drawing.shade_unobserved(axes, discovery)
    drawing.legend_above(figure, axes)
    return figure


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
    y = discovery.context.y
    known = drawing.field(y, discovery.identifiability.variance_reduction.mean(dim=0))
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(
            drawing.draw_map(axes, y, known, cmap="Blues", vmin=0, vmax=1), ax=axes, label="fraction determined by data"
        )
        return figure
    at = drawing.position(y)
    axes.fill_between(at, known, color=drawing.BAND, lw=0, label="data")
    axes.fill_between(at, known, 1, color=drawing.PRIOR, lw=0, label="prior")
    axes.plot(at, known, color=drawing.MODEL, lw=1.6)
    axes.set(xlabel=drawing.coordinate_axis(discovery), ylabel="fraction determined by data", ylim=(0, 1), xmargin=0)
    drawing.legend_above(figure, axes)
    return figure
