"""The authors' released Darcy checkpoints, where their files are: against the released outputs, and on our own systems.

    python experiments/released_darcy.py FOLDER/released

Writes results/darcy/released.json. Tokens of our systems are standardised as the released code does it; the errors are
those of the models as they are, and with pressures multiplied by the one factor that suits all contexts best.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import RESULTS

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.files import write_json
from kernelmap.core.metrics import operator_error
from kernelmap.core.provenance import provenance
from kernelmap.core.systems import strided_draws
from kernelmap.paper.released import Moments, import_released_darcy
from kernelmap.problems.darcy import darcy
from kernelmap.problems.darcy.errors import errors_on_darcy

CASES = {"darcy_gtou_dk40": ("input_d50", "output_dk40"), "darcy_gtou_dk20_small": ("input_d20", "output_dk20_small")}


@torch.no_grad()
def measured(folder: Path, name: str) -> dict[str, Any]:
    cases, grid = np.load(folder / "darcy_cases.npz"), grids.rectangle(21, low=-1.0)
    X, theirs = (torch.from_numpy(cases[key]).double() for key in CASES[name])
    model = import_released_darcy(folder / f"{name}.ckpt", grid, Moments(0.0, 1.0, 0.0, 1.0))
    ours = model(Context(X[:441], X[441:], grid, grid)).apply(X[:441])
    data = darcy("g-to-p")
    on_ours = import_released_darcy(folder / f"{name}.ckpt", data.train.y, Moments.of(data.train))
    d = on_ours.shape.d
    draws = strided_draws(data.test.pairs, d)
    context = data.test.batch(draws, torch.arange(len(data.test.names)))
    found = on_ours(context).apply(context.U)
    joint = ((found - context.F).flatten(-2).norm(dim=-1) / context.F.flatten(-2).norm(dim=-1)).mean()
    factor = float((found * context.F).sum() / found.square().sum())
    scaled = operator_error(factor * found, context.F, context.x).mean()
    return {
        "d": d,
        "parameters": model.parameter_count,
        "difference": float((ours - theirs).norm() / theirs.norm()),
        **errors_on_darcy(on_ours, data, d)["systems"]["test"],
        "operator_error_joint": float(joint),
        "factor": factor,
        "operator_error_scaled": float(scaled),
    }


if __name__ == "__main__":
    start, folder = time.process_time(), Path(sys.argv[1])
    made = {
        "results": {name: measured(folder, name) for name in CASES},
        "command": "python experiments/released_darcy.py FOLDER/released",
    }
    made |= {"seed": 0, "commit": provenance()["commit"], "seconds": round(time.process_time() - start, 1)}
    write_json(RESULTS / "darcy" / "released.json", made)
