"""How good a map is on systems it has not seen: the paper's errors, and those on held-out pairs."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import coverage, exploration_measure, kernel_error, operator_error
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.progress import progress, tracked
from kernelmap.core.systems import SystemSet, strided_draws, systems_at_once
from kernelmap.maps import KernelMap, ProbabilisticMap


class Estimated(NamedTuple):
    """Kernels of a batch of contexts and, where there are such, their standard deviation and the posterior."""

    kernel: Kernel
    std: Tensor | None
    posterior: KernelPosterior | None = None

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        return self.kernel.apply(U) if self.posterior is None else self.posterior.respond(U)


class Focus(NamedTuple):
    """Where kernels are compared: at these rows x, with the measure rho over y."""

    rows: Bool[Tensor, " M"]
    rho: Float[Tensor, " N"]


def evaluate(
    model: KernelMap,
    systems: SystemSet,
    d: int,
    heldout: SystemSet | None = None,
    focus: Focus | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """The model's size, and its `errors` on contexts of d pairs."""
    model = model.on(device)
    model.check_pairs(d)
    found = errors(lambda context: estimate(model, context), systems, d, heldout, focus)
    return {"parameters": model.parameter_count, "systems": found}


@torch.no_grad()
def estimate(model: KernelMap, context: Context, band: bool = True) -> Estimated:
    """The map's kernels, on its device; without a band where none is wanted, which may take long to find."""
    context = context.to(model.u_std.device)
    if not isinstance(model, ProbabilisticMap):
        return Estimated(model(context), None)
    model.check_context(context)
    posterior = model.posterior(context.to(torch.float64))
    return Estimated(posterior.kernel, posterior.std if band else None, posterior)


def errors(
    estimate: Callable[[Context], Estimated],
    systems: SystemSet,
    d: int,
    heldout: SystemSet | None = None,
    focus: Focus | None = None,
) -> dict[str, dict[str, float | None]]:
    """Errors as fractions, system by system, over all strided contexts of d pairs.

    operator_error_context: on the context's own pairs, as the paper has it.
    operator_error_heldout: on pairs of the same systems kept in `heldout`, or else on all their other pairs; None when
        there are none.
    kernel_error: in L2(rho), averaged over contexts; rho is that of all pairs unless `focus` says otherwise. None
        without a true kernel.
    kernel_error_pooled: of the kernel averaged over contexts, as the paper's printed values have it.
    coverage95: fraction of the rho-mass on which the true kernel lies in the 95 % band; for maps that give one.
    """
    draws = strided_draws(systems.pairs, d).split(systems_at_once(systems.y, systems.x))
    results = {}
    for index, name in enumerate(progress(systems.names, "Evaluating")):
        results[name] = _of_system(estimate, systems, heldout, index, draws, focus)
        if heldout is None and d == systems.pairs:
            results[name]["operator_error_heldout"] = None
    return results


def _of_system(
    estimate: Callable[[Context], Estimated],
    systems: SystemSet,
    heldout: SystemSet | None,
    index: int,
    draws: Sequence[Int[Tensor, "_ d"]],
    focus: Focus | None,
) -> dict[str, float | None]:
    """Errors of one system; only the kernels of one part of its draws are in memory at a time."""
    found: dict[str, list[Tensor]] = defaultdict(list)
    pooled, truth = torch.zeros(()), None
    if systems.kernels is not None:
        focus = focus or _everywhere(systems, index)
        truth = systems.kernels[index][focus.rows]
    for part in tracked(draws):
        estimated = estimate(systems.batch(part, torch.tensor([index])))
        for name, values in _of_responses(estimated, systems, heldout, index, part).items():
            found[name].append(values)
        if truth is None or focus is None:
            continue
        kernels = estimated.kernel.values[:, 0][:, focus.rows]
        pooled = pooled.to(kernels) + kernels.sum(dim=0)
        truth, rho = truth.to(kernels), focus.rho.to(kernels)
        found["kernel_error"].append(kernel_error(kernels, truth, rho, systems.y))
        if estimated.std is not None:
            std = estimated.std[:, 0][:, focus.rows]
            found["coverage95"].append(coverage(kernels, std, truth, rho, systems.y))
    errors: dict[str, float | None] = {name: float(torch.cat(values).mean()) for name, values in found.items()}
    if truth is None or focus is None:
        return errors | {"kernel_error": None, "kernel_error_pooled": None}
    mean = pooled / sum(map(len, draws))
    errors["kernel_error_pooled"] = float(kernel_error(mean, truth, focus.rho.to(mean), systems.y))
    return errors


def _everywhere(systems: SystemSet, index: int) -> Focus:
    """All rows, with the measure of all of a system's pairs."""
    rho = exploration_measure(systems.u[0 if systems.shares_inputs else index], systems.y)
    return Focus(torch.ones(systems.x.size, dtype=torch.bool, device=rho.device), rho)


def _of_responses(
    found: Estimated, systems: SystemSet, heldout: SystemSet | None, index: int, draws: Int[Tensor, "n d"]
) -> dict[str, Float[Tensor, " n"]]:
    """Errors on the pairs of each draw, and on those kept back."""
    inside = torch.zeros(len(draws), systems.pairs, dtype=torch.bool, device=draws.device).scatter_(1, draws, True)
    predicted, measured = _responses(found, systems, index)
    if heldout is None:
        others = _of_pairs(predicted, measured, ~inside, systems.x)
    else:
        others = operator_error(*_responses(found, heldout, index), heldout.x)
    own = _of_pairs(predicted, measured, inside, systems.x)
    return {"operator_error_context": own, "operator_error_heldout": others}


def _responses(found: Estimated, systems: SystemSet, index: int) -> tuple[Tensor, Tensor]:
    """Predicted and measured responses to all inputs of a system."""
    u = systems.u[0 if systems.shares_inputs else index].to(found.kernel.right)
    predicted = found.respond(u.mT)[:, 0]
    return predicted, systems.f[index].mT.to(predicted).expand_as(predicted)


def _of_pairs(predicted: Tensor, measured: Tensor, chosen: Bool[Tensor, "n P"], x: Grid) -> Float[Tensor, " n"]:
    chosen = chosen.to(predicted.device)
    pairs = torch.stack([row.nonzero()[:, 0] for row in chosen])[:, None].expand(-1, predicted.shape[-2], -1)
    return operator_error(predicted.gather(-1, pairs), measured.gather(-1, pairs), x)
