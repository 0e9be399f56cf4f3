"""Calibration of `kernel1d` on draws from its own prior, with noise from 0.1 to 10 % and 30 or 302 pairs.

    python experiments/calibration.py [30-1 ... 302-25]

Each part is 50 draws, one for each of 50 levels; finished parts are made anew only when named. About 1.5 s a draw.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from parts import run_parts

from kernelmap.evaluation.calibration import calibrate
from kernelmap.io.models import load_model
from kernelmap.posterior import Kernel1dMap
from kernelmap.posterior.kernel1d.draws import draw_from_prior
from kernelmap.problems.world import draw_system

RESULTS = Path(__file__).parent / "results" / "kernel1d" / "prior"
SEED = 2_000_000
"""Of systems that no training draws, whose inputs are taken."""

PARTS_EACH, DRAWS = 25, 50


def prior_draws(d: int, number: int) -> dict[str, Any]:
    model = load_model("kernel1d")[0]
    assert isinstance(model, Kernel1dMap)
    systems = (draw_system(SEED, seed, d) for seed in range(number * DRAWS, (number + 1) * DRAWS))
    levels = torch.logspace(-3, -1, DRAWS).tolist()
    draws = (
        draw_from_prior(model.prior, system.context, noise, number * DRAWS + i)
        for i, (system, noise) in enumerate(zip(systems, levels, strict=True))
    )
    return {"d": d} | calibrate(model, draws, seed=number).summary()


PARTS = {f"{d}-{number + 1}": partial(prior_draws, d, number) for number in range(PARTS_EACH) for d in (302, 30)}

if __name__ == "__main__":
    run_parts("calibration.py", RESULTS, PARTS, seed=SEED)
