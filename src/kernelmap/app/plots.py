"""Pictures that can be zoomed, hovered and clicked, by plotly."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from kernelmap.app.work import Found, Seen
from kernelmap.report import drawing

IN_BAND = 1.96
COLOURS = (drawing.MODEL, drawing.CLASSICAL)
FILLS = ("rgba(27, 94, 158, 0.2)", "rgba(180, 86, 15, 0.2)")
MOST_LINES = 5
HEIGHT = 320


def measured(seen: Seen) -> go.Figure | None:
    """u and f of the file: lines on a mesh or in time, maps of the first pair on a plane."""
    entries, labels = seen.entries, seen.measurements.labels
    if not {"u", "f"} <= set(entries):
        return None
    figure = make_subplots(rows=2, cols=1, shared_xaxes="x1" not in entries, vertical_spacing=0.08)
    for row, name in enumerate(("u", "f"), 1):
        values = np.asarray(entries[name], dtype=float)
        if "x1" in entries:
            figure.add_trace(_field(entries, name, values, row), row=row, col=1)
            continue
        at, lines = _along(entries, name, values.shape[-1]), values.reshape(-1, values.shape[-1])
        for line, called in zip(lines[:MOST_LINES], _names(labels, name, len(lines)), strict=False):
            known = np.isfinite(line)
            look = {"name": called, "mode": "lines" if known.all() else "markers", "marker": {"size": 4}}
            figure.add_trace(go.Scatter(x=at[known], y=line[known], **look), row=row, col=1)
    for row, name in enumerate(("u", "f"), 1):
        title = drawing.with_unit(labels.get(f"{name}_name", name), labels.get(f"{name}_unit", ""))
        figure.update_yaxes(title_text=title, row=row, col=1)
    return _plain(figure, 2 * HEIGHT, legend=False)


def kernels(found: Sequence[Found], logarithmic: tuple[bool, bool] = (False, False)) -> go.Figure:
    """One kernel with its band, or two beside each other; several inputs have a panel each, for each has its unit."""
    discovery = found[0].discovery
    inputs = discovery.kernel.y.components
    figure = make_subplots(rows=inputs, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for one, colour, fill in zip(found, COLOURS, FILLS, strict=False):
        _lines(figure, one, colour, fill, inputs)
    for row in range(inputs):
        figure.update_yaxes(title_text=drawing.kernel_axis(discovery, row), row=row + 1, col=1)
    figure.update_xaxes(title_text=drawing.coordinate_axis(discovery), row=inputs, col=1)
    for axis, wanted in zip((figure.update_xaxes, figure.update_yaxes), logarithmic, strict=True):
        axis(type="log" if wanted else "linear")
    return _plain(figure, max(2, inputs) * HEIGHT, legend=len(found) > 1)


def kernel_map(found: Found) -> go.Figure:
    """K(x, y), with its band where the pointer is."""
    kernel = found.discovery.kernel
    x, y = (drawing.position(grid) for grid in (kernel.x, kernel.y))
    K, std = (drawing.array(values)[: len(x), : len(y)] for values in (kernel.values, found.discovery.std))
    band = " ± %{customdata:.2g}" if found.discovery.has_band else ""
    told = {
        "customdata": IN_BAND * std,
        "hovertemplate": f"x %{{y:.4g}}, y %{{x:.4g}}: %{{z:.4g}}{band}<extra></extra>",
    }
    shown = go.Heatmap(x=y, y=x, z=K, colorscale="RdBu_r", zmid=0, colorbar={"title": "K(x, y)"}, **told)
    return _plain(go.Figure(shown, {"xaxis": {"title": "y"}, "yaxis": {"title": "x"}}), 2 * HEIGHT)


def _lines(figure: go.Figure, found: Found, colour: str, fill: str, inputs: int) -> None:
    discovery, y = found.discovery, found.discovery.kernel.y
    at = drawing.position(y)
    values, stds = (drawing.inputs(y, part) for part in (discovery.kernel.values, discovery.std))
    for row, mean, std in zip(range(1, inputs + 1), values, stds, strict=False):
        if discovery.has_band:
            band = {"x": at, "mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
            figure.add_trace(go.Scatter(y=mean - IN_BAND * std, **band), row=row, col=1)
            figure.add_trace(go.Scatter(y=mean + IN_BAND * std, fill="tonexty", fillcolor=fill, **band), row=row, col=1)
        told = {"customdata": IN_BAND * std, "hovertemplate": "%{x:.4g}: %{y:.4g} ± %{customdata:.2g}"}
        look = {"mode": "lines", "name": found.label, "line": {"color": colour}, "showlegend": row == 1}
        figure.add_trace(go.Scatter(x=at, y=mean, **look, **told), row=row, col=1)


def residuals(found: Found) -> go.Figure:
    """The largest standardised residual of each pair, by its number; a click chooses one.

    The band holds 95 % of what is usual: the largest of M outputs is within z, Φ(z) = (1 + 0.95^(1/M)) / 2.
    """
    pairs = found.pairs
    usual = NormalDist().inv_cdf(0.5 + 0.5 * 0.95 ** (1 / found.discovery.context.x.size))
    outside = [abs(pair.residual) > usual for pair in pairs]
    look: dict[str, Any] = {"size": 9, "color": [drawing.OUTSIDE if out else drawing.MODEL for out in outside]}
    points = go.Scatter(
        x=[pair.number for pair in pairs],
        y=[pair.residual for pair in pairs],
        mode="markers",
        marker=look,
        customdata=[[pair.number] for pair in pairs],
        text=[pair.name for pair in pairs],
        hovertemplate="%{text}: %{y:+.1f}<extra></extra>",
    )
    figure = go.Figure(points)
    figure.add_hrect(-usual, usual, fillcolor=FILLS[0], line_width=0, layer="below")
    figure.update_layout(xaxis_title="pair", yaxis_title="residual, standard deviations", clickmode="event+select")
    return _plain(figure, HEIGHT, legend=False)


def _field(entries: dict[str, Any], name: str, values: np.ndarray, row: int) -> go.Heatmap:
    """The first pair, with its scale beside it; row 1 is the upper of two."""
    field = values.reshape(-1, *values.shape[-2:])[0]
    axes = {letter: entries.get(axis) for letter, axis in (("x", "x1"), ("y", "x2"))}
    places = axes if "x3" not in entries and all(at is not None for at in axes.values()) else {}
    scale = {"len": 0.46, "y": 1.0 - 0.54 * (row - 1), "yanchor": "top"}
    return go.Heatmap(z=field.T, colorscale="Viridis", name=name, colorbar=scale, **places)


def _names(labels: dict[str, str], name: str, count: int) -> list[str]:
    """What the user calls each line of u or f, or numbers."""
    given = [one.strip() for one in labels.get(f"{name}_name", name).split(",")]
    return given if len(given) == count else [f"{name} {i + 1}" for i in range(count)]


def _along(entries: dict[str, Any], name: str, count: int) -> np.ndarray:
    for axis in (f"t_{name}", "t", "x" if name == "f" else "y", "x", "y"):
        if axis in entries and np.size(entries[axis]) == count:
            at = np.ravel(entries[axis])
            return at if at.dtype.kind in "fiuM" else at.astype("datetime64[s]")
    return np.arange(count)


def _plain(figure: go.Figure, height: int, legend: bool = True) -> go.Figure:
    figure.update_layout(height=height, margin={"l": 10, "r": 10, "t": 30, "b": 10}, showlegend=legend)
    figure.update_layout(legend={"orientation": "h", "y": 1.08})
    return figure
