"""Noise on u: ignored, given and estimated; and how often it is seen where there is none.

    python experiments/noise_on_u.py [levels-1 | levels-2 | exact]

`levels-1`, `levels-2`: four kernels of known law, 100 pairs with 1 % noise on f, and 0, 1 or 5 % of its size on u.
`exact`: systems of the simulated world with 100 pairs, whose inputs have no noise. Nothing was chosen on these seeds.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from laws import COUNT, FINER, KNOWN, STEP, inputs, operator_of, shipped
from measured import RESULTS
from measurements import error, truth_of
from parts import run_parts

from kernelmap.core import Context
from kernelmap.core.metrics import coverage, exploration_measure
from kernelmap.discovery import discover
from kernelmap.discovery.noisy_inputs import noise_everywhere
from kernelmap.io.mesh import mesh_context
from kernelmap.io.series import series_context
from kernelmap.problems.world.systems import draw_system

SEED, CONTEXTS, PAIRS, NOISE, FIRST = 0, 4, 100, 0.01, 6000
LEVELS = (0.01, 0.05)
SYSTEMS, WORLD = 60, 63


def entries(kind: str, shape: Callable, seed: int, level: float) -> tuple[dict, float]:
    """One input with noise of this level, exact responses but for their own noise, and the level in units of u."""
    operator, x, rng = operator_of(kind), STEP * np.arange(3 * COUNT), np.random.default_rng([SEED, seed])
    points = rng.choice(np.nonzero(operator.reached(len(x)))[0], PAIRS, replace=False)
    fine = STEP / FINER * (np.arange(COUNT * FINER) + 0.5)
    at = x[points][:, None]

    def u(places: np.ndarray) -> np.ndarray:
        return np.stack([inputs(row, seed)[0] for row in places])

    tokens = u(at - fine)
    if kind == "radial":
        tokens = tokens + u(at + fine) - 2 * u(at)
    exact = STEP / FINER * tokens @ shape(fine)
    f = np.full(len(x), np.nan)
    f[points] = exact + NOISE * np.sqrt(np.mean(exact**2)) * rng.normal(size=PAIRS)
    clean = inputs(x, seed)[0]
    std = level * float(clean.std())
    found = {"u": clean + std * rng.normal(size=len(x)), "f": f, "radius": np.asarray(STEP * COUNT)}
    return found | {"x" if kind == "radial" else "t": x}, std


def scores(model, context: Context, shape: Callable) -> dict:
    context = replace(context, unknown=())
    found, truth = discover(model, context), truth_of(shape, context)
    rho = exploration_measure(context.U.mT, context.y)
    return {
        "error": error(found.kernel.values, truth, context),
        "coverage": float(coverage(found.kernel.values, found.std, truth, rho, context.y)),
        "said": any("biased" in d.seen + d.cause for d in found.diagnostics),
        "share": found.posterior.through_kernel,
    }


def levels(half: int) -> dict:
    model, results = shipped(), {}
    for i, (name, (kind, _, shape, _)) in list(enumerate(KNOWN.items()))[half * CONTEXTS : (half + 1) * CONTEXTS]:
        read = mesh_context if kind == "radial" else series_context
        results[name] = {"exact": scores(model, read(entries(kind, shape, FIRST + i, 0.0)[0])[0], shape)}
        for level in LEVELS:
            noisy, std = entries(kind, shape, FIRST + i, level)
            said = {"ignored": {}, "given": {"u_std": np.asarray(std)}, "estimated": {"u_std": np.asarray("estimate")}}
            for how, extra in said.items():
                results[name][f"{level:.0%} {how}"] = scores(model, read(noisy | extra)[0], shape)
    return results


def exact() -> dict:
    model, said = shipped(), []
    for number in range(SYSTEMS):
        context = draw_system(WORLD, number, d=PAIRS).context
        if noise_everywhere(context.U.mT.numpy()) is None:
            continue
        operator = "convolution" if float(context.y.points[0]) == 0 else "radial"
        found = discover(model, replace(context, operator=operator))
        if any("seems to have noise" in d.seen for d in found.diagnostics):
            said.append(number)
    return {"systems": SYSTEMS, "said": said}


PARTS = {"levels-1": lambda: levels(0), "levels-2": lambda: levels(1), "exact": exact}

if __name__ == "__main__":
    torch.set_num_threads(1)
    run_parts("noise_on_u.py", RESULTS / "noise-on-u", PARTS, seed=SEED)
