"""Measuring what is suggested against measuring at random.

    python experiments/suggestions.py [narrowing | figure]

`narrowing`: twenty systems of twenty pairs with 1 % noise, and 180 places that could be measured. Three of them are
measured, those suggested or three at random (five draws), and the kernel is found again. `figure` draws one of them.
"""

import numpy as np
import torch
from laws import KNOWN, NONE, operator_of, shipped, system
from measured import RESULTS, ROOT
from parts import run_parts

from kernelmap.core import Context
from kernelmap.discovery.suggest import suggest

SEED, SYSTEMS, PAIRS, CANDIDATES, MEASURED, DRAWS = 0, 20, 20, 180, 3, 5


def systems() -> list[tuple[str, Context]]:
    """The kernels of `laws.py` in turn, on other inputs."""
    kernels = [(name, kind, shape) for name, (kind, _, shape, _) in KNOWN.items()]
    kernels += [(name, kind, shape) for name, (kind, shape) in NONE.items()]
    made = []
    for i in range(SYSTEMS):
        name, kind, shape = kernels[i % len(kernels)]
        made.append((name, system(operator_of(kind), shape, 200 + i, PAIRS + CANDIDATES)))
    return made


def band(posterior) -> float:
    weights = posterior.context.y.weights
    return 1.96 * float(posterior.std[0] @ weights / weights.sum())


def narrowing() -> dict:
    model, results = shipped(), {}
    for i, (name, everything) in enumerate(systems()):
        first = torch.arange(PAIRS)
        posterior = model.posterior(everything.select(first))
        candidates = everything.U[:, PAIRS:]
        found = suggest(posterior, candidates, MEASURED)
        rng = np.random.default_rng([SEED, i])
        draws = [rng.choice(candidates.shape[1], MEASURED, replace=False) for _ in range(DRAWS)]
        choices = [[s.candidate for s in found.suggestions], *draws]
        after = [
            band(model.posterior(everything.select(torch.cat([first, PAIRS + torch.as_tensor(np.array(chosen))]))))
            for chosen in choices
        ]
        results[f"{i}: {name}"] = {
            "before": band(posterior),
            "expected": found.suggestions[-1].band,
            "suggested": after[0],
            "random": after[1:],
        }
    return results


def figure() -> dict:
    from matplotlib.figure import Figure

    model = shipped()
    name, everything = systems()[0]
    first = torch.arange(PAIRS)
    posterior = model.posterior(everything.select(first))
    chosen = [s.candidate for s in suggest(posterior, everything.U[:, PAIRS:], MEASURED).suggestions]
    drawn = np.random.default_rng([SEED, 0]).choice(everything.d - PAIRS, MEASURED, replace=False).tolist()
    picture = Figure(figsize=(10, 3), layout="constrained")
    panels = picture.subplots(1, 3, sharex=True, sharey=True)
    y = everything.y.points[:, 0]
    shape = KNOWN[name][2]
    for axes, title, more in zip(
        panels, ("20 pairs", "and 3 at random", "and the 3 suggested"), ([], drawn, chosen), strict=True
    ):
        found = model.posterior(everything.select(torch.cat([first, PAIRS + torch.tensor(more, dtype=torch.long)])))
        low, high = found.interval()
        truth = torch.from_numpy(shape(y.numpy()))
        axes.fill_between(y, low[0] - truth, high[0] - truth, color="#bcd6ee", lw=0, label="95 % band")
        axes.plot(y, found.mean[0] - truth, color="#1b5e9e", label="discovered")
        axes.axhline(0, color="k", lw=0.8, label="truth")
        axes.set(title=title, xlabel="lag s")
    panels[0].set_ylabel("K(s) - truth")
    panels[0].legend(frameon=False)
    picture.savefig(ROOT / "docs" / "suggest.png", dpi=110)
    return {"system": name, "suggested": chosen, "random": drawn}


PARTS = {"narrowing": narrowing, "figure": figure}

if __name__ == "__main__":
    run_parts("suggestions.py", RESULTS / "suggestions", PARTS, seed=SEED)
