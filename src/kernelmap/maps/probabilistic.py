"""What all maps share that know their own error."""

from abc import abstractmethod

from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import KernelPosterior
from kernelmap.core.systems import systems_at_once
from kernelmap.maps.base import KernelMap


class ProbabilisticMap(KernelMap):
    """A map that gives a posterior, and with it an error bar. It takes any number of pairs in any order and scale."""

    tied_to_pairs = False

    @abstractmethod
    def posterior(self, context: Context) -> KernelPosterior:
        """What is known of the kernel after the pairs of the context were seen."""

    def kernel(self, context: Context) -> Kernel:
        """The posterior mean; of many systems part by part, for a posterior takes far more memory than its mean."""
        batch, most = context.batch_shape, systems_at_once(context.y, context.x)
        if batch.numel() <= most:
            return self.posterior(context).kernel
        dim = max(range(len(batch)), key=lambda i: batch[i])
        size = max(1, most * batch[dim] // batch.numel())
        return Kernel.joined([self.kernel(part) for part in context.split(size, dim)], dim - len(batch) - 2)

    def select_model(self, context: Context) -> "ProbabilisticMap":
        """This map, or its relative that the pairs favour."""
        return self

    def check_pairs(self, d: int) -> None:
        if d < 2:
            raise InputError(f"a kernel cannot be told from {d} pair(s); measure at least 2, better 30.")

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""
