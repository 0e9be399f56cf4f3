"""Pictures of what the pairs can determine of a kernel, and what they cannot."""

from typing import Any

import numpy as np

from kernelmap.discovery import Discovery
from kernelmap.report import drawing
from kernelmap.report.drawing import Picture

PRIOR, LOST = "#f3e3d3", "#9aa5b1"


def identifiability_pictures(discovery: Discovery) -> list[Picture]:
    """Where the pairs look, how many directions of the kernel they determine, and what is left to the prior."""
    found = discovery.identifiability
    with drawing.style():
        return [
            Picture(
                "Where the pairs look",
                "The measure ρ: how strongly the inputs probe each part of the kernel. Grey: almost dark, hardly seen.",
                drawing.inline_svg(_rho(discovery), "rho"),
            ),
            Picture(
                "How much they determine",
                f"Strength of the data along each direction of the kernel, relative to the first; {found.determined} "
                f"of {len(found.spectrum)} stand out of the noise.",
                drawing.inline_svg(_spectrum(discovery), "spectrum"),
            ),
            Picture(
                "Data or prior",
                "Share of the prior's uncertainty that the pairs removed: 1 is known from data, 0 from the prior.",
                drawing.inline_svg(_share(discovery), "share"),
            ),
        ]


def _rho(discovery: Discovery) -> Any:
    y, rho = discovery.context.y, discovery.identifiability.rho
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(drawing.draw_map(axes, y, drawing.field(y, rho), cmap="Blues", vmin=0), ax=axes, label="ρ(y)")
    else:
        axes.fill_between(drawing.position(y), drawing.field(y, rho), color=drawing.BAND, lw=0)
        axes.plot(drawing.position(y), drawing.field(y, rho), color=drawing.MODEL, lw=1.6, label="ρ")
        axes.set(xlabel=drawing.letter(discovery), ylabel=f"ρ({drawing.letter(discovery)})", ylim=(0, None), xmargin=0)
    drawing.shade_dark(axes, discovery)
    drawing.legend_above(figure, axes)
    return figure


def _spectrum(discovery: Discovery) -> Any:
    found = discovery.identifiability
    spectrum = drawing.array(found.spectrum)
    relative = (spectrum / (spectrum[0] or 1.0)).clip(min=1e-17)
    index = np.arange(1, len(spectrum) + 1)
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    for part, colour, name in (
        (slice(found.determined), drawing.MODEL, "stands out of the noise"),
        (slice(found.determined, None), LOST, "lost in the noise"),
    ):
        if len(index[part]):
            axes.plot(index[part], relative[part], "o", color=colour, ms=3.5, label=name)
    axes.set(yscale="log", xlabel="direction of the kernel", ylabel="eigenvalue, relative")
    # Plain text instead of matplotlib's formulas, so that it takes the font of the page.
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-").replace("1e+00", "1"))
    drawing.legend_above(figure, axes)
    return figure


def _share(discovery: Discovery) -> Any:
    y = discovery.context.y
    share = drawing.field(y, discovery.identifiability.data_share.mean(dim=0))
    figure = drawing.new_figure(drawing.THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(
            drawing.draw_map(axes, y, share, cmap="Blues", vmin=0, vmax=1), ax=axes, label="share known from data"
        )
        return figure
    at = drawing.position(y)
    axes.fill_between(at, share, color=drawing.BAND, lw=0, label="data")
    axes.fill_between(at, share, 1, color=PRIOR, lw=0, label="prior")
    axes.plot(at, share, color=drawing.MODEL, lw=1.6)
    axes.set(xlabel=drawing.letter(discovery), ylabel="share of what is known", ylim=(0, 1), xmargin=0)
    drawing.legend_above(figure, axes)
    return figure
