"""Discovery by a map without an error bar: which pairs it is given, at which scale, and what can be said of it."""

from math import inf, nan

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import operator_error
from kernelmap.core.systems import strided_draws
from kernelmap.discovery.check import CLASSICAL_PAIRS, FEWEST, HELDOUT, Check
from kernelmap.discovery.diagnostics import UNEXPLAINED, Diagnostic
from kernelmap.estimators import dartr
from kernelmap.maps import KernelMap
from kernelmap.maps.conformal import FEWEST_PAIRS, ConformalEstimate, conformal, conformal_quantile, sizes


def find_kernel(model: KernelMap, context: Context) -> tuple[ConformalEstimate, Check | None]:
    """The kernel, with the band of its predictions, and the check on the pairs kept back.

    A map tied to d takes d pairs, in equal strides as in training, and all others are kept back. Another map keeps one
    in five back for the band and finds its kernel from all pairs: the band is then that of a kernel from fewer pairs.
    """
    chosen, others = split(model, context.d)
    used, heldout = context.select(chosen.to(context.F.device)), None
    predictor = at_training_scale(model, used)
    if len(others):
        heldout = context.select(others.to(context.F.device))
    if model.tied_to_pairs or heldout is None:
        kernel = predictor
    else:
        kernel, used = at_training_scale(model, context), context
    check = None if heldout is None else check_kernel(predictor, dartr(used.thinned(CLASSICAL_PAIRS)).kernel, heldout)
    return conformal(kernel, used, predictor, heldout), check


def split(model: KernelMap, pairs: int) -> tuple[Int[Tensor, " d"], Int[Tensor, " n"]]:
    """The pairs that the map is given, and those kept back."""
    if model.tied_to_pairs:
        d = model.shape.d
        if pairs < d:
            model.check_pairs(pairs)
        # As contexts are drawn in training: such a map knows its pairs by their number.
        chosen = strided_draws(pairs, d)[0]
    else:
        order = torch.randperm(pairs, generator=torch.Generator().manual_seed(0))
        chosen = order[round(HELDOUT * pairs) if pairs >= FEWEST else 0 :].sort().values
    kept = torch.ones(pairs, dtype=torch.bool, device=chosen.device).index_fill(0, chosen, False)
    return chosen, kept.nonzero()[:, 0]


def at_training_scale(model: KernelMap, context: Context) -> Kernel:
    """The map's kernel of c u and c f, c = rms of u in training / rms of u. K is the same for all c, the map is not."""
    trained = (model.u_mean.square() + model.u_std.square()).sqrt()
    factor = trained / context.U.square().mean().sqrt()
    with torch.no_grad():
        return model(Context.unchecked(factor * context.U, factor * context.F, context.y, context.x))


def check_kernel(kernel: Kernel, classical: Kernel, heldout: Context) -> Check:
    """How well pairs kept back are predicted; each half of them is judged by the band that the other half gives."""
    mean = kernel.apply(heldout.U)
    errors = (mean - heldout.F).abs()
    std = _cross_calibrated(errors, heldout) / 1.96
    known = bool(torch.isfinite(std).all())
    residual = errors / std
    return Check(
        heldout,
        mean,
        std,
        error=float(operator_error(mean, heldout.F, heldout.x)),
        coverage=float((residual <= 1.96).double().mean()) if known else nan,
        rms_standardised_residual=float(residual.square().mean().sqrt()) if known else nan,
        classical_error=float(operator_error(classical.apply(heldout.U), heldout.F, heldout.x)),
    )


def _cross_calibrated(errors: Float[Tensor, "M n"], heldout: Context) -> Float[Tensor, "M n"]:
    """Half the width of the band of every pair."""
    n = heldout.d
    halves = [torch.arange(start, n, 2, device=errors.device) for start in (0, 1)]
    band = torch.full_like(errors, inf)
    a = sizes(heldout.U, heldout.U.square().mean(), heldout.y)
    for own, other in (halves, halves[::-1]):
        if len(other):
            band[:, own] = conformal_quantile(errors[:, other] / a[other]) * a[own]
    return band


def point_diagnostics(model: KernelMap, found: ConformalEstimate, check: Check | None) -> tuple[Diagnostic, ...]:
    """What a map without an error bar leaves open, and where it fails altogether."""
    return _missing_band(model, check) + _unexplained(model, float(found.relative_residual))


def _unexplained(model: KernelMap, misfit: float) -> tuple[Diagnostic, ...]:
    if misfit < UNEXPLAINED:
        return ()
    cause = "The system is unlike those of training, or not linear in its kernel."
    if model.tied_to_pairs:
        cause = "The map knows its pairs by their number: it expects the inputs, or places, of training in their order."
    return (
        Diagnostic(
            f"{misfit:.0%} of f is not explained by this kernel.",
            cause,
            "Do not use it: take the classical estimate, or a map that takes any pairs in any order, such as "
            f"{_probabilistic(model)}.",
        ),
    )


def _missing_band(model: KernelMap, check: Check | None) -> tuple[Diagnostic, ...]:
    if check is not None and check.heldout.d >= FEWEST_PAIRS:
        band = f"predictions have a split-conformal 95 % band, from {check.heldout.d} pairs kept back."
        return (_no_kernel_band(model, band),)
    spare = 0 if check is None else check.heldout.d
    needed = model.shape.d + FEWEST_PAIRS if model.tied_to_pairs else round(FEWEST_PAIRS / HELDOUT)
    return (
        _no_kernel_band(model, "predictions have none either."),
        Diagnostic(
            f"{spare or 'No'} pairs could be kept back, so that predictions have no band.",
            f"The map takes {model.shape.d} pairs." if model.tied_to_pairs else "The kernel needs the pairs.",
            f"Give {needed} pairs or more: a 95 % band takes {FEWEST_PAIRS} that the kernel has not seen.",
        ),
    )


def _no_kernel_band(model: KernelMap, predictions: str) -> Diagnostic:
    return Diagnostic(
        "The kernel has no error bar.",
        f"The map {model.name} gives a kernel alone; {predictions}",
        f"For a kernel with a band use a probabilistic map, such as {_probabilistic(model)}.",
    )


def _probabilistic(model: KernelMap) -> str:
    """What gives kernels of this form with a band: K(r) by a shipped model, K(x, y) by a map to train."""
    return "the model radial" if model.shape.x.is_point else "integral-posterior, trained on the same systems"
