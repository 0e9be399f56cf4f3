"""A training step of NAO: implicit evaluation against the textbook formulas, and its growth with N."""

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.metrics import relative_difference
from kernelmap.core.progress import progress
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.benchmarks.processes import in_process, peak_memory_gb, serve
from kernelmap.paper.benchmarks.textbook import textbook_response

D, DK = 302, 20


def bench_attention(repeats: int) -> dict[str, Any]:
    """Each case runs in a process of its own, so that peak memory and threads are its own."""
    everything = os.cpu_count() or 1
    cases = [(threads, 880, 10, dtype, True) for threads in sorted({1, everything}) for dtype in ("float64", "float32")]
    cases += [(1, n, 10, "float64", False) for n in (1760, 3520)] + [(1, 100_000, 1, "float64", False)]
    return {"cases": [in_process(__name__, *case, repeats) for case in progress(cases, "Benchmark")]}


def measure(n: int, batch: int, dtype: str, against_textbook: bool, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    grid = grids.radii(11 / n, n)
    context = Context(torch.randn(batch, n, D, dtype=kind), torch.randn(batch, 1, D, dtype=kind), grid, grids.point())
    model = NAO(ContextShape.of(context), NAOOptions(dk=DK, mixer="network")).to(kind)
    ours, f, gradients = fastest_step(lambda: model(context).apply(context.U), model, context, repeats)
    case = {"n": n, "d": D, "dk": DK, "batch": batch, "dtype": dtype}
    theirs = ratio = difference = None
    memory = peak_memory_gb()
    if against_textbook:
        theirs, g, textbook = fastest_step(lambda: textbook_response(model, context), model, context, repeats)
        ratio = theirs / ours
        difference = max(relative_difference(a, b) for a, b in [(f, g), *zip(gradients, textbook, strict=True)])
    times = {"textbook_s": theirs, "kernelmap_s": ours, "ratio": ratio}
    return case | times | {"max_relative_difference": difference, "peak_memory_gb": memory}


def fastest_step(
    respond: Callable[[], Tensor],
    model: NAO,
    context: Context,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Tensor, list[Tensor]]:
    """The shortest time of a forward and backward pass, the response and the gradients."""
    shortest = float("inf")
    for _ in range(repeats):
        model.zero_grad()
        start = clock()
        response = respond()
        torch.linalg.vector_norm(response - context.F).backward()
        shortest = min(shortest, clock() - start)
    return shortest, response.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]  # pyright: ignore


if __name__ == "__main__":
    serve(measure)
