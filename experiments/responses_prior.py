"""The prior of responses in time beside the general one, on causal systems of the simulated world.

    python experiments/responses_prior.py [world]

The width of its reservoirs was chosen on these systems.
"""

import numpy as np
import torch
from laws import shipped
from measured import RESULTS
from parts import run_parts

from kernelmap.core import Context, grids
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error
from kernelmap.problems.world.kernels import random_kernel
from kernelmap.problems.world.systems import exact_pairs

SEED, SYSTEMS, PAIRS, LEVELS = 424242, 60, 100, (0.003, 0.01, 0.03, 0.1)


def world() -> dict:
    model, results = shipped(), {}
    for number in range(SYSTEMS):
        rng = np.random.default_rng([SEED, number])
        N, level = int(np.exp(rng.uniform(np.log(50), np.log(200)))), LEVELS[number % len(LEVELS)]
        kernel = random_kernel(rng)
        U, f = exact_pairs(kernel, True, N, PAIRS, int(rng.integers(1, 9)), rng)
        f = f + level * np.sqrt(np.mean(f**2)) * rng.normal(size=PAIRS)
        y = grids.from_points(np.arange(N + 1) / N)
        truth = torch.from_numpy(kernel(np.maximum(y.points[:, 0].numpy(), 0.25 / N)))[None]
        row = {}
        for name, operator in (("general", None), ("responses", "convolution")):
            context = Context(torch.from_numpy(U), torch.from_numpy(f[None]), y, grids.point(), operator=operator)
            found, rho = model.posterior(context), exploration_measure(context.U.mT, y)
            row[name] = {
                "error": float(kernel_error(found.mean, truth, rho, y)),
                "coverage": float(coverage(found.mean, found.std, truth, rho, y)),
            }
        results[str(number)] = row
    return results


PARTS = {"world": world}

if __name__ == "__main__":
    run_parts("responses_prior.py", RESULTS / "measurements", PARTS, seed=SEED)
