"""How every picture looks. matplotlib is imported when one is drawn, so its objects are `Any` here.

On a one-dimensional grid y a field is a line, on a two-dimensional one a map; of a vector field the first component
is shown.
"""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.places import DATE, MOST_DAYS
from kernelmap.discovery import Discovery
from kernelmap.operators import OPERATORS

INK, FAINT, UNOBSERVED_COLOUR = "#1c2733", "#5b6875", "#e9ebee"
MODEL, BAND, CLASSICAL, OUTSIDE = "#1b5e9e", "#bcd6ee", "#b4560f", "#b3261e"
PRIOR, LOST = "#f3e3d3", "#9aa5b1"
THEMED = {
    "ink": INK,
    "faint": FAINT,
    "unobserved": UNOBSERVED_COLOUR,
    "model": MODEL,
    "band": BAND,
    "classical": CLASSICAL,
    "outside": OUTSIDE,
    "prior": PRIOR,
    "lost": LOST,
}
"""Colours that the page may set anew, as it does in the dark."""

STYLE: dict[Any, Any] = {
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
HALF, THIRD = 3.9, 3.5


@dataclass(frozen=True)
class Picture:
    """An inline SVG with what stands below it."""

    title: str
    caption: str
    svg: str


def style() -> AbstractContextManager[None]:
    from matplotlib import rc_context

    return rc_context(STYLE)


def new_figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend_above(figure: Any, axes: Any) -> None:
    """Above the picture, where it hides nothing."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper center", ncols=3)


def draw_map(axes: Any, y: Grid, values: np.ndarray, **colours: Any) -> Any:
    axes.set(aspect="equal", xmargin=0, ymargin=0)
    axes.axis("off")
    return axes.tripcolor(*array(y.points).T, values, shading="gouraud", rasterized=True, **colours)


def shade_unobserved(axes: Any, discovery: Discovery, number: int = 0) -> None:
    """Grey, where the pairs hardly look at the kernel of this input."""
    y, everywhere = discovery.context.y, discovery.identifiability.unobserved
    unobserved = field(y, everywhere) if y.dim == 2 else inputs(y, everywhere)[number]
    if y.dim == 2 and unobserved.any() and not unobserved.all():
        axes.tricontourf(*array(y.points).T, unobserved.astype(float), levels=[0.5, 1.5], colors=[FAINT], alpha=0.4)
    elif y.dim != 2 and unobserved.any():
        look = {"transform": axes.get_xaxis_transform(), "color": UNOBSERVED_COLOUR, "lw": 0, "zorder": 0}
        axes.fill_between(position(y), 0, 1, where=unobserved, label="unobserved", **look)


def position(y: Grid) -> np.ndarray:
    """The coordinate of a line; in three dimensions there is only the number of the point."""
    return array(y.points)[:, 0] if y.dim == 1 else np.arange(len(y.points))


def coordinate(discovery: Discovery) -> str:
    """The letter of what the kernel is a function of."""
    operator = OPERATORS.get(discovery.context.operator or "")
    return operator.coordinate if operator else "r" if discovery.context.x.is_point else "y"


def coordinate_axis(discovery: Discovery) -> str:
    """Such as `r` or `lag s (days)`."""
    operator = OPERATORS.get(discovery.context.operator or "")
    axis, labels = operator.axis if operator else coordinate(discovery), discovery.about.get("labels", {})
    name = labels.get("x_name") or labels.get("t_name")
    return with_unit(f"{axis} in {name}" if name else axis, unit(discovery, "x", "t"))


def kernel_axis(discovery: Discovery, row: int = 0) -> str:
    """K with its unit, where that is known; of several inputs, that of one."""
    if not discovery.context.x.is_point:
        return "K(x, y)"
    of = f" of {input_name(discovery, row)}" if discovery.context.y.components > 1 else ""
    name = f"K({coordinate(discovery)}){of}"
    return with_unit(name, part(unit(discovery, "K"), row))


def input_name(discovery: Discovery, number: int) -> str:
    """What the user calls one of several inputs."""
    names = named(discovery, "u").split(",")
    return names[number].strip() if number < len(names) > 1 else f"u{number + 1}"


def part(texts: str, number: int) -> str:
    """Of texts with commas between them, one; a single text is that of all."""
    listed = texts.split(",")
    return listed[number if number < len(listed) else 0].strip()


def named(discovery: Discovery, variable: str) -> str:
    """What the user calls u or f."""
    return discovery.about.get("labels", {}).get(f"{variable}_name", variable)


def times(context: Context, pairs: np.ndarray) -> np.ndarray | None:
    """When these pairs of one series were measured: dates of years that can be drawn, or numbers; None if not known."""
    places = context.places
    if places is None or places.names not in ((DATE,), ("t",)):
        return None
    values = array(places.values)[pairs, 0]
    dated = places.names == (DATE,) and bool((np.abs(values) <= MOST_DAYS).all())
    return np.datetime64("1970-01-01") + (values * 86400).astype("timedelta64[s]") if dated else values


def set_times(axes: Any, at: np.ndarray, unit: str) -> None:
    """Dates, or the time t with its unit, on the lower axis."""
    if at.dtype.kind != "M":
        axes.set_xlabel(with_unit("t", unit))
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=6)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def unit(discovery: Discovery, *variables: str) -> str:
    labels = discovery.about.get("labels", {})
    return next((labels[f"{name}_unit"] for name in variables if f"{name}_unit" in labels), "")


def with_unit(text: str, unit: str) -> str:
    return f"{text} ({unit})" if unit else text


def inputs(y: Grid, values: Tensor) -> np.ndarray:
    """Values (n N) of n inputs, or the first row of such, as (n, N)."""
    return array(values if values.ndim == 1 else values[0]).reshape(y.components, len(y.points))


def field(y: Grid, values: Tensor) -> np.ndarray:
    """The first component of fields on y."""
    return array(values)[..., : len(y.points)]


def array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()


def laid_out(figure: Any) -> Any:
    """The figure with its axes in place. `savefig` would draw everything twice, once to find out where they go.

    What users call their data is text: two dollars in it are no formula.
    """
    from matplotlib.text import Text

    for axes in figure.axes:
        titles = [child for child in axes.get_children() if isinstance(child, Text)]
        for text in (axes.xaxis.label, axes.yaxis.label, *titles):
            text.set_parse_math(False)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    return figure


def inline_svg(figure: Any, name: str) -> str:
    """The <svg> element alone: text in the font of the page, colours the page may change, ids unique there."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        laid_out(figure).savefig(
            text, format="svg", dpi=200, transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    element = text.getvalue()[text.getvalue().index("<svg") :]
    for variable, colour in THEMED.items():
        element = element.replace(f": {colour}", f": var(--{variable}, {colour})")
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", element)
