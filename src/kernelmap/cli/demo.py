"""`kernelmap demo`: the main job, on a system the shipped model has never seen."""

from pathlib import Path
from typing import Literal

import torch
from rich.console import Console
from rich.table import Table

from kernelmap.kernel import Kernel
from kernelmap.metrics import exploration_measure, kernel_error, operator_error
from kernelmap.model import load_model
from kernelmap.plots import plot_discovery
from kernelmap.problems.radial import radial
from kernelmap.systems import SystemSet, strided_draws

MODEL = "nao-diverse"


def demo(out: Path = Path("kernelmap-demo"), system: Literal["id", "ood1", "ood2"] = "ood1") -> None:
    """Discover the hidden kernel of an unseen system from 302 measured pairs, and predict what was not measured.

    Args:
        out: directory for the figure and the kernel.
        system: the unseen system: id (sine, η = 5), ood1 (r(11-r) exp(-5r) sin 6r) or ood2 (a Gaussian).
    """
    console = Console()
    model, about = load_model(MODEL)
    systems = radial("sine").test.select([system])
    draw = strided_draws(systems.pairs, model.shape.d)[0]
    rest = torch.ones(systems.pairs, dtype=torch.bool).index_fill(0, draw, False).nonzero()[:, 0]
    context, heldout = (systems.batch(pairs[None], torch.tensor([0])) for pairs in (draw, rest))
    console.print(
        f"The model [bold]{MODEL}[/] was trained on {about['setting']} systems. It now sees {len(draw)} of the "
        f"{systems.pairs} measured pairs of the system [bold]{system}[/], which it has never seen."
    )
    with torch.no_grad():
        kernel = model.double()(context)
        predictions = [kernel.apply(part.U) for part in (context, heldout)]
    errors = [
        float(operator_error(p, part.F, systems.x)) for p, part in zip(predictions, (context, heldout), strict=True)
    ]
    console.print(_table(kernel[0, 0], systems, errors))
    figure, values = out / "discovery.png", out / "kernel.csv"
    plot_discovery(figure, kernel[0, 0], systems, rest, predictions[1][0, 0])
    kernel[0, 0].export(values)
    console.print(f"Figure in {figure}, kernel in {values}.")


def _table(kernel: Kernel, systems: SystemSet, errors: list[float]) -> Table:
    assert systems.kernels is not None
    rho = exploration_measure(systems.u[0], systems.y)
    table = Table(title="Discovered kernel, against the truth")
    table.add_column("what")
    table.add_column("relative error", justify="right")
    table.add_row("responses in the context", f"{errors[0]:.2%}")
    table.add_row("held-out responses", f"{errors[1]:.2%}")
    table.add_row(
        "hidden kernel, in L2(rho)", f"{float(kernel_error(kernel.values, systems.kernels[0], rho, systems.y)):.2%}"
    )
    return table
