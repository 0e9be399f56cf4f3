"""The figure of `kernelmap demo`: a kernel against the truth, which a user would not have."""

from pathlib import Path

from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.files import atomic_path
from kernelmap.core.systems import SystemSet
from kernelmap.discovery.discover import Discovery


def plot_discovery(
    path: Path,
    discovery: Discovery,
    systems: SystemSet,
    pairs: Int[Tensor, " n"],
    mean: Float[Tensor, "1 n"],
    std: Float[Tensor, "1 n"],
) -> None:
    """A radial kernel with its band against the truth, and predicted against true responses never measured."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert systems.kernels is not None
    figure = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    r = systems.y.points[:, 0]
    kernel, band = discovery.kernel.values[0], 1.96 * discovery.std[0]
    left.fill_between(r, kernel - band, kernel + band, color="C1", alpha=0.3, lw=0, label="95 % band")
    left.plot(r, systems.kernels[0, 0], "k", lw=2, label="true kernel")
    left.plot(r, kernel, "C1--", lw=1.6, label="discovered")
    left.set(xlabel="r", ylabel="K(r)", title=f"Hidden kernel of the unseen system {systems.names[0]}", xlim=(0, 4))
    index = range(len(pairs))
    right.fill_between(index, mean[0] - 1.96 * std[0], mean[0] + 1.96 * std[0], color="C1", alpha=0.3, lw=0)
    right.plot(systems.f[0, pairs, 0], "k", lw=2, label="true")
    right.plot(mean[0], "C1--", lw=1.2, label="predicted")
    right.set(xlabel="pair", ylabel="f", title="Responses that were never measured")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)
