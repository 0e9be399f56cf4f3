"""AFNO: tokens mixed in Fourier space."""

from dataclasses import dataclass

import torch
import torch.nn.functional as nnf
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.nao.attention import stack_blocks
from kernelmap.maps.registry import register

SPARSITY = 0.01


class FourierMixer(nn.Module):
    """X <- X + FFT⁻¹(S_λ(W_2 ReLU(W_1 FFT(X) + b_1) + b_2)) along the tokens, one complex MLP for all modes.

    S_λ shrinks every mode by λ towards zero: most modes are switched off, which ones the data decide.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.weights = nn.Parameter(torch.randn(2, 2, channels, channels) / channels)
        self.biases = nn.Parameter(torch.zeros(2, 2, channels))

    def forward(self, X: Float[Tensor, "*#b n c"]) -> Float[Tensor, "*#b n c"]:
        modes = torch.fft.rfft(self.norm(X), dim=-2, norm="forward")
        hidden = self._linear(0, modes)
        hidden = torch.complex(hidden.real.relu(), hidden.imag.relu())
        mixed = self._linear(1, hidden)
        mixed = torch.complex(nnf.softshrink(mixed.real, SPARSITY), nnf.softshrink(mixed.imag, SPARSITY))
        return X + torch.fft.irfft(mixed, n=X.shape[-2], dim=-2, norm="forward")

    def _linear(self, layer: int, modes: Tensor) -> Tensor:
        return modes @ torch.complex(*self.weights[layer]) + torch.complex(*self.biases[layer])


@dataclass(frozen=True)
class AFNOOptions:
    """Size of an AFNO.

    Attributes:
        dk: scales the number of channels.
        layers: of Fourier mixing.
    """

    dk: int = 10
    layers: int = 2

    def __post_init__(self) -> None:
        if min(self.dk, self.layers) < 1:
            raise InputError(f"dk and layers must be at least 1, got {self.dk} and {self.layers}.")


@register("afno")
class AFNO(KernelMap):
    """Adaptive Fourier neural operator on the tokens: lift the d values of a token to c channels, mix, and let

        K(x, y) = <φ(f-token at x), ψ(u-token at y)> / c

    with linear φ, ψ. (The paper's AFNO predicts f without a kernel; every map of this package gives one.)
    """

    Options = AFNOOptions

    def __init__(self, shape: ContextShape, options: AFNOOptions) -> None:
        super().__init__(shape, options)
        channels = round(3.2 * options.dk)
        self.lift = nn.Linear(shape.d, channels)
        self.mixers = nn.ModuleList(FourierMixer(channels) for _ in range(options.layers))
        self.query, self.key = nn.Linear(channels, channels // 2), nn.Linear(channels, channels // 2)

    def kernel(self, context: Context) -> Kernel:
        u, f = (context.U - self.u_mean) / self.u_std, (context.F - self.f_mean) / self.f_std
        X = stack_blocks([self.lift(u), self.lift(f)])
        for mixer in self.mixers:
            X = mixer(X)
        u, f = X[..., : context.y.size, :], X[..., context.y.size :, :]
        left = self.query(f) * (self.unit / self.key.out_features)
        return Kernel(self.key(u).mT, context.y, context.x, left)
