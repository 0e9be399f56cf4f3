"""What is known of a kernel K(x, y) after the pairs were seen."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.posterior import ESTIMATES, KernelPosterior, Prediction, check_one_system
from kernelmap.maps.nao.set_nao.tokens import Factors, Tokens
from kernelmap.posterior.integral.matrix_normal import Covariance, Gram, MatrixNormal


@ESTIMATES.register("integral")
@dataclass(frozen=True)
class IntegralPosterior(KernelPosterior):
    """s m + `normal`, in the units of `tokens`; `root` is B_y, the root of the covariance in y, on the grid.

    `noise` is the variance of a measured value that no kernel explains.
    """

    functions_of_position: ClassVar[bool] = True

    context: Context
    tokens: Tokens
    normal: MatrixNormal
    root: Float[Tensor, "*#b N R"]
    noise: Float[Tensor, "*#b 1 1"]

    @cached_property
    def kernel(self) -> Kernel:
        """The posterior mean, as factors."""
        X = self.normal.x.X
        return self.tokens.kernel([Factors(X, self.normal.coefficients(self.normal.G) @ self.root.mT)], self.context)

    @property
    def mean(self) -> Float[Tensor, "*b M N"]:
        return self.kernel.values

    @cached_property
    def std(self) -> Float[Tensor, "*b M N"]:
        return self.normal.variance(self.root).sqrt() * self.tokens.unit

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        """The measured responses to new inputs."""
        functionals = self._functionals(U)
        variance = self.normal.variance(functionals @ self.root) + self.noise
        left, right = self.tokens.mean
        mean = left @ (right @ functionals.mT) + self.normal.mean(functionals @ self.root)
        return Prediction(mean * self.tokens.f_scale, variance.sqrt() * self.tokens.f_scale)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        check_one_system(self.context)
        left, right = self.tokens.mean
        draws = [left @ right + self.normal.sample(self.root, generator) for _ in range(count)]
        return torch.stack([draw * self.tokens.unit for draw in draws]).reshape(count, *self.kernel.values.shape[-2:])

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        return self.noise.sqrt().expand(*self.context.batch_shape, 1, 1)[..., 0, 0]

    @property
    def informed_directions(self) -> int:
        """Directions of the pairs whose signal exceeds the noise, for a typical row."""
        return int((self.normal.s2[..., 0] < self.normal.pairs.D).sum(dim=-1).double().mean())

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance; 1 where the prior is sure."""
        ratio = self.normal.variance(self.root) / self.normal.prior_variance(self.root)
        return (1 - ratio).nan_to_num(1.0).clamp(0, 1)

    def state(self) -> dict[str, Tensor]:
        """The pairs in the eigenvectors P of their Gram matrix, where those with D = 0 have no part: A P, G P and D."""
        normal, tokens = self.normal, self.tokens
        rank = min(normal.pairs.A.shape[-2:])
        AP, GP = ((part @ normal.pairs.P)[..., -rank:] for part in (normal.pairs.A, normal.G))
        return {
            "X": normal.x.X,
            "L": normal.x.L,
            "A": AP,
            "D": normal.pairs.D[..., -rank:],
            "G": GP,
            "s2": normal.s2,
            "a2": normal.a2,
            "left": tokens.mean.left,
            "right": tokens.mean.right,
            "h": tokens.h,
            "u_scale": tokens.u_scale,
            "f_scale": tokens.f_scale,
            "unit": tokens.unit,
            "root": self.root,
            "noise": self.noise,
        }

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "IntegralPosterior":
        A, D, G = (state[name] for name in ("A", "D", "G"))
        pairs = Gram(A, D, torch.eye(len(D), dtype=D.dtype, device=D.device))
        normal = MatrixNormal(Covariance(state["X"], state["L"]), pairs, G, state["s2"], state["a2"])
        context = Context.without_pairs(kernel.y, kernel.x, d)
        scales = (state[name] for name in ("h", "u_scale", "f_scale", "unit"))
        tokens = Tokens(context.U, context.F, Factors(state["left"], state["right"]), *scales)
        return cls(context, tokens, normal, state["root"], state["noise"])

    def _functionals(self, U: Float[Tensor, "*b N n"]) -> Float[Tensor, "*b n N"]:
        """u -> ∫ u v for functions v of y, in the units of the tokens."""
        return (self.tokens.h[:, None] * U / self.tokens.u_scale).mT
