"""Calibration of `kernel1d` on draws from its own prior, with noise from 0.1 to 10 % and 30 or 302 pairs.

    python experiments/calibration.py [30-1 ... 302-25] [jumps-30] [smooth-30]

Each part is 50 draws, one for each of 50 levels, the last two 100, of kernels with and without jumps alone; finished
parts are made anew only when named. About 1.5 s a draw.
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
from kernelmap.posterior.kernel1d.prior import Prior
from kernelmap.problems.world import draw_system

RESULTS = Path(__file__).parent / "results" / "kernel1d" / "prior"
SEED = 2_000_000
"""Of systems that no training draws, whose inputs are taken."""

PARTS_EACH, DRAWS, KIND_DRAWS = 25, 50, 100


def shipped() -> Kernel1dMap:
    model = load_model("kernel1d")[0]
    assert isinstance(model, Kernel1dMap)
    return model


def prior_draws(d: int, number: int, prior: Prior | None = None, count: int = DRAWS) -> dict[str, Any]:
    """Of the model's prior, or of a part of it."""
    model = shipped()
    systems = (draw_system(SEED, seed, d) for seed in range(number * count, (number + 1) * count))
    levels = torch.logspace(-3, -1, count).tolist()
    draws = (
        draw_from_prior(prior or model.prior, system.context, noise, number * count + i)
        for i, (system, noise) in enumerate(zip(systems, levels, strict=True))
    )
    return {"d": d} | calibrate(model, draws, seed=number).summary()


def kind(jumps: bool) -> dict[str, Any]:
    """Kernels with jumps alone, or without, from 30 pairs."""
    prior = shipped().prior
    numbers = torch.arange(len(prior.log_odds)) - prior.first_edge
    has_jumps = (numbers >= 0) & (numbers < prior.pieces.odds)
    log_odds = prior.log_odds.where(has_jumps == jumps, -torch.inf)
    share = {"share": float(log_odds.exp().sum())}
    return share | prior_draws(30, 0, prior._replace(log_odds=log_odds), KIND_DRAWS)


PARTS = {f"{d}-{number + 1}": partial(prior_draws, d, number) for number in range(PARTS_EACH) for d in (302, 30)}
PARTS |= {"jumps-30": partial(kind, True), "smooth-30": partial(kind, False)}

if __name__ == "__main__":
    run_parts("calibration.py", RESULTS, PARTS, seed=SEED)
