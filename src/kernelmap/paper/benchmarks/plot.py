"""The figure of `kernelmap bench discover`."""

from pathlib import Path
from typing import Any

from kernelmap.core.files import atomic_path


def plot_discover_benchmark(path: Path, cases: list[dict[str, Any]]) -> None:
    """Time and memory of a discovery by one thread against the size of the grid and the number of pairs."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3)
    choices = [("n", "posterior_s", "N", "seconds"), ("d", "posterior_s", "d", "seconds")]
    choices.append(("n", "peak_memory_gb", "N", "GB, all of the process"))
    for axes, (key, value, xlabel, ylabel) in zip(panels, choices, strict=True):
        other, fixed = ("d", 302) if key == "n" else ("n", 880)
        chosen = sorted((case[key], case[value]) for case in cases if case[other] == fixed and case["threads"] == 1)
        axes.loglog(*zip(*chosen, strict=True), "o-")
        axes.set(xlabel=xlabel, ylabel=ylabel, title=f"{other} = {fixed}")
        axes.spines[["top", "right"]].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)
