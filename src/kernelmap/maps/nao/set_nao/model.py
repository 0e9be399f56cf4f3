"""The order-free NAO: linear attention that takes any number of pairs, in any order, on any grid."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.nao.set_nao.attention import attend, one_way, other_way
from kernelmap.maps.nao.set_nao.interpolate import Interpolation
from kernelmap.maps.nao.set_nao.loss import OtherPairsLoss
from kernelmap.maps.nao.set_nao.mean import FINE, MeanKernel
from kernelmap.maps.nao.set_nao.mixers import Mixer
from kernelmap.maps.nao.set_nao.modes import Modes
from kernelmap.maps.nao.set_nao.newton_schulz import START, layer_coefficients
from kernelmap.maps.nao.set_nao.options import SetNAOOptions
from kernelmap.maps.nao.set_nao.tokens import Factors, Tokens
from kernelmap.maps.registry import register

POINTWISE = 3
"""Cosines in each direction of the mixer's pointwise part."""


@register("set-nao")
class SetNAO(KernelMap):
    """K = s m + G q(S) Zᵀ + α (the same read the other way round), with a learned mixer C and mean kernel m:

        G = F - s m diag(h) U ,   S = (C U)ᵀ diag(h) C U ,   Z = C* C U ,   q(S) -> S⁻¹ as layers are added

    so that K diag(h) U -> F. Where that takes more layers than are good for other inputs, one more head may fit what is
    left of F (`interpolation`). s is the context's own amplitude. The third part is a transpose: α is learned, 1 where
    kernels are symmetric and -1 where they are antisymmetric, and acts where inputs and outputs share their points.
    """

    Options = SetNAOOptions
    Loss = OtherPairsLoss
    tied_to_pairs = False

    def __init__(self, shape: ContextShape, options: SetNAOOptions) -> None:
        super().__init__(shape, options)
        waves = options.count(shape)
        self.mean = MeanKernel(shape, options.basis, waves)
        pointwise = Modes(shape.y, "cosines", POINTWISE)
        self.mixer = Mixer(Modes(shape.y, options.basis, waves), pointwise, options.heads)
        self.log_bernstein = nn.Parameter(torch.tensor([[log(b) for b in START]] * options.layers))
        fine = Modes(shape.y, "cosines", round(FINE * waves))
        self.interpolation = Interpolation(fine, options.interpolation) if options.interpolation else None
        self.alpha = nn.Parameter(torch.tensor(0.0)) if shape.x == shape.y else None

    def kernel(self, context: Context) -> Kernel:
        tokens, parts = self._parts(context)
        return tokens.kernel(parts, context)

    def respond(self, context: Context, U: Float[Tensor, "*#b N n"]) -> Float[Tensor, "*b M n"]:
        """K diag(w) U, without the kernel of every system being put together."""
        tokens, parts = self._parts(context)
        return tokens.respond(parts, U)

    def _parts(self, context: Context) -> tuple[Tokens, list[Factors]]:
        """What K is made of, but for s m."""
        tokens = Tokens.of(context, self.mean)
        U, G, h = tokens.U, tokens.G, tokens.h
        q, Z = attend(U, self.mixer.on(context.y), layer_coefficients(self.log_bernstein))
        parts = [one_way(G, q, Z)]
        if self.alpha is not None and context.x.has_points_of(context.y):
            left, right = other_way(U, G, q, Z, h)
            parts.append(Factors(self.alpha * left, right))
        if self.interpolation is not None:
            fitted = sum(left @ (right @ (h[:, None] * U)) for left, right in parts)
            parts.append(self.interpolation(context.U / tokens.u_scale, G - fitted, context.y))
        return tokens, parts

    def check_pairs(self, d: int) -> None:
        """Any number will do."""

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Nothing to do: every context is measured by its own scale."""

    def deviation(self) -> Tensor:
        """Squared distance of the learned functions from where they started."""
        return self.mixer.deviation() + self.mean.deviation()
