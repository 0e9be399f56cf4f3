"""Cross-resolution: models trained at dx = 0.0125 on data of twice that spacing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelmap.core.grids import Grid
from kernelmap.core.provenance import provenance
from kernelmap.core.systems import SystemSet
from kernelmap.evaluation.evaluate import evaluate
from kernelmap.paper.tables.radial import TABLE1
from kernelmap.paper.tables.run import make, trained_model
from kernelmap.problems.radial import radial

ROWS = ("nao-302-10", "nao-100-10", "nao-50-10", "nao-30-10", "posterior-302")
COARSE = 0.025


def coarser_radii(systems: SystemSet) -> SystemSet:
    """The same pairs with every second radius: a token is measured at half as many points."""
    assert systems.kernels is not None
    y = Grid(systems.y.points[1::2], 2 * systems.y.weights[1::2])
    return replace(systems, u=systems.u[..., 1::2], y=y, kernels=systems.kernels[..., 1::2])


def cross_resolution(out: Path) -> dict[str, Any]:
    """Errors at dx, with radii at 2 dx, and with radii and locations at 2 dx, where pairs are other ones too."""
    test = radial("sine").test
    data = {"2 dx, radii": coarser_radii(test), "2 dx, radii and locations": radial("sine", dx=COARSE).test}
    results = {}
    for name in ROWS:
        row = TABLE1.rows[name]
        results[name] = {"dx": make(row, out)["systems"]}
        model = trained_model(row, out)
        assert model is not None
        for label, systems in data.items():
            results[name][label] = evaluate(model.double(), systems, row.d)["systems"]
    return {"results": results, **provenance()}
