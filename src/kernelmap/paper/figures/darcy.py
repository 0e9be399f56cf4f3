"""Figures of Darcy flow: a Green's function and a hidden microstructure, by every model, beside the truth."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.files import atomic_path
from kernelmap.core.kernel import Kernel
from kernelmap.core.systems import strided_draws
from kernelmap.evaluation.evaluate import Estimated, estimate
from kernelmap.evaluation.microstructure import far_mass, interior, microstructure
from kernelmap.maps import ProbabilisticMap
from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.rows import LABELS
from kernelmap.paper.tables.run import trained_model
from kernelmap.problems.darcy import DarcyData, Task, darcy

PAIRS = 50
MAPS = ("posterior-50", "nao-50-40", "discrete-50-40")


def figure_green(out: Path) -> Path:
    """The response to a point source: a column of the Green's function, and below it the error of each model."""
    data = darcy("g-to-p")
    n = data.test.about["n"]
    source = (n // 3) * n + n // 2
    assert data.test.kernels is not None
    truth = data.test.kernels[0, :, source]
    columns = {"truth": truth} | {
        name: found.kernel.values[0, 0, :, source] for name, found in found_kernels("g-to-p", data, out).items()
    }
    figure, axes = _panels(2, len(columns))
    high = float(truth.max())
    for i, (name, column) in enumerate(columns.items()):
        _map(axes[0, i], column, n, name, cmap="viridis", vmin=0, vmax=high)
        if name == "truth":
            assert data.b is not None
            _map(axes[1, i], data.b[0].flatten(), n, "microstructure", cmap="Greys")
        else:
            error = column - truth
            title = f"error {float(error.norm() / truth.norm()):.2%}"
            _map(axes[1, i], error, n, title, **_signed(error))
    return _save(figure, out / "figure-green.png")


def figure_microstructure(out: Path) -> Path:
    """Stiffness kernels: the row of one node, the strength of all nodes, and the phases it shows."""
    data = darcy("p-to-g")
    n = data.test.about["n"]
    assert data.test.kernels is not None
    assert data.b is not None
    stiff = (data.b[0] > data.b[0].mean()).flatten()
    truth = Estimated(Kernel(data.test.kernels[0][None, None], data.test.y, data.test.x), None)
    all_found = {"truth": truth} | found_kernels("p-to-g", data, out)
    figure, axes = _panels(3, len(all_found))
    node = (n // 2) * n + n // 2
    inside = interior(data.test.x)
    for i, (name, found) in enumerate(all_found.items()):
        kernel = Kernel(found.kernel.values[0, 0], found.kernel.y, found.kernel.x)
        phases = microstructure(kernel, None if found.std is None else found.std[0, 0])
        title = f"{name}\nbeyond two steps {far_mass(kernel):.2%}"
        _map(axes[0, i], kernel.values[node], n, title, **_signed(kernel.values[node]))
        _map(axes[1, i], phases.strength.where(inside, torch.nan), n, "strength Σ|K|", cmap="viridis")
        accuracy = f"phases, {phases.accuracy(stiff):.1%} right"
        _map(axes[2, i], phases.probability.where(inside, torch.nan), n, accuracy, cmap="Greys", vmin=0, vmax=1)
    return _save(figure, out / "figure-microstructure.png")


def found_kernels(task: Task, data: DarcyData, out: Path) -> dict[str, Estimated]:
    """What each model finds from the first context of the first test system, by its label."""
    context = data.test.batch(strided_draws(data.test.pairs, PAIRS)[:1], torch.zeros(1, dtype=torch.long))
    found = {}
    for name in MAPS:
        row = TABLE3.rows[f"{name}-{task}"]
        model = trained_model(row, out)
        assert model is not None
        model = model.double()
        if isinstance(model, ProbabilisticMap):
            model = model.select_model(context[0, 0])
        found[LABELS[row.map]] = estimate(model, context)
    return found


def _panels(rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * columns, 3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def _map(axes: Any, values: Float[Tensor, " N"], n: int, title: str, **style: Any) -> None:
    image = axes.imshow(values.detach().reshape(n, n).T.numpy(), origin="lower", extent=(0, 1, 0, 1), **style)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set(title=title, xticks=[], yticks=[])


def _signed(values: Float[Tensor, " N"]) -> dict[str, Any]:
    """Colours with white at zero."""
    span = float(values.abs().max())
    return {"cmap": "RdBu_r", "vmin": -span, "vmax": span}


def _save(figure: Any, path: Path) -> Path:
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=100)
    return path
