"""What `kernel1d` holds on units, repeats, odd data, a narrow peak, and sizes.

    python experiments/kernel1d_bars.py [units] [repeats] [odd] [peak] [discovery] [pairs] [file]

Each part writes results/kernel1d/bars/PART.json; finished parts are made anew only when named. Times are processor
time of one thread.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from parts import run_parts

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import coverage, exploration_measure
from kernelmap.discovery import discover
from kernelmap.io.models import load_model
from kernelmap.paper.benchmarks import own_use
from kernelmap.paper.benchmarks.discover import example
from kernelmap.posterior import Kernel1dMap
from kernelmap.problems.world import draw_system

RESULTS = Path(__file__).parent / "results" / "kernel1d" / "bars"
SEED = 3_000_000
"""Of systems of the world that neither training nor calibration draws."""

SYSTEMS, PAIRS, REPEATS = 16, 60, 20


def shipped() -> Kernel1dMap:
    model = load_model("kernel1d")[0]
    assert isinstance(model, Kernel1dMap)
    return model


def units() -> dict[str, float]:
    """Largest change of the kernel and its band when lengths, u and f have other units, relative to their norm."""
    model, context = shipped(), draw_system(SEED, 0, PAIRS, 0.02).context
    reference, found = model.posterior(context), {}
    for length, u, f in ((1e-6, 1, 1), (1e6, 1, 1), (1, 1e-150, 1e150), (1, 1e150, 1e-150), (1e-6, 1e100, 1e-100)):
        y = grids.Grid(length * context.y.points, length * context.y.weights)
        other, unit = model.posterior(Context(u * context.U, f * context.F, y, context.x)), f / u / length
        changes = ((other.mean / unit, reference.mean), (other.std / unit, reference.std))
        found[f"{length:g} {u:g} {f:g}"] = max(float((ours - own).norm() / own.norm()) for ours, own in changes)
    return found


def repeats() -> dict[str, Any]:
    """Coverage of the 95 % band, every input measured 20 times: with noise of its own, and the same value copied."""
    model, covered = shipped(), {"own noise": [], "copied": []}
    for number in range(SYSTEMS):
        system, generator = draw_system(SEED, number, PAIRS, 0.0), torch.Generator().manual_seed(number)
        exact, many = system.context, torch.arange(PAIRS).repeat(REPEATS)
        level = 10 ** (-2 + float(torch.rand(1, generator=generator))) * exact.F.square().mean().sqrt()
        noise = level * torch.randn(PAIRS * REPEATS, generator=generator, dtype=torch.float64)
        truth, rho = torch.from_numpy(system.kernel)[None], exploration_measure(exact.U.mT, exact.y)
        for name, errors in (("own noise", noise), ("copied", noise[many])):
            found = model.posterior(Context(exact.U[:, many], exact.F[:, many] + errors, exact.y, exact.x))
            covered[name].append(float(coverage(found.mean, found.std, truth, rho, exact.y)))
    return {"systems": SYSTEMS, "noise": [0.01, 0.1]} | {name: float(np.mean(rows)) for name, rows in covered.items()}


def odd() -> dict[str, list[str]]:
    """What is said of data from which no kernel can be found, and of mistakes."""
    context, generator = draw_system(SEED, 1, 100, 0.01).context, torch.Generator().manual_seed(0)
    one_huge, huge_input = context.F.clone(), context.U.clone()
    one_huge[0, 17] *= 1e6
    huge_input[len(huge_input) // 3, 17] = 1e6
    nonsense = torch.randn(context.F.shape, generator=generator, dtype=torch.float64)
    cases = {
        "tokens of a constant u, radial": (0 * context.U, context.F),
        "tokens of a constant u, causal": (torch.ones_like(context.U), context.F),
        "f that no kernel explains": (context.U, nonsense),
        "f = 0": (context.U, 0 * context.F),
        "one huge value of f": (context.U, one_huge),
        "one huge value of u": (huge_input, context.F),
    }
    return {name: said(Context(U, F, context.y, context.x)) for name, (U, F) in cases.items()}


def said(context: Context) -> list[str]:
    try:
        found = discover(shipped(), context)
    except InputError as error:
        return [str(error)]
    numbers = (*found.kernel.values.flatten(), *found.std.flatten())
    return [*(["not finite"] if not np.isfinite(numbers).all() else []), *(d.seen for d in found.diagnostics)]


def peak() -> dict[str, dict[str, list[float]]]:
    """exp(-((r - 6) / 0.1)² / 2) from 300 exact pairs, three systems of each kind of inputs; in percent.

    spike: the largest value farther than 1 from the peak, of the peak's.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for number, kind in enumerate(("bumps", "noise", "fronts")):
        rows = found.setdefault(kind, {"error": [], "expected": [], "spike": []})
        for seed in range(3):
            rng = np.random.default_rng([SEED, number, seed])
            made = own_use.system(lambda r: np.exp(-(((r - 6) / 0.1) ** 2) / 2), own_use.inputs(kind, rng), rng)
            context = own_use.context_of(made, own_use.PAIRS, 0.0, rng)
            posterior = shipped().posterior(context)
            kernel, std = posterior.mean[0].numpy(), posterior.std[0].numpy()
            scores = own_use.score(context, made.kernel, kernel, std)
            far = (context.y.points[:, 0] - 6).abs().numpy() > 1
            values = (scores.error, scores.expected, float(np.abs(kernel[far]).max()))
            for row, value in zip(rows.values(), values, strict=True):
                row.append(100 * (value or 0.0))
    return found


def discovery() -> dict[str, float]:
    """880 radii, 302 pairs, with the check."""
    context, model = example(880, 302), shipped()
    start = time.process_time()
    discover(model, context)
    return {"seconds": time.process_time() - start}


def of_file(n: int, d: int) -> dict[str, float]:
    """By the command for a file, reading, start and report included."""
    r, k = 11 / n * np.arange(1, n + 1), np.linspace(0.3, 12, d)
    weights = np.exp(-2 * r) * np.sin(4 * r) * 11 / n
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.h5"
        with h5py.File(path, "w") as file:
            U = file.create_dataset("U", (n, d), "f8")
            F = np.zeros(d)
            for i in range(n):
                row = np.cos(k * r[i]) - 1
                U[i], F = row, F + weights[i] * row
            file["F"], file["r"] = F, r
        command = [sys.executable, "-m", "kernelmap", "discover", str(path), "--out", folder]
        child = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"discover {path.name} ended with {status}")
        size = path.stat().st_size / 1e9
    return {
        "file_gb": size,
        "seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory_gb": usage.ru_maxrss / 1e6,
    }


PARTS = {
    "units": units,
    "repeats": repeats,
    "odd": odd,
    "peak": peak,
    "discovery": discovery,
    "pairs": lambda: of_file(440, 20_000),
    "file": lambda: of_file(4400, 20_000),
}

if __name__ == "__main__":
    run_parts("kernel1d_bars.py", RESULTS, PARTS, seed=SEED)
