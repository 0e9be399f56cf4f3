"""What all maps share that know their own error."""

from abc import abstractmethod

from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import KernelPosterior
from kernelmap.maps.base import KernelMap


class ProbabilisticMap(KernelMap):
    """A map that gives a posterior, and with it an error bar. It takes any number of pairs in any order and scale."""

    tied_to_pairs = False

    @abstractmethod
    def posterior(self, context: Context) -> KernelPosterior:
        """What is known of the kernel after the pairs of the context were seen."""

    def kernel(self, context: Context) -> Kernel:
        return self.posterior(context).kernel

    def select_model(self, context: Context) -> "ProbabilisticMap":
        """This map, or its relative that the pairs favour."""
        return self

    def check_pairs(self, d: int) -> None:
        if d < 2:
            raise InputError(f"a kernel cannot be told from {d} pair(s); measure at least 2, better 30.")

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""
