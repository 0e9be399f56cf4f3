"""Figures. matplotlib is imported when one is drawn."""

from pathlib import Path

from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.files import atomic_path
from kernelmap.kernel import Kernel
from kernelmap.systems import SystemSet


def plot_discovery(
    path: Path,
    kernel: Kernel,
    systems: SystemSet,
    pairs: Int[Tensor, " n"],
    predicted: Float[Tensor, "1 n"],
) -> None:
    """A radial kernel against the truth, and predicted against measured responses of held-out pairs."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert systems.kernels is not None
    figure = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    r = systems.y.points[:, 0]
    left.plot(r, systems.kernels[0, 0], "k", lw=2, label="true kernel")
    left.plot(r, kernel.values[0], "C1--", lw=1.6, label="discovered")
    left.set(xlabel="r", ylabel="K(r)", title=f"Hidden kernel of the unseen system {systems.names[0]}")
    measured = systems.f[0, pairs, 0]
    right.plot(measured, "k", lw=2, label="measured")
    right.plot(predicted[0], "C1--", lw=1.2, label="predicted")
    right.set(xlabel="held-out pair", ylabel="f", title="Responses that the model did not see")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)
