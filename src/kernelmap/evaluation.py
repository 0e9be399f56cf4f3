"""How good a map is on systems it has not seen: the paper's errors, and the honest ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps import KernelMap, PosteriorMap
from kernelmap.metrics import coverage, exploration_measure, kernel_error, operator_error
from kernelmap.progress import progress
from kernelmap.systems import SystemSet, strided_draws

CHUNK = 16


class Estimated(NamedTuple):
    """Kernels of a batch of contexts and, where there is one, their standard deviation."""

    kernel: Kernel
    std: Tensor | None


def evaluate(model: KernelMap, systems: SystemSet, d: int) -> dict[str, Any]:
    """The model's size, and its `errors` on contexts of d pairs."""
    model.check_pairs(d)
    return {"parameters": model.parameter_count, "systems": errors(lambda c: estimate(model, c), systems, d)}


@torch.no_grad()
def estimate(model: KernelMap, context: Context) -> Estimated:
    if not isinstance(model, PosteriorMap):
        return Estimated(model(context), None)
    posterior = model.posterior(context.to(torch.float64))
    return Estimated(Kernel(posterior.kernel, context.y, context.x), model.standard_deviation(posterior))


def errors(estimate: Callable[[Context], Estimated], systems: SystemSet, d: int) -> dict[str, dict[str, float | None]]:
    """Errors as fractions, system by system, over all strided contexts of d pairs.

    operator_error_context: on the context's own pairs, as the paper has it.
    operator_error_heldout: on all other pairs of the system; None when there are none.
    kernel_error: in L2(rho), averaged over contexts.
    kernel_error_pooled: of the kernel averaged over contexts, as the paper's printed values have it.
    coverage95: share of the rho-mass on which the true kernel lies in the 95 % band; for maps that give one.
    """
    if systems.kernels is None:
        raise InputError("these systems come without their true kernels; there is nothing to compare with.")
    draws = strided_draws(systems.pairs, d)
    results = {}
    for index, name in enumerate(progress(systems.names, "Evaluating")):
        parts = [_of_draws(estimate, systems, index, chunk) for chunk in draws.split(CHUNK)]
        context, heldout, kernels, *bands = (torch.cat(part) for part in zip(*parts, strict=True))
        truth = systems.kernels[index].to(kernels)
        rho = exploration_measure(systems.u[0 if systems.shares_inputs else index], systems.y).to(kernels)
        results[name] = {
            "operator_error_context": float(context.mean()),
            "operator_error_heldout": float(heldout.mean()) if d < systems.pairs else None,
            "kernel_error": float(kernel_error(kernels, truth, rho, systems.y).mean()),
            "kernel_error_pooled": float(kernel_error(kernels.mean(dim=0), truth, rho, systems.y)),
        }
        if bands:
            results[name]["coverage95"] = float(coverage(kernels, bands[0], truth, rho, systems.y).mean())
    return results


def _of_draws(
    estimate: Callable[[Context], Estimated], systems: SystemSet, index: int, draws: Tensor
) -> tuple[Tensor, ...]:
    """Context error, held-out error, kernel and, where there is one, standard deviation, for several draws."""
    kernels, std = estimate(systems.batch(draws, torch.tensor([index])))
    u = systems.u[0 if systems.shares_inputs else index].to(kernels.right)
    predicted = kernels.apply(u.mT)[:, 0]
    measured = systems.f[index].mT.to(predicted).expand_as(predicted)
    inside = torch.zeros(len(draws), systems.pairs, dtype=torch.bool).scatter_(1, draws, True)
    found = []
    for chosen in (inside, ~inside):
        pairs = torch.stack([row.nonzero()[:, 0] for row in chosen])[:, None].expand(-1, predicted.shape[-2], -1)
        found.append(operator_error(predicted.gather(-1, pairs), measured.gather(-1, pairs), systems.x))
    return *found, kernels.values[:, 0], *([] if std is None else [std[:, 0]])
