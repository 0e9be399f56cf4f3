"""`closed_form`: which simple law the pairs speak for, or that none of those listed fits."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.posterior import KernelEstimate
from kernelmap.discovery.laws.families import FAMILIES
from kernelmap.discovery.laws.fit import Fitted, fit
from kernelmap.discovery.laws.pairs import Pairs
from kernelmap.posterior import Kernel1dPosterior

STEP = 1e-4
"""Of log θ, in the derivative of a unit, which is linear in θ or constant."""

MOST_TOKENS = 5_000_000
"""Above which laws are not fitted: they are evaluated at four times as many points."""


class Value(NamedTuple):
    """A parameter and its standard deviation, in the user's units."""

    value: float
    error: float


@dataclass(frozen=True)
class Law:
    """A law with its parameters.

    formula: of t, the radius or the size of the lag.
    probability: beside all other laws and the kernel without a law.
    noise: what it leaves of f, relative to the size of f.
    values: the law on the kernel's grid.
    """

    family: str
    formula: str
    parameters: dict[str, Value]
    log_evidence: float
    probability: float
    noise: float
    values: Float[Tensor, " N"]

    def __str__(self) -> str:
        listed = ", ".join(f"{name} = {v.value:.3g} ± {v.error:.1g}" for name, v in self.parameters.items())
        return f"{self.formula}: {listed}"


@dataclass(frozen=True)
class ClosedForm:
    """Laws, likeliest first, and the log evidence of the kernel without a law, on the same scale."""

    laws: tuple[Law, ...]
    log_evidence: float

    @property
    def best(self) -> Law | None:
        """None where none fits: the kernel without a law is likelier than all laws together."""
        total = sum(law.probability for law in self.laws)
        return self.laws[0] if self.laws and total > 0.5 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "fits": self.best is not None,
            "laws": [
                {
                    "family": law.family,
                    "formula": law.formula,
                    "parameters": {name: v._asdict() for name, v in law.parameters.items()},
                    "log_evidence": law.log_evidence,
                    "probability": law.probability,
                    "noise": law.noise,
                }
                for law in self.laws
            ],
        }


def has_laws(context: Context, posterior: KernelEstimate) -> bool:
    """Laws are those of one kernel of one coordinate, and need the evidence of the posterior."""
    few = len(context.y.points) >= 4 and min(context.d, context.y.size) * context.y.size <= MOST_TOKENS
    one = few and not context.batch_shape and context.x.size == 1 and context.y.dim == 1 and context.y.components == 1
    return one and isinstance(posterior, Kernel1dPosterior) and posterior.whitened is not None


def closed_form(context: Context, posterior: KernelEstimate) -> ClosedForm:
    """Every family is fitted to the pairs; laws and the kernel without one have equal odds before."""
    if not has_laws(context, posterior) or not isinstance(posterior, Kernel1dPosterior):
        raise InputError("laws are named for a kernel of one coordinate with one output, found by the model kernel1d.")
    whitened = posterior.whitened
    assert whitened is not None
    pairs = Pairs.of(whitened)
    fitted = [found for family in FAMILIES if (found := fit(family, pairs)) is not None]
    fitted.sort(key=lambda found: -found.log_evidence)
    own = posterior.log_evidence
    logs = np.array([own, *(found.log_evidence - math.log(len(fitted)) for found in fitted)])
    weights = np.exp(logs - logs.max())
    probabilities = weights / weights.sum()
    return ClosedForm(tuple(_law(f, pairs, float(p)) for f, p in zip(fitted, probabilities[1:], strict=True)), own)


def _law(found: Fitted, pairs: Pairs, probability: float) -> Law:
    """Back to the user's units."""
    found = _ordered(found)
    family, L = found.family, len(found.amplitudes)
    unit = {"length": pairs.length, "per length": 1 / pairs.length, "none": 1.0}
    stds = np.sqrt(np.diag(found.covariance))
    parameters = {}
    for parameter, theta, std in zip(family.parameters, found.theta, stds[L:], strict=True):
        value = theta * unit[parameter.unit]
        parameters[parameter.name] = Value(float(value), float(value * std))
    scales, jacobian = _amplitude_units(found, pairs)
    errors = np.sqrt(np.diag(jacobian @ found.covariance @ jacobian.T))
    for name, value, error in zip(family.amplitudes, found.amplitudes * scales, errors, strict=True):
        parameters[name] = Value(float(value), float(error))
    values = found.amplitudes @ family.shapes(pairs.grid, pairs.h, found.theta)
    return Law(
        family.name,
        family.formula,
        parameters,
        found.log_evidence,
        probability,
        found.noise,
        torch.from_numpy(values * pairs.kernel),
    )


def _ordered(found: Fitted) -> Fitted:
    """Of a sum of two laws of one family, the one with the smaller parameter first."""
    first, *others = found.family.terms
    if [first] != others or found.theta[0] <= found.theta[1]:
        return found
    swap = [1, 0, 3, 2]
    covariance = found.covariance[np.ix_(swap, swap)]
    return found._replace(amplitudes=found.amplitudes[::-1], theta=found.theta[::-1], covariance=covariance)


def _amplitude_units(found: Fitted, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """A in the user's units is A c with c = unit of K times length^q(θ); and its derivatives by A and log θ."""
    powers, L = found.family.powers(found.theta), len(found.amplitudes)
    scales = pairs.kernel * pairs.length**powers
    slopes = []
    for number in range(len(found.theta)):
        moved = found.theta.copy()
        moved[number] *= math.exp(STEP)
        slopes.append((found.family.powers(moved) - powers) / STEP * math.log(pairs.length))
    by_theta = (found.amplitudes * scales)[:, None] * np.array(slopes).T.reshape(L, -1)
    return scales, np.concatenate([np.diag(scales), by_theta], axis=1)
