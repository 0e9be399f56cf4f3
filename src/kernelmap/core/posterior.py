"""The protocols of an estimate and of a posterior: what is known of a kernel after the pairs were seen."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log, nan, pi, prod
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.core.registry import Registry


@dataclass(frozen=True)
class HiddenField:
    """A field of the medium, such as its stiffness, from which a kernel follows, and further constants of its law."""

    name: str
    points: Float[Tensor, "n dim"]
    values: Float[Tensor, " n"]
    std: Float[Tensor, " n"]
    constants: dict[str, float]


class Prediction(NamedTuple):
    """Mean and standard deviation of the measured responses to new inputs, errors of measurement included."""

    mean: Float[Tensor, "*b M n"]
    std: Float[Tensor, "*b M n"]


class KernelEstimate(ABC):
    """What a map found of a kernel on the context's grids, whether or not it knows its error. *b is the batch.

    An estimate of one system can be kept: `state` holds what predicting takes, without the pairs, and `restored` makes
    the estimate anew. A class joins by `ESTIMATES.register(name)`; one without a state is not restored.
    """

    name: ClassVar[str] = ""
    functions_of_position: ClassVar[bool] = False
    """Whether the prior is of functions, the same on any mesh, and not of the nodes of one."""

    context: Context

    @property
    @abstractmethod
    def mean(self) -> Float[Tensor, "*b M N"]:
        """E[K(x, y)]."""

    @abstractmethod
    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        """The measured responses to new inputs; the standard deviation is infinite where nothing is known of it."""

    @property
    @abstractmethod
    def relative_residual(self) -> Float[Tensor, "*b"]:
        """Root mean square of what no kernel explains of f, relative to that of f: noise, and errors of the model."""

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        """The standard deviation of K(x, y); NaN where the map does not know it."""
        return torch.full_like(self.mean, nan)

    @property
    def informed_directions(self) -> int | None:
        """Directions of the kernel, of one row of it, whose signal exceeds the noise."""
        return None

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance: 1 is determined by the data, 0 by the prior; NaN if unknown."""
        return torch.full_like(self.mean, nan)

    @property
    def log_odds_of_nonlinearity(self) -> float | None:
        """That responses are not linear in u, against that they are; None where an estimate does not ask."""
        return None

    @property
    def reactions(self) -> int:
        """Output points that respond though u is zero there in all pairs, where the kernel is local."""
        return 0

    @property
    def hidden(self) -> HiddenField | None:
        """The field that the kernel of one system comes from, where there is one."""
        return None

    @property
    def kernel(self) -> Kernel:
        """The posterior mean, as a kernel."""
        return Kernel(self.mean, self.context.y, self.context.x)

    def log_prob(self, U: Float[Tensor, "*b N n"], F: Float[Tensor, "*b M n"]) -> Float[Tensor, "*b n"]:
        """log p(f | u, pairs) of measured responses to new inputs, summed over the output points.

        The density is that of the predictions, value by value. (A kernel itself has no density: it is a function.)
        """
        mean, std = self.predict(U)
        return (-0.5 * ((F - mean) / std).square() - std.log() - 0.5 * log(2 * pi)).sum(dim=-2)

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """E[f] for new inputs: the mean kernel applied to them, unless more is known."""
        return self.kernel.apply(U)

    def predict_at(self, U: Float[Tensor, "*b N n"], places: Places | None) -> Prediction:
        """`predict`, of inputs whose places or times are known, for what f has besides the kernel's response."""
        return self.predict(U)

    def beside_kernel(self, count: int, places: Places | None) -> Float[Tensor, "*b M n"]:
        """E[f] without the kernel's response, of so many pairs: an offset, a trend."""
        return self.mean.new_zeros(*self.mean.shape[:-1], count)

    @property
    def nuisance(self) -> dict[str, tuple[float, float]]:
        """What f has besides the kernel's response, such as an offset, each with its standard deviation."""
        return {}

    @property
    def outliers(self) -> dict[int, float]:
        """Pairs far from what the others say, by number, in standard deviations; they were given little weight."""
        return {}

    @property
    def error_time(self) -> float | None:
        """τ of errors that go on in time, exp(-|t - t'| / τ); 0 where they do not, None where it is not asked."""
        return None

    @property
    def through_kernel(self) -> float | None:
        """The part of the variance of f's errors that comes from noise on u; None where it is not asked."""
        return None

    def state(self) -> dict[str, Tensor] | None:
        """The numbers that predicting takes, by name; None where an estimate cannot be kept."""
        return None

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "KernelEstimate":
        """The estimate that has this state: its kernel came from d pairs, which are not known any more."""
        raise NotImplementedError


ESTIMATES: Registry[type[KernelEstimate]] = Registry("kernelmap.maps", "estimate")
"""Kinds of estimates by name: those that a saved discovery can be made of again."""


class KernelPosterior(KernelEstimate):
    """p(K | pairs).

    A posterior is calibrated: `std`, `interval` and `sample` are what a user is told, with nothing left to correct.
    """

    @property
    @abstractmethod
    def std(self) -> Float[Tensor, "*b M N"]:
        """The standard deviation of K(x, y)."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        """Kernels of one system, drawn from the posterior."""

    @property
    @abstractmethod
    def informed_directions(self) -> int:
        """Directions of the kernel, of one row of it, whose signal exceeds the noise."""

    @property
    @abstractmethod
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance: 1 is determined by the data, 0 by the prior alone."""

    def interval(self, level: float = 0.95) -> tuple[Float[Tensor, "*b M N"], Float[Tensor, "*b M N"]]:
        """The ends of mean ± z std, which hold K(x, y) with probability `level`, point by point."""
        if not 0 < level < 1:
            raise InputError(f"the level of an interval lies between 0 and 1, got {level}.")
        half = NormalDist().inv_cdf((1 + level) / 2) * self.std
        return self.mean - half, self.mean + half

    def cdf(self, values: Float[Tensor, "*b M N"]) -> Float[Tensor, "*b M N"]:
        """P(K(x, y) < value), point by point."""
        return torch.special.ndtr((values - self.mean) / self.std)


def responses(estimate: KernelEstimate, U: Tensor, places: Places | None = None) -> Prediction:
    """The responses of one system to new inputs (N, n) that a user gives."""
    y = estimate.context.y
    if U.ndim != 2 or U.shape[0] != y.size or not torch.isfinite(U).all():
        raise InputError(
            f"new inputs must be finite with shape ({y.size}, n), one row per grid point; got shape {tuple(U.shape)}."
        )
    with torch.no_grad():
        found = estimate.predict_at(U.to(estimate.kernel.right), places)
    told = found if estimate.std.isfinite().all() else found[:1]
    if not all(torch.isfinite(values).all() for values in told):
        raise InputError("the responses to these inputs are no numbers; give u in the unit that the kernel has.")
    return found


def check_one_system(context: Context) -> None:
    """Kernels are drawn for one system at a time."""
    if prod(context.batch_shape) != 1:
        raise InputError(f"kernels are drawn for one system, got a batch of shape {tuple(context.batch_shape)}.")
