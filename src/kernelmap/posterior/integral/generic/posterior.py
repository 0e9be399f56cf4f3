"""What is known of K(x, y) after the pairs were seen: for every band of x, a mixture of conditioned components."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import ESTIMATES, KernelPosterior, Prediction, check_one_system
from kernelmap.posterior.integral.generic.component import Component
from kernelmap.posterior.integral.generic.mixture import Mixture


@ESTIMATES.register("integral-generic")
@dataclass(frozen=True)
class GenericIntegralPosterior(KernelPosterior):
    """A mixture for every system of a batch."""

    functions_of_position: ClassVar[bool] = True

    context: Context
    mixtures: tuple[Mixture, ...]

    @cached_property
    def moments(self) -> Prediction:
        """Mean and standard deviation of K."""
        return self._each(lambda mixture: mixture.moments(Component.kernel), lambda mixture: mixture.unit)

    @property
    def mean(self) -> Float[Tensor, "*b M N"]:
        return self.moments.mean

    @property
    def std(self) -> Float[Tensor, "*b M N"]:
        return self.moments.std

    @cached_property
    def homogeneous(self) -> Prediction:
        """Mean and standard deviation of h(x), the response to no input, as (*b, M, 1)."""
        return self._each(lambda mixture: mixture.moments(Component.homogeneous), lambda mixture: mixture.f_scale)

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        A = self.context.y.value_weights.to(U)[:, None] * U
        A = iter(A.expand(*self.context.batch_shape, *A.shape[-2:]).reshape(-1, *A.shape[-2:]))

        def responses(mixture: Mixture) -> tuple[Tensor, Tensor]:
            inputs = next(A) / mixture.A_scale
            mean, variance = mixture.moments(lambda component: component.responses(inputs))
            return mean, variance + mixture.s2

        return self._each(responses, lambda mixture: mixture.f_scale)

    def respond(self, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """With h, which the kernel alone has not."""
        return self.predict(U).mean

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        check_one_system(self.context)
        mixture = self.mixtures[0]
        return mixture.unit * mixture.sample(count, generator)

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        noise = self.context.F.new_tensor([mixture.s2**0.5 for mixture in self.mixtures])
        return noise.reshape(self.context.batch_shape)

    @property
    def informed_directions(self) -> int:
        """Of a typical row: those of the pairs whose responses exceed the noise, for the strongest band of x."""
        counts = [
            max(int((parts[0][1].a2 * parts[0][1].D > mixture.s2).sum()) for _, parts in mixture.bands)
            for mixture in self.mixtures
        ]
        return round(sum(counts) / len(counts))

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        parts = [1 - (mixture.moments(Component.kernel)[1] / mixture.prior_variance()) for mixture in self.mixtures]
        return torch.stack(parts).reshape(self.mean.shape).clamp(0, 1)

    @property
    def log_odds_of_nonlinearity(self) -> float:
        """Of responses with terms of second and third order in u, against responses that are linear."""
        return max(mixture.nonlinearity for mixture in self.mixtures)

    def state(self) -> dict[str, Tensor]:
        check_one_system(self.context)
        return self.mixtures[0].state()

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "GenericIntegralPosterior":
        return cls(Context.without_pairs(kernel.y, kernel.x, d), (Mixture.restored(state, kernel.y),))

    def _each(
        self, moments: Callable[[Mixture], tuple[Tensor, Tensor]], scale: Callable[[Mixture], float]
    ) -> Prediction:
        """Means and standard deviations of all systems, in the units given."""
        found = [(scale(mixture), *moments(mixture)) for mixture in self.mixtures]
        means = torch.stack([unit * mean for unit, mean, _ in found])
        stds = torch.stack([unit * variance.sqrt() for unit, _, variance in found])
        shape = (*self.context.batch_shape, *means.shape[1:])
        return Prediction(means.reshape(shape), stds.reshape(shape))
