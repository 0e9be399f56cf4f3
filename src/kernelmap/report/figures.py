"""The pictures of a report. matplotlib is imported when one is drawn, so its objects are `Any` here.

On a one-dimensional grid y a field is a line, on a two-dimensional one a map. Of a kernel with many rows K(x_m, ·)
three are shown, of a vector field its first component.
"""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kernelmap.discovery import Discovery
from kernelmap.errors import InputError
from kernelmap.files import atomic_path
from kernelmap.grids import Grid

INK, FAINT, DARKNESS = "#1c2733", "#5b6875", "#e9ebee"
MODEL, BAND, CLASSICAL, OUTSIDE = "#1b5e9e", "#bcd6ee", "#b4560f", "#b3261e"
STYLE = {
    "font.size": 9.5,
    "legend.fontsize": 9,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 1.6,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.axisbelow": True,
}
# Inches, so narrow that the text stays readable on a phone: one of two in a line of the page, and one of three.
HALF, THIRD = 4.2, 3.5
IN_BAND = 1.96
MOST_POINTS = 120


@dataclass(frozen=True)
class Picture:
    """An inline SVG with what stands below it."""

    title: str
    caption: str
    svg: str


def plot(discovery: Discovery, path: Path | str, truth: Tensor | None = None) -> None:
    """The kernel with its band, as PNG, SVG or PDF."""
    path = Path(path)
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"cannot draw {path.name}: its name must end in .png, .svg or .pdf.")
    with _style(), atomic_path(path) as temporary:
        _kernel(discovery, truth).savefig(temporary, dpi=200)


def answer_pictures(discovery: Discovery, truth: Tensor | None) -> list[Picture]:
    """The kernel, and how well it predicts the pairs that were kept back."""
    with _style():
        kernel = Picture(
            "The kernel",
            "The discovered kernel with its 95 % band, and the classical estimate (DARTR) from the same pairs. "
            "Where the band is wide, the pairs leave the kernel open.",
            _svg(_kernel(discovery, truth), "kernel"),
        )
        if discovery.heldout is None:
            return [kernel]
        caption = (
            "Each bar is the 95 % band of one measurement that was kept back. "
            "Below, the same bars as errors: one that misses the line of zero is drawn red, with a cross."
        )
        return [kernel, Picture("Predicted and measured", caption, _svg(_prediction(discovery), "prediction"))]


def identifiability_pictures(discovery: Discovery) -> list[Picture]:
    """Where the pairs look, how many directions of the kernel they determine, and what is left to the prior."""
    found = discovery.identifiability
    with _style():
        return [
            Picture(
                "Where the pairs look",
                "The measure ρ: how strongly the inputs probe each part of the kernel. Grey: almost dark, hardly seen.",
                _svg(_rho(discovery), "rho"),
            ),
            Picture(
                "How much they determine",
                f"Strength of the data along each direction of the kernel, relative to the first; {found.determined} "
                f"of {len(found.spectrum)} stand out of the noise.",
                _svg(_spectrum(discovery), "spectrum"),
            ),
            Picture(
                "Data or prior",
                "Share of the prior's uncertainty that the pairs removed: 1 is known from data, 0 from the prior.",
                _svg(_share(discovery), "share"),
            ),
        ]


