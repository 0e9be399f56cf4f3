"""What all maps share that know their own error."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.kernel import Kernel
from kernelmap.maps.base import KernelMap


@dataclass(frozen=True)
class HiddenField:
    """A field of the medium, such as its stiffness, from which a kernel follows, and further constants of its law."""

    name: str
    points: Float[Tensor, "n dim"]
    values: Float[Tensor, " n"]
    std: Float[Tensor, " n"]
    constants: dict[str, float]


class KernelPosterior(ABC):
    """What is known of a kernel after the pairs were seen."""

    context: Context

    @property
    @abstractmethod
    def kernel(self) -> Float[Tensor, "*b M N"]:
        """Posterior mean."""

    @property
    @abstractmethod
    def noise(self) -> Tensor:
        """The relative noise on f that was found."""

    @property
    @abstractmethod
    def determined(self) -> int:
        """Directions of the kernel, of one row of it, that stand out of the noise."""

    @property
    @abstractmethod
    def data_share(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance: 1 is known from data, 0 is prior alone."""

    @property
    def hidden(self) -> HiddenField | None:
        """The field that the kernel of one system comes from, where there is one."""
        return None

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """Responses to new inputs: the kernel applied to them, unless more is known."""
        return Kernel(self.kernel, self.context.y, self.context.x).apply(U)

    @abstractmethod
    def predict(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of the measured responses to new inputs."""


class BandedMap(KernelMap):
    """A map that gives a posterior, and with it an error bar. It takes any number of pairs."""

    def posterior(self, context: Context) -> KernelPosterior:
        raise NotImplementedError

    def standard_deviation(self, posterior: Any) -> Float[Tensor, "*b M N"]:
        """Of the kernel at every point, calibrated."""
        raise NotImplementedError

    def suited(self, context: Context) -> "BandedMap":
        """This map, or its relative that suits the pairs better."""
        return self

    def check_pairs(self, d: int) -> None:
        if d < 2:
            raise InputError(f"a kernel cannot be told from {d} pair(s); measure at least 2, better 30.")

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""
