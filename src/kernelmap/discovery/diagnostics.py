"""What a user should know about a discovery, in plain words: what was seen, its likely cause, and a remedy."""

import math
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.posterior import KernelEstimate, KernelPosterior
from kernelmap.discovery.check import Check, Residual
from kernelmap.discovery.identifiability import Identifiability
from kernelmap.discovery.noisy_inputs import unknown_noise
from kernelmap.discovery.spikes import Spikes
from kernelmap.maps import KernelMap

FEW_PAIRS = 20
UNEXPLAINED = 0.5
EXPECTED_ERROR = 0.25
RESIDUAL_THRESHOLD = 2.0
OUTLIER = 10.0
"""Standard deviations that the other pairs leave: errors of the quadrature alone reach eight on exact data."""
MOST_NAMED = 10
MISSED = 3.0
"""Standard deviations: an error of the kernel alone misses all responses to spikes together, by 3 in 0.3 % of cases."""
MUCH_BETTER = 0.7
UNOBSERVED_FRACTION = 0.3
SHORT = 0.9
PROPORTIONAL = 0.98
"""Correlation above which noise of a few percent hides what two inputs do each."""

MOSTLY = 0.5
"""Part of the variance of f's errors from noise on u, from which on it is named."""

DECISIVE = 10.0
"""Log odds, 20000 to 1."""

CANCELLING = 1000.0
"""Terms |K(r)| w |U| over the response, root mean square: chosen beforehand, above what differences of u need."""


@dataclass(frozen=True)
class Diagnostic:
    """Something the user should know: what was seen, its likely cause, and a remedy."""

    seen: str
    cause: str
    remedy: str


def diagnose(
    context: Context,
    model: KernelMap,
    posterior: KernelEstimate,
    identifiability: Identifiability,
    check: Check | None,
    residuals: tuple[Residual, ...],
    spikes: Spikes | None = None,
) -> tuple[Diagnostic, ...]:
    found = [
        _spikes(context, spikes),
        _unobserved(context, identifiability.unobserved),
    ]
    if isinstance(posterior, KernelPosterior):
        known = [
            _few_pairs(context.d),
            _nonlinear(posterior.log_odds_of_nonlinearity),
            _reactions(posterior.reactions),
            _unexplained(float(posterior.relative_residual.mean())),
            _uncertain(identifiability.expected_error),
            _cancelling(context, posterior),
            _outliers(context, posterior.outliers) or _outlier(context, residuals),
            _inputs_together(context),
            _noise_on_inputs(context, posterior, check),
        ]
        found = [*known, *found]
    if not model.any_range:
        found.append(_short(context, model.shape.y))
    if posterior.hidden is None and not posterior.functions_of_position:
        found.append(_other_mesh(context, model.shape))
    if check is not None:
        found += [
            _far_out(check),
            _classical(check, context.operator == "fields" and not posterior.functions_of_position),
        ]
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def _few_pairs(d: int) -> Diagnostic | None:
    if d >= FEW_PAIRS:
        return None
    return Diagnostic(
        f"Only {d} pairs.",
        "The kernel is then mostly what the prior expects.",
        f"Measure more: {FEW_PAIRS} pairs or more, at places or with inputs that differ.",
    )


def _nonlinear(log_odds: float | None) -> Diagnostic | None:
    if log_odds is None or log_odds < DECISIVE:
        return None
    return Diagnostic(
        "The responses are not linear in u.",
        f"Terms of second and third order in u explain them better, with log odds of {log_odds:.0f}.",
        "Do not use the kernel for prediction; measure with smaller inputs, around one state, where a law is linear.",
    )


def _reactions(count: int) -> Diagnostic | None:
    if not count:
        return None
    return Diagnostic(
        f"f is not zero at {count} points where u is zero in all pairs.",
        "Such points are constrained, as on a boundary; a local kernel says little of f there, and errors are large.",
        "Write zeros into f there, if its values at these points are not what you want to know.",
    )


def _unexplained(noise: float) -> Diagnostic | None:
    if noise < UNEXPLAINED:
        return None
    return Diagnostic(
        f"{noise:.0%} of f is explained by no kernel.",
        "The system may not be linear in its kernel, or u and f may not belong together.",
        "Check units, alignment and order of u and f; look at the pairs with the largest errors.",
    )