def _kernel(discovery: Discovery, truth: Tensor | None) -> Any:
    y, x = discovery.kernel.y, discovery.kernel.x
    rows = sorted({int((k + 0.5) * x.size / 3) for k in range(3)})
    mean, band, classical = (
        _field(y, values)[rows]
        for values in (discovery.kernel.values, IN_BAND * discovery.std, discovery.classical.kernel.values)
    )
    true = None if truth is None else _field(y, truth)[rows]
    if y.dim == 2:
        return _kernel_maps(discovery, rows, mean, band, classical, true)
    figure = _figure(HALF, 3.2 if len(rows) == 1 else 1.6 * len(rows))
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    at = _position(y)
    for i, axes in enumerate(panels):
        low, high = mean[i] - band[i], mean[i] + band[i]
        axes.plot(at, mean[i], color=MODEL, lw=1.8, zorder=4, label="discovered")
        axes.fill_between(at, low, high, color=BAND, lw=0, zorder=1, label="95 % band")
        if true is not None:
            axes.plot(at, true[i], color=INK, lw=2.6, alpha=0.45, zorder=3, label="truth")
            low, high = np.minimum(low, true[i]), np.maximum(high, true[i])
        axes.plot(at, classical[i], color=CLASSICAL, lw=1.1, ls=(0, (4, 2)), zorder=2, label="classical (DARTR)")
        _shade_dark(axes, discovery)
        # A classical estimate may swing far outside; it must not flatten the answer.
        margin = 0.08 * (high.max() - low.min()) or 1.0
        axes.set(ylim=(low.min() - margin, high.max() + margin), xlim=(at[0], at[-1]))
        axes.set_ylabel("K(r)" if x.is_point else "K(x, y)")
    panels[-1].set_xlabel(_letter(discovery))
    _legend(figure, panels[0])
    return figure


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
    kernels = {"discovered": mean, "classical": classical} | ({} if true is None else {"truth": true})
    figure = _figure(HALF, 0.9 + HALF / (len(kernels) + 1) * len(rows))
    panels = figure.subplots(len(rows), len(kernels) + 1, squeeze=False)
    largest = np.abs(mean).max() or 1.0
    for i, row in enumerate(rows):
        for axes, (name, values) in zip(panels[i], kernels.items(), strict=False):
            coloured = _map(axes, y, values[i], cmap="RdBu_r", vmin=-largest, vmax=largest)
            axes.set_title(name if i == 0 else "", fontsize=9.5)
        bands = _map(panels[i, -1], y, band[i], cmap="Purples", vmin=0, vmax=band.max() or 1.0)
        panels[i, -1].set_title("± band" if i == 0 else "", fontsize=9.5)
        if x.dim == 2:
            for axes in panels[i]:
                axes.plot(*_array(x.points[row % len(x.points)]), "o", mfc="white", mec=INK, ms=4)
    bars = [
        figure.colorbar(coloured, ax=panels[:, :-1], location="bottom", aspect=15 * len(kernels), label="K(x, y)"),
        figure.colorbar(bands, ax=panels[:, -1], location="bottom", aspect=15, label="1.96 std"),
    ]
    for bar in bars:
        bar.ax.locator_params(nbins=3)
    return figure


