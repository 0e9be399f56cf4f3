"""`discover`: from the pairs of an unseen system to its kernel with an error bar, and what to think of it."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, overload

import torch

from kernelmap.core.context import Context, check_magnitude
from kernelmap.core.errors import InputError
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.progress import part
from kernelmap.discovery.check import Residual, check_heldout, classical, largest_residuals
from kernelmap.discovery.diagnostics import diagnose
from kernelmap.discovery.discovery import Discovery
from kernelmap.discovery.identifiability import identifiability_of
from kernelmap.discovery.point import find_kernel, point_diagnostics
from kernelmap.discovery.spikes import check_spikes
from kernelmap.maps import KernelMap, ProbabilisticMap

REMEDY = "Check the units of u, f and the grid, and drop pairs whose values are far from all others."


@overload
def discover(
    model: KernelMap, context: Context, about: dict[str, Any] | None = ..., device: str | None = ...
) -> Discovery: ...
@overload
def discover(
    model: KernelMap, context: Sequence[Context], about: dict[str, Any] | None = ..., device: str | None = ...
) -> list[Discovery]: ...
def discover(
    model: KernelMap,
    context: Context | Sequence[Context],
    about: dict[str, Any] | None = None,
    device: str | None = None,
) -> Discovery | list[Discovery]:
    """The hidden kernel of a system, with error bar, check on pairs kept back, identifiability and diagnostics.

    The kernel is found from all pairs; the check finds another one from four in five of them. A map that is tied to d
    takes d of the pairs and is checked on the others. For several systems, or a batch with one leading dimension, the
    answer is a list; `discoveries` gives one after the other, for batches whose answers do not fit into memory.

    K(r) = exp(-r) from 40 pairs:

        >>> from kernelmap import grids, load_model
        >>> y = grids.radii(0.1, 40)
        >>> r = y.points[:, 0]
        >>> U = torch.cos(r[:, None] * torch.linspace(0.5, 8, 40, dtype=r.dtype)) - 1
        >>> F = (torch.exp(-r) * y.weights) @ U
        >>> found = discover(load_model("kernel1d")[0], Context(U, F[None], y, grids.point()))
        >>> print(f"K(1) = {float(found.kernel([1.0])[0]):.2f}, error of pairs kept back {found.check.error:.1%}")
        K(1) = 0.37, error of pairs kept back 0.0%
    """
    if isinstance(context, Context) and not context.batch_shape:
        return _one(model, context, about, device)
    return list(discoveries(model, context, about, device))


def discoveries(
    model: KernelMap,
    systems: Context | Iterable[Context],
    about: dict[str, Any] | None = None,
    device: str | None = None,
) -> Iterator[Discovery]:
    """`discover` of each of several systems, found when it is asked for: of a thousand, one is in memory at a time."""
    each = _systems(systems) if isinstance(systems, Context) else systems
    return (_one(model, context, about, device) for context in each)


def _one(model: KernelMap, context: Context, about: dict[str, Any] | None, device: str | None) -> Discovery:
    """Where double precision cannot solve the equations of the pairs, their values are too far from each other."""
    try:
        return _found(model, context, about, device)
    except torch.linalg.LinAlgError as error:  # pyright: ignore[reportPrivateImportUsage]
        raise InputError(
            f"the equations for these pairs have no solution in double precision ({str(error).partition(':')[0]}). "
            f"{REMEDY}"
        ) from error


def _systems(batch: Context) -> Iterator[Context]:
    if len(batch.batch_shape) != 1:
        raise InputError(
            f"several systems are a batch with one leading dimension, got a batch of shape {tuple(batch.batch_shape)}; "
            "flatten it."
        )
    return (batch[i] for i in range(batch.batch_shape[0]))


def _found(model: KernelMap, context: Context, about: dict[str, Any] | None, device: str | None) -> Discovery:
    check_magnitude(context)
    model.check_inputs(context)
    for name, values in (("responses f", context.F), ("tokens of u", context.U)):
        if not values.any():
            raise InputError(f"all {name} are zero: there is nothing to discover.")
    model = deepcopy(model.on(device)).double()
    context = context.to(torch.float64).to(model.u_std.device)
    if isinstance(model, ProbabilisticMap):
        model.check_context(context)
        with torch.no_grad():
            with part("Choosing the form of the kernel", 0.0, 0.25):
                model = model.select_model(context)
            with part("Finding the kernel", 0.25, 0.5):
                estimate = model.posterior(context)
        with part("Checking it on pairs kept back", 0.5, 0.8):
            check, open_questions = check_heldout(model, context), ()
    else:
        with part("Finding the kernel", 0.0, 0.8):
            estimate, check = find_kernel(model, context)
        context, open_questions = estimate.context, point_diagnostics(model, estimate, check)
    with torch.no_grad():
        std = estimate.std
        known = std.isfinite().all() if isinstance(model, ProbabilisticMap) else True
        if not (estimate.kernel.values.isfinite().all() and known):
            raise InputError(f"the kernel that fits these pairs is not a finite number everywhere. {REMEDY}")
    with part("Asking what the pairs can determine", 0.8, 0.9):
        identifiability = identifiability_of(context, estimate)
        spikes = check_spikes(model, context) if isinstance(model, ProbabilisticMap) else None
        residuals: tuple[Residual, ...] = ()
        if isinstance(estimate, KernelPosterior):
            with torch.no_grad():
                residuals = largest_residuals(estimate)
    with part("Finding the classical estimate", 0.9, 1.0):
        beside = classical(context, estimate.beside_kernel(context.d, context.places))
    return Discovery(
        kernel=estimate.kernel,
        std=std,
        posterior=estimate,
        context=context,
        check=check,
        classical=beside,
        identifiability=identifiability,
        diagnostics=open_questions + diagnose(context, model, estimate, identifiability, check, residuals, spikes),
        residuals=residuals,
        about=about or {},
    )
