"""Pictures that can be zoomed, hovered and clicked, by plotly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from kernelmap.app.work import Found, Pair, Seen
from kernelmap.report import drawing

IN_BAND = 1.96
COLOURS = (drawing.MODEL, drawing.CLASSICAL)
FILLS = ("rgba(27, 94, 158, 0.2)", "rgba(180, 86, 15, 0.2)")
MOST_LINES = 5
HEIGHT = 320


def measured(seen: Seen) -> go.Figure | None:
    """u and f of the file: lines on a mesh or in time, maps of the first pair on a plane."""
    entries = seen.entries
    if not {"u", "f"} <= set(entries):
        return None
    figure = make_subplots(rows=2, cols=1, shared_xaxes="x1" not in entries, vertical_spacing=0.08)
    for row, name in enumerate(("u", "f"), 1):
        values = np.asarray(entries[name], dtype=float)
        if "x1" in entries:
            field = values.reshape(-1, *values.shape[-2:])[0]
            figure.add_trace(go.Heatmap(z=field.T, colorscale="Viridis", name=name), row=row, col=1)
            continue
        at = _along(entries, name, values.shape[-1])
        for i, line in enumerate(values.reshape(-1, values.shape[-1])[:MOST_LINES]):
            known = np.isfinite(line)
            mode = "lines" if known.all() else "markers"
            look = {"name": f"{name} {i + 1}" if values.ndim > 1 else name, "marker": {"size": 4}}
            figure.add_trace(go.Scatter(x=at[known], y=line[known], mode=mode, **look), row=row, col=1)
    labels = seen.measurements.labels
    for row, name in enumerate(("u", "f"), 1):
        title = drawing.with_unit(labels.get(f"{name}_name", name), labels.get(f"{name}_unit", ""))
        figure.update_yaxes(title_text=title, row=row, col=1)
    return _plain(figure, 2 * HEIGHT, legend=False)


def kernels(found: Sequence[Found], logarithmic: tuple[bool, bool] = (False, False)) -> go.Figure:
    """One kernel with its band, or two beside each other; of K(x, y) the map of the first."""
    kernel = found[0].discovery.kernel
    if kernel.y.dim == 1 and not kernel.x.is_point and kernel.x.dim == 1:
        x, y = (drawing.position(grid) for grid in (kernel.x, kernel.y))
        values = drawing.array(kernel.values)[: len(x), : len(y)]
        shown = go.Heatmap(x=y, y=x, z=values, colorscale="RdBu", zmid=0, colorbar={"title": "K(x, y)"})
        return _plain(go.Figure(shown, {"xaxis": {"title": "y"}, "yaxis": {"title": "x"}}), 2 * HEIGHT)
    figure = go.Figure()
    for one, colour, fill in zip(found, COLOURS, FILLS, strict=False):
        _lines(figure, one, colour, fill, len(found) > 1)
    figure.update_xaxes(title_text=drawing.coordinate_axis(found[0].discovery))
    figure.update_yaxes(title_text=drawing.kernel_axis(found[0].discovery))
    for axis, wanted in zip((figure.update_xaxes, figure.update_yaxes), logarithmic, strict=True):
        axis(type="log" if wanted else "linear")
    return _plain(figure, 2 * HEIGHT)


def _lines(figure: go.Figure, found: Found, colour: str, fill: str, several: bool) -> None:
    """Of several inputs, one line each; of a field, the rows that the report shows are its first ones."""
    discovery, y = found.discovery, found.discovery.kernel.y
    at = drawing.position(y)
    values, stds = (drawing.inputs(y, part) for part in (discovery.kernel.values, discovery.std))
    for i, (mean, std) in enumerate(zip(values, stds, strict=True)):
        names = [found.label] if several else []
        names += [drawing.input_name(discovery, i)] if len(values) > 1 else []
        name, look = " · ".join(names) or "discovered", {"color": colour, "dash": ("solid", "dash", "dot")[i % 3]}
        if discovery.has_band:
            band = {"x": at, "mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
            figure.add_trace(go.Scatter(y=mean - IN_BAND * std, **band))
            figure.add_trace(go.Scatter(y=mean + IN_BAND * std, fill="tonexty", fillcolor=fill, **band))
        told = {"customdata": IN_BAND * std, "hovertemplate": "%{x:.4g}: %{y:.4g} ± %{customdata:.2g}"}
        figure.add_trace(go.Scatter(x=at, y=mean, mode="lines", name=name, line=look, **told))


def residuals(pairs: Sequence[Pair]) -> go.Figure:
    """Standardised residuals by the pair's number; a click chooses one."""
    outside = [abs(pair.residual) > IN_BAND for pair in pairs]
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
    figure.add_hrect(-IN_BAND, IN_BAND, fillcolor=FILLS[0], line_width=0, layer="below")
    figure.update_layout(xaxis_title="pair", yaxis_title="residual, standard deviations", clickmode="event+select")
    return _plain(figure, HEIGHT, legend=False)


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