def _prediction(discovery: Discovery) -> Any:
    assert discovery.heldout is not None
    mean, std = discovery.predict(discovery.heldout.U)
    measured = _array(discovery.heldout.F).ravel()
    scale = np.sqrt(np.mean(measured**2)) or 1.0
    some = np.unique(np.linspace(0, len(measured) - 1, MOST_POINTS).round().astype(int))
    measured = measured[some]
    error, band = _array(mean).ravel()[some] - measured, IN_BAND * _array(std).ravel()[some]
    missed = np.abs(error) > band
    figure = _figure(HALF, 3.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    upper.axline((measured[0], measured[0]), slope=1, color=FAINT, lw=0.8)
    lower.axhline(0, color=FAINT, lw=0.8)
    looks = ((~missed, MODEL, "o", "in its 95 % band"), (missed, OUTSIDE, "x", "outside its band"))
    for of, colour, marker, name in looks:
        look = {"fmt": marker, "color": colour, "ecolor": colour, "ms": 3, "elinewidth": 0.8}
        if of.any():
            upper.errorbar(measured[of], (measured + error)[of], band[of], **look, label=name)
            lower.errorbar(measured[of], 100 * error[of] / scale, 100 * band[of] / scale, **look)
    upper.set_ylabel("predicted f")
    lower.set(xlabel="measured f", ylabel="error, % of\ntypical f")
    lower.locator_params(axis="x", nbins=6)
    figure.align_ylabels()
    _legend(figure, upper)
    return figure


def _rho(discovery: Discovery) -> Any:
    y, rho = discovery.context.y, discovery.identifiability.rho
    figure = _figure(THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(_map(axes, y, _field(y, rho), cmap="Blues", vmin=0), ax=axes, label="ρ(y)")
    else:
        axes.fill_between(_position(y), _field(y, rho), color=BAND, lw=0)
        axes.plot(_position(y), _field(y, rho), color=MODEL, lw=1.6, label="ρ")
        axes.set(xlabel=_letter(discovery), ylabel=f"ρ({_letter(discovery)})", ylim=(0, None), xmargin=0)
    _shade_dark(axes, discovery)
    _legend(figure, axes)
    return figure


def _spectrum(discovery: Discovery) -> Any:
    found = discovery.identifiability
    spectrum = _array(found.spectrum)
    relative = (spectrum / (spectrum[0] or 1.0)).clip(min=1e-17)
    index = np.arange(1, len(spectrum) + 1)
    figure = _figure(THIRD, 2.7)
    axes = figure.subplots()
    for part, colour, name in (
        (slice(found.determined), MODEL, "stands out of the noise"),
        (slice(found.determined, None), "#9aa5b1", "lost in the noise"),
    ):
        if len(index[part]):
            axes.plot(index[part], relative[part], "o", color=colour, ms=3.5, label=name)
    axes.set(yscale="log", xlabel="direction of the kernel", ylabel="eigenvalue, relative")
    # Plain text instead of matplotlib's formulas, so that it takes the font of the page.
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-").replace("1e+00", "1"))
    _legend(figure, axes)
    return figure


def _share(discovery: Discovery) -> Any:
    y = discovery.context.y
    share = _field(y, discovery.identifiability.data_share.mean(dim=0))
    figure = _figure(THIRD, 2.7)
    axes = figure.subplots()
    if y.dim == 2:
        figure.colorbar(_map(axes, y, share, cmap="Blues", vmin=0, vmax=1), ax=axes, label="share known from data")
        return figure
    at = _position(y)
    axes.fill_between(at, share, color=BAND, lw=0, label="data")
    axes.fill_between(at, share, 1, color="#f3e3d3", lw=0, label="prior")
    axes.plot(at, share, color=MODEL, lw=1.6)
    axes.set(xlabel=_letter(discovery), ylabel="share of what is known", ylim=(0, 1), xmargin=0)
    _legend(figure, axes)
    return figure


def _map(axes: Any, y: Grid, values: np.ndarray, **colours: Any) -> Any:
    axes.set(aspect="equal", xmargin=0, ymargin=0)
    axes.axis("off")
    return axes.tripcolor(*_array(y.points).T, values, shading="gouraud", rasterized=True, **colours)


def _shade_dark(axes: Any, discovery: Discovery) -> None:
    y = discovery.context.y
    dark = _field(y, discovery.identifiability.dark)
    if y.dim == 2 and dark.any() and not dark.all():
        axes.tricontourf(*_array(y.points).T, dark.astype(float), levels=[0.5, 1.5], colors=[FAINT], alpha=0.4)
    elif y.dim != 2 and dark.any():
        look = {"transform": axes.get_xaxis_transform(), "color": DARKNESS, "lw": 0, "zorder": 0}
        axes.fill_between(_position(y), 0, 1, where=dark, label="almost dark", **look)


def _field(y: Grid, values: Tensor) -> np.ndarray:
    """The first component of fields on y."""
    return _array(values)[..., : len(y.points)]


def _position(y: Grid) -> np.ndarray:
    """The coordinate of a line; in three dimensions there is only the number of the point."""
    return _array(y.points)[:, 0] if y.dim == 1 else np.arange(len(y.points))


def _letter(discovery: Discovery) -> str:
    return "r" if discovery.context.x.is_point else "y"


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()


def _style() -> AbstractContextManager[None]:
    from matplotlib import rc_context

    return rc_context(STYLE)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _legend(figure: Any, axes: Any) -> None:
    """Above the picture, where it hides nothing."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper center", ncols=3)


def _svg(figure: Any, name: str) -> str:
    """The <svg> element alone, its text set in the font of the page and its ids unique there."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(
            text, format="svg", dpi=200, transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    element = text.getvalue()[text.getvalue().index("<svg") :]
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", element)