def _uncertain(expected: float) -> Diagnostic | None:
    if expected < EXPECTED_ERROR:
        return None
    return Diagnostic(
        f"The kernel is known to about {expected:.0%} only." if expected < 1 else "The kernel is not known.",
        "Too few pairs, too much noise, or inputs too much alike to tell kernels apart.",
        "Measure more pairs, with inputs that differ: other lengths, other places.",
    )


def _cancelling(context: Context, posterior: KernelPosterior) -> Diagnostic | None:
    """Of kernels of one coordinate: a stencil's terms do cancel."""
    response = context.F - posterior.beside_kernel(context.d, context.places)
    if not context.x.is_point or not response.any():
        return None
    terms = (context.y.value_weights * posterior.mean.abs()) @ context.U.abs()
    times = float(torch.linalg.vector_norm(terms) / torch.linalg.vector_norm(response))
    if times < CANCELLING:
        return None
    return Diagnostic(
        f"f is the small difference of terms {times:.0f} times as large.",
        "Such a kernel fits these pairs and means nothing: the true one may reach further than the radius, or u and f "
        "may have another operator.",
        "Give a larger radius, or none; see which operators there are in `Your own data`.",
    )


def _outliers(context: Context, outliers: dict[int, float]) -> Diagnostic | None:
    if not outliers:
        return None
    shown = [f"{context.name(pair)}: {size:+.0f}" for pair, size in list(outliers.items())[:MOST_NAMED]]
    more = f" and {len(outliers) - MOST_NAMED} more" if len(outliers) > MOST_NAMED else ""
    return Diagnostic(
        f"{len(outliers)} of {context.d} responses are outliers, in standard deviations {'; '.join(shown)}{more}.",
        "Mistakes of measurement or of writing, or inputs unlike all others. They were given little weight.",
        "Look at them. --keep-outliers gives them the weight of all others.",
    )


def _among_others(r: float, n: int) -> float:
    """A residual in units of what the other n - 1 leave: r √((n - 1) / (n - r²)), as an outlier adds to the noise."""
    return r * math.sqrt((n - 1) / max(n - r**2, 1e-3))


def _outlier(context: Context, residuals: tuple[Residual, ...]) -> Diagnostic | None:
    """By the largest residual of a pair among all values, or by that of all its values among the pairs."""
    n, d = context.F.numel(), context.d
    sizes = {r.pair: max(_among_others(abs(r.size), n), _among_others(r.rms, d)) for r in residuals}
    far = [pair for pair, size in sizes.items() if size > OUTLIER]
    if not far:
        return None
    names = ", ".join(context.name(pair) for pair in far)
    return Diagnostic(
        f"The response of {names} is {sizes[far[0]]:.0f} standard deviations from what the others say.",
        "A mistake of measurement or of writing, or an input unlike all others.",
        "Look at it; leave it out if it is a mistake.",
    )


def _spikes(context: Context, spikes: Spikes | None) -> Diagnostic | None:
    if spikes is None or spikes.rms_standardised_residual < MISSED:
        return None
    named = ", ".join(context.name(pair) for pair in spikes.pairs[:MOST_NAMED])
    more = f" and {len(spikes.pairs) - MOST_NAMED} more" if len(spikes.pairs) > MOST_NAMED else ""
    return Diagnostic(
        f"Single values of u are far above all others, and f does not follow: {named}{more}.",
        "Mistakes in u; the kernel is then made small wherever these values are.",
        f"Look at u there; without these pairs the kernel is known to about {spikes.expected_error:.0%}.",
    )


def _inputs_together(context: Context) -> Diagnostic | None:
    """Tokens of two inputs, each without its mean, that are the same but for a factor."""
    inputs = [part - part.mean() for part in context.U.split(len(context.y.points))] if context.y.components > 1 else []
    for i, j in combinations(range(len(inputs)), 2):
        norm = torch.linalg.vector_norm(inputs[i]) * torch.linalg.vector_norm(inputs[j])
        together = float((inputs[i] * inputs[j]).sum().abs() / norm) if norm > 0 else 0.0
        if together > PROPORTIONAL:
            return Diagnostic(
                f"The inputs {i + 1} and {j + 1} go together: their correlation is {together:.4f}.",
                "The pairs tell the sum of their responses, and hardly what belongs to which.",
                "Give one of them, or measure while they differ.",
            )
    return None


