"""The shipped models `radial` and `kernel1d` on the paper's test systems, exact and with noise.

    python experiments/posterior.py [test|noise]

Each part writes results/radial/PART.json; finished parts are made anew only when named. Two contexts of each system.
"""

from pathlib import Path
from typing import Any

import torch
from parts import run_parts

from kernelmap.core.metrics import coverage, exploration_measure, kernel_error
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.io.models import load_model
from kernelmap.maps import ProbabilisticMap
from kernelmap.problems.radial import radial

RESULTS = Path(__file__).parent / "results" / "radial"
SEED = 20261118
SAMPLES = 2


def errors(model: ProbabilisticMap, systems: SystemSet, d: int) -> dict[str, dict[str, float]]:
    """Kernel error in L2(rho) and coverage of the 95 % band, averaged over contexts, system by system."""
    assert systems.kernels is not None
    rho = exploration_measure(systems.u[0], systems.y)
    found = {}
    for index, name in enumerate(systems.names):
        draws = strided_draws(systems.pairs, d)
        chosen = draws[torch.linspace(0, len(draws) - 1, min(SAMPLES, len(draws))).long()]
        truth, rows = systems.kernels[index], []
        for draw in chosen:
            posterior = model.posterior(systems.batch(draw[None], torch.tensor([index]))[0, 0])
            error = kernel_error(posterior.mean, truth, rho, systems.y)
            rows.append([float(error), float(coverage(posterior.mean, posterior.std, truth, rho, systems.y))])
        error, covered = torch.tensor(rows).mean(dim=0).tolist()
        found[name] = {"kernel_error": error, "coverage95": covered}
    return found


def both(noise: float, d: int) -> dict[str, Any]:
    test = radial("sine").test
    systems = test.with_noise(noise, seed=SEED) if noise else test
    found = {}
    for name in ("radial", "kernel1d"):
        model = load_model(name)[0]
        assert isinstance(model, ProbabilisticMap)
        found[name] = errors(model, systems, d)
    return found


def test_systems() -> dict[str, Any]:
    return {f"{d}": both(0.0, d) for d in (302, 100, 50, 30)}


def noise() -> dict[str, Any]:
    return {f"{d}": both(0.03, d) for d in (302, 50)}


PARTS = {"test": test_systems, "noise": noise}

if __name__ == "__main__":
    run_parts("posterior.py", RESULTS, PARTS, seed=SEED)
