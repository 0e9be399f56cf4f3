"""What a user should know about a discovery, in plain words: what was seen, its likely cause, and a remedy."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.identifiability import Identifiability
from kernelmap.maps import ContextShape, Domain, KernelPosterior

FEW_PAIRS = 30
LOUD = 0.03
FAR_OUT = 2.5
UNEXPLAINED = 0.5
MUCH_BETTER = 0.7
DARK_SHARE = 0.3
SHORT = 0.9


@dataclass(frozen=True)
class Caution:
    """Something the user should know: what was seen, its likely cause, and a remedy."""

    seen: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Check:
    """Pairs that were kept back, and how well they were predicted.

    mean, std: the predictions; error: their relative error; coverage: share inside the 95 % band; surprise: root mean
    square of error over standard deviation, 1 for an honest model; classical_error: of the classical estimate.
    """

    heldout: Context
    mean: Float[Tensor, "M n"]
    std: Float[Tensor, "M n"]
    error: float
    coverage: float
    surprise: float
    classical_error: float


def cautions_of(
    context: Context, trained: ContextShape, posterior: KernelPosterior, diagnosis: Identifiability, check: Check | None
) -> tuple[Caution, ...]:
    noise = float(posterior.noise.mean())
    found = [
        _few_pairs(context.d),
        _mistaken_for_noise(context.d, noise),
        _unexplained(noise),
        _dark(context, diagnosis.dark),
        _short(context, trained.y),
    ]
    if posterior.hidden is None:
        found.append(_other_mesh(context, trained))
    if check is not None:
        found += [_far_out(check), _classical(check, noise)]
    return tuple(caution for caution in found if caution is not None)


def _few_pairs(d: int) -> Caution | None:
    if d >= FEW_PAIRS:
        return None
    return Caution(
        f"Only {d} pairs.",
        "The kernel is then mostly what the prior expects.",
        f"Measure more: {FEW_PAIRS} pairs or more, at places or with inputs that differ.",
    )


def _mistaken_for_noise(d: int, noise: float) -> Caution | None:
    if noise < LOUD or d >= 50:
        return None
    return Caution(
        f"{noise:.0%} noise was found, in only {d} pairs.",
        "So few pairs cannot tell noise from a kernel of a kind the model has never seen, such as a fast oscillation.",
        "If your measurements are better than that, do not trust this kernel; measure more pairs.",
    )


def _unexplained(noise: float) -> Caution | None:
    if noise < UNEXPLAINED:
        return None
    return Caution(
        f"{noise:.0%} of f is explained by no kernel.",
        "The system may not be linear in its kernel, or u and f may not belong together.",
        "Check units, alignment and order of u and f; look at the pairs with the largest errors.",
    )


def _far_out(check: Check) -> Caution | None:
    if check.surprise < FAR_OUT:
        return None
    return Caution(
        f"Pairs kept back are missed by {check.surprise:.1f} standard deviations.",
        "The pairs are unlike those of the systems the model was trained on, so its error bar is too small.",
        "Compare with the classical estimate; train a model on systems like yours.",
    )


def _classical(check: Check, noise: float) -> Caution | None:
    if check.classical_error > MUCH_BETTER * check.error or check.error < noise:
        return None
    return Caution(
        f"The classical estimate predicts better: {check.classical_error:.1%} against {check.error:.1%}.",
        "The learned prior does not suit this system.",
        "Use the classical estimate, which is in the results too; train a model on systems like yours.",
    )


def _dark(context: Context, dark: Bool[Tensor, " N"]) -> Caution | None:
    weights = context.y.value_weights.to(torch.float64)
    share = float((weights * dark).sum() / weights.sum())
    if share < DARK_SHARE:
        return None
    return Caution(
        f"On {share:.0%} of its domain the pairs hardly see the kernel.",
        "The inputs u vary too little there (rho is almost zero); what is shown there is prior.",
        "Use inputs that vary on those lengths too.",
    )


def _short(context: Context, domain: Domain) -> Caution | None:
    first, last = float(context.y.points.min()), float(context.y.points.max())
    low, high = min(domain.low), max(domain.high)
    missing = (1 - SHORT) * (high - low)
    if first <= low + missing and last >= high - missing:
        return None
    return Caution(
        f"The grid runs from {first:g} to {last:g}, the model knows kernels from {low:g} to {high:g}.",
        "The kernel is taken to be zero outside the grid.",
        "If it is not, give tokens on the full range.",
    )


def _other_mesh(context: Context, trained: ContextShape) -> Caution | None:
    """On a line the features are functions of position; on a plane, bonds belong to steps of the mesh."""
    nodes = trained.N // trained.y.components
    if context.y.dim == 1 or len(context.y.points) == nodes:
        return None
    return Caution(
        f"The mesh has {len(context.y.points)} nodes, the model was trained on {nodes}.",
        "The strengths of bonds are taken to be the same, step by step, on any mesh; training has not shown it.",
        "Look at the error on pairs kept back; where it is large, train a model on this mesh.",
    )
