"""`kernelmap demo`: the main job, on a system the shipped model has never seen."""

from pathlib import Path
from typing import Literal

import torch
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelmap.cli.discover import MODEL, print_diagnostics, results_table
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error, operator_error
from kernelmap.core.progress import working
from kernelmap.core.provenance import provenance
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.discovery.discover import Discovery, discover
from kernelmap.io.models import load_model
from kernelmap.problems.radial import radial
from kernelmap.report import write_report
from kernelmap.report.demo import plot_discovery


def run(words: list[str]) -> None:
    tyro.cli(demo, prog="kernelmap demo", args=words)


def demo(
    out: Path = Path("kernelmap-demo"),
    system: Literal["id", "ood1", "ood2"] = "ood1",
    pairs: int = 100,
    noise: float = 0.01,
) -> None:
    """Discover the hidden kernel of an unseen system from measured pairs, and predict what was not measured.

    Args:
        out: directory for the figure, the kernel and the report.
        system: the unseen system: id (sine, η = 5), ood1 (r(11-r) exp(-5r) sin 6r) or ood2 (a Gaussian).
        pairs: how many pairs were measured.
        noise: noise on the measured f, relative to its root mean square.
    """
    console = Console()
    model, about = load_model(MODEL)
    systems = radial("sine").test.select([system])
    measured = systems.with_noise(noise, seed=0)
    draw = strided_draws(systems.pairs, pairs)[0]
    console.print(
        f"The model [bold]{MODEL}[/] was trained on systems of the problem {about['problem']}. It now sees {pairs} of "
        f"the {systems.pairs} pairs of the system [bold]{system}[/], which it has never seen, with {noise:.0%} noise."
    )
    context = measured.batch(draw[None], torch.tensor([0]))[0, 0]
    with working("Finding the kernel"):
        discovery = discover(model, context, {"model": MODEL, "system": system, **provenance()})
    console.print(results_table(discovery))
    print_diagnostics(discovery)
    rest = torch.ones(systems.pairs, dtype=torch.bool).index_fill(0, draw, False).nonzero()[:, 0]
    mean, std = discovery.predict(systems.u[0, rest].T)
    assert systems.kernels is not None
    console.print(_against_truth(discovery, systems, float(operator_error(mean, systems.f[0, rest].T, systems.x))))
    write_report(discovery, out / "report.html", truth=systems.kernels[0])
    plot_discovery(out / "discovery.png", discovery, systems, rest, mean, std)
    discovery.kernel.export(out / "kernel.csv", discovery.std)
    console.print(f"In {escape(str(out))}: report.html, discovery.png (the figure) and kernel.csv.")


def _against_truth(discovery: Discovery, systems: SystemSet, unseen: float) -> Table:
    assert systems.kernels is not None
    truth, rho = systems.kernels[0], exploration_measure(systems.u[0], systems.y)
    errors = [kernel_error(k.values, truth, rho, systems.y) for k in (discovery.kernel, discovery.classical.kernel)]
    covered = coverage(discovery.kernel.values, discovery.std, truth, rho, systems.y)
    table = Table(title="Against the truth, which a user would not have", show_header=False)
    table.add_row("error of the kernel, in L2(rho)", f"{float(errors[0]):.2%}")
    table.add_row("the same of the classical estimate", f"{float(errors[1]):.2%}")
    table.add_row("true kernel inside the 95 % band", f"{float(covered):.1%}")
    table.add_row("error on all responses never measured", f"{unseen:.2%}")
    return table
