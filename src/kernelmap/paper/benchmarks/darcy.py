"""A training step of NAO on n x n points, where every function W(x, z) of two points is a matrix of n⁴ values.

Textbook: attention matrices and W as they are printed. Networks: W in blocks that are forgotten, attention in factors.
Some points: the same, at an eighth of the output points, as `--points` trains. Spectral: W pointwise and in cosines.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.progress import progress
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.benchmarks.attention import fastest_step
from kernelmap.paper.benchmarks.processes import in_process, peak_memory_gb, serve
from kernelmap.paper.benchmarks.textbook import textbook_response

D, DK, BATCH = 50, 40, 10
SQUARE_UP_TO = 41
"""Nodes in each direction for what is of order N²: at 61 x 61 a step of networks takes half a minute, and the
textbook's attention matrices alone several times the memory of a desk computer."""


def bench_darcy(repeats: int) -> dict[str, Any]:
    """Each case runs in a process of its own, on one thread whose time is counted; slow ones are run fewer times."""
    cases = [(n, form, repeats if n <= 21 or form == "spectral" else 1) for n in (21, 41, 61, 81) for form in FORMS]
    cases = [case for case in cases if case[1] == "spectral" or case[0] <= SQUARE_UP_TO]
    found = [in_process(__name__, 1, *case) for case in progress(cases, "Benchmark")]
    textbook = {case["n"]: case["seconds"] for case in found if case["form"] == "textbook"}
    for case in found:
        case["times_faster"] = textbook[case["n"]] / case["seconds"] if case["n"] in textbook else None
    return {"cases": found}


def measure(n: int, form: str, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    grid = grids.rectangle(n)
    context = Context(torch.randn(BATCH, n * n, D), torch.randn(BATCH, n * n, D), grid, grid)
    options = NAOOptions(dk=DK, mixer="spectral" if form == "spectral" else "network")
    model = NAO(ContextShape.of(context), options).float()
    seconds, *_ = fastest_step(FORMS[form](model, context), model, context, repeats, time.process_time)
    case = {"n": n, "N": n * n, "form": form, "d": D, "dk": DK, "batch": BATCH}
    return case | {"seconds": seconds, "peak_memory_gb": peak_memory_gb()}


def at_some_points(model: NAO, context: Context) -> Callable[[], Tensor]:
    """Responses at every eighth output point; zeros elsewhere, which cost nothing."""
    chosen = torch.arange(0, len(context.x.points), 8)
    x = context.x.sample(chosen)

    def respond() -> Tensor:
        return torch.zeros_like(context.F).index_copy(-2, chosen, model(context, x).apply(context.U))

    return respond


FORMS = {
    "textbook": lambda model, context: lambda: textbook_response(model, context),
    "networks": lambda model, context: lambda: model(context).apply(context.U),
    "some points": at_some_points,
    "spectral": lambda model, context: lambda: model(context).apply(context.U),
}

if __name__ == "__main__":
    serve(measure)
