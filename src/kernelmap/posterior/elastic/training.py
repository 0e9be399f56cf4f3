"""The five numbers of the prior of media, from pairs of training specimens.

Mean, deviation and length are the moments of the stiffnesses found. Then, on other loads of two of the specimens,
Poisson's ratio is the one with the smallest error, and the noise the smallest whose bands hold 95 % of the
displacements.
"""

import math
from typing import Any

import torch

from kernelmap.core.context import Context, responding
from kernelmap.core.errors import InputError
from kernelmap.core.metrics import operator_error
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.progress import progress
from kernelmap.core.systems import SystemSet
from kernelmap.posterior.elastic.posterior import MediumPosterior

SPECIMENS = 5
"""Training specimens that are looked at; the first is not among those whose other loads are predicted."""

TARGETS = 12
"""Other loads of a specimen that are predicted."""

LEAST_CORRELATION = 0.01
POISSON = (0.28, 0.3, 0.32)
NOISE = (0.001, 0.002, 0.003, 0.005, 0.01)


def fit_prior(model: Any, systems: SystemSet, d: int) -> None:
    """Set the prior of a material posterior map, from contexts of d pairs."""
    if len(systems.names) < SPECIMENS or systems.pairs < d + TARGETS:
        raise InputError(
            f"a material-posterior is fitted to {SPECIMENS} specimens with {d} + {TARGETS} loads each, got "
            f"{len(systems.names)} with {systems.pairs}; generate more, or take a smaller --d."
        )
    contexts = [_pairs(systems, index, slice(d)) for index in range(SPECIMENS)]
    _match(model, contexts, [model.posterior(context) for context in progress(contexts, "Specimens")])
    targets = [(contexts[index], _pairs(systems, index, slice(d, d + TARGETS))) for index in (1, 2)]
    errors = {value: _heldout(model, model.prior.poisson, value, targets)[0] for value in progress(POISSON, "Poisson")}
    model.prior.poisson.data.fill_(min(errors, key=lambda value: errors[value]))
    for value in progress(NOISE, "Noise"):
        if _heldout(model, model.prior.noise, value, targets)[1] >= 0.95:
            break


def _pairs(systems: SystemSet, index: int, pairs: slice) -> Context:
    return systems.batch(torch.arange(systems.pairs)[None, pairs], torch.tensor([index]))[0, 0].to(torch.float64)


def _match(model: Any, contexts: list[Context], found: list[MediumPosterior]) -> None:
    """Set mean, deviation and length to the moments of the stiffnesses found."""
    fields = []
    for context, posterior in zip(contexts, found, strict=True):
        medium = posterior.medium
        uniform = torch.linalg.inv(medium.stiffness(torch.ones(medium.count, dtype=torch.float64)))
        strong = (uniform @ medium.mass @ context.U).norm(dim=0) / context.F.norm(dim=0)
        fields.append((posterior.theta - strong.median().log()).reshape(medium.cells))
    theta = torch.stack(fields)
    away = theta - theta.mean()
    beside = torch.cat([(away[:, 1:] * away[:, :-1]).flatten(), (away[:, :, 1:] * away[:, :, :-1]).flatten()])
    # Neighbours that are not alike at all would have no length.
    correlation = max(float(beside.mean() / away.square().mean()), LEAST_CORRELATION)
    model.prior.mean.data.fill_(float(theta.mean()))
    model.prior.deviation.data.fill_(float(theta.std()))
    model.prior.length.data.fill_(-1 / max(theta.shape[1:]) / math.log(correlation))


def _heldout(
    model: Any, parameter: torch.Tensor, value: float, targets: list[tuple[Context, Context]]
) -> tuple[float, float]:
    """Error and coverage of predictions for other loads, with a parameter set to a value."""
    parameter.data.fill_(value)
    errors, coverages = [], []
    for context, new in targets:
        posterior: KernelPosterior = model.posterior(context)
        mean, std = posterior.predict(new.U)
        errors.append(operator_error(mean, new.F, new.x))
        coverages.append(((mean - new.F).abs() <= 1.96 * std)[responding(new.F)].double().mean())
    return float(torch.stack(errors).mean()), float(torch.stack(coverages).mean())