def _noise_on_inputs(context: Context, posterior: KernelPosterior, check: Check | None) -> Diagnostic | None:
    """Noise that nobody named, and noise that was named and is most of f's errors."""
    if (fraction := posterior.through_kernel) is not None and fraction >= MOSTLY:
        return Diagnostic(
            f"{fraction:.0%} of the variance of f's errors comes from noise on u.",
            "What smoothing leaves of it is taken as errors of f; where u has fine structure the kernel may be biased.",
            "Measure u again and average, or with smaller noise; more pairs do not help as much.",
        )
    if (noise := unknown_noise(context, posterior, check)) is None:
        return None
    name = f"Input {noise.number + 1}" if context.y.components > 1 else "u"
    return Diagnostic(
        f"{name} seems to have noise of about {noise.std:.3g}: the kernel may be biased.",
        f"Its effect on f is {noise.effect:.1f} times f's own errors, and the kernel was found as if u were exact.",
        f'Give its level as u_std, such as {noise.std:.3g}, or u_std = "estimate".',
    )


def _far_out(check: Check) -> Diagnostic | None:
    if not check.rms_standardised_residual >= RESIDUAL_THRESHOLD:
        return None
    return Diagnostic(
        f"Pairs kept back are missed by {check.rms_standardised_residual:.1f} standard deviations.",
        "Noise does not explain it: some inputs may be unlike the others, or f may not be linear in K.",
        "Look at the pairs with the largest residuals; compare with the classical estimate.",
    )


def _classical(check: Check, local: bool) -> Diagnostic | None:
    """Only where the model's own prediction is off by more than it says: else the two differ by chance."""
    if not check.classical_error <= MUCH_BETTER * check.error or check.rms_standardised_residual < 1.5:
        return None
    return Diagnostic(
        f"The classical estimate predicts better: {check.classical_error:.1%} against {check.error:.1%}.",
        "The learned prior does not suit this system.",
        "Use the classical estimate, which is in the results too; train a model on systems like yours."
        + (" Try --model integral, which assumes no local law, and takes noise on the outputs." if local else ""),
    )


def _unobserved(context: Context, unobserved: Bool[Tensor, " N"]) -> Diagnostic | None:
    weights = context.y.value_weights.to(torch.float64)
    fraction = float((weights * unobserved).sum() / weights.sum())
    if fraction < UNOBSERVED_FRACTION:
        return None
    return Diagnostic(
        f"On {fraction:.0%} of its domain the pairs hardly see the kernel.",
        "The inputs u vary too little there (rho is almost zero); what is shown there is prior.",
        "Use inputs that vary on those lengths too.",
    )


def _short(context: Context, domain: Domain) -> Diagnostic | None:
    first, last = float(context.y.points.min()), float(context.y.points.max())
    low, high = min(domain.low), max(domain.high)
    missing = (1 - SHORT) * (high - low)
    if first <= low + missing and last >= high - missing:
        return None
    return Diagnostic(
        f"The grid runs from {first:g} to {last:g}, the model knows kernels from {low:g} to {high:g}.",
        "The kernel is taken to be zero outside the grid.",
        "If it is not, give tokens on the full range.",
    )


def _other_mesh(context: Context, trained: ContextShape) -> Diagnostic | None:
    """On a line the features are functions of position; on a plane, bonds belong to steps of the mesh."""
    nodes = trained.N // trained.y.components
    if context.y.dim == 1 or len(context.y.points) == nodes:
        return None
    return Diagnostic(
        f"The mesh has {len(context.y.points)} nodes, the model was trained on {nodes}.",
        "The strengths of bonds are taken to be the same, step by step, on any mesh; training has not shown it.",
        "Look at the error on pairs kept back; where it is large, train a model on this mesh.",
    )
