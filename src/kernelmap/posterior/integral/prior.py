"""The learned prior of kernels K(x, y): mean, smooth covariances in x and in y, and noise."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.set_nao.mean import MeanKernel, Spectrum
from kernelmap.maps.nao.set_nao.modes import Modes
from kernelmap.maps.nao.set_nao.options import SpectralOptions

TAU, NOISE = 0.3, 0.01
"""Root mean square of what the mean does not explain, and of what nothing explains, before training."""


class SmoothCovariance(nn.Module):
    """C(y, z) = Σ_r b_r(y) b_r(z) ,  b_r = Σ_k ψ_k ω_k e_k (I + M)_kr: before training, of the spectrum ω² alone.

    M couples the first `waves` waves, if any, and log e is free for every function. There is no pointwise part: a band
    drawn with C does not change as the grid is refined.
    """

    def __init__(self, modes: Modes, waves: int | None = None) -> None:
        super().__init__()
        self.modes = modes
        self.spectrum = Spectrum(modes)
        # Not zero: waves of the same length have the same variance, and eigenvalues that meet have no gradient.
        self.log_e = nn.Parameter(1e-3 * torch.randn(modes.count))
        block = modes.block(waves or 0)
        self.register_buffer("block", block, persistent=False)
        self.M = None if waves is None else nn.Parameter(torch.zeros(len(block), len(block)))

    def root(self, grid: Grid) -> Float[Tensor, "size R"]:
        """B with C = B Bᵀ on a grid."""
        scaled = self.modes(grid).to(self.log_e) * (self.spectrum() * self.log_e.exp())
        if self.M is None:
            return scaled
        block = self.get_buffer("block")
        return scaled.index_add(1, block, scaled[:, block] @ self.M)

    def deviation(self) -> Tensor:
        """Squared distance from where it started."""
        coupled = 0 if self.M is None else self.M.square().sum()
        return self.log_e.square().sum() + coupled


class IntegralPrior(nn.Module):
    """K ~ N(s m, τ² C_x ⊗ C_y), in units in which the context's u and f have root mean square 1.

    s is the context's own amplitude of the mean kernel m. C_x ⊗ C_y is scaled so that τ² is the mean square of the
    prior's response to the context's inputs. `noise` is the root mean square of what no kernel explains of f. Outputs
    are measured at all points, so their covariance is given more waves, and no couplings.
    """

    def __init__(self, shape: ContextShape, options: SpectralOptions) -> None:
        super().__init__()
        waves = options.count(shape)
        self.mean = MeanKernel(shape, options.basis, waves)
        self.x = SmoothCovariance(Modes(shape.x, options.basis, 2 * waves))
        self.y = SmoothCovariance(self.mean.y, waves)
        self.log_tau = nn.Parameter(torch.tensor(TAU).log())
        self.log_noise = nn.Parameter(torch.tensor(NOISE).log())

    @property
    def tau2(self) -> Tensor:
        return (2 * self.log_tau).exp()

    @property
    def noise2(self) -> Tensor:
        return (2 * self.log_noise).exp()

    def deviation(self) -> Tensor:
        """Squared distance of mean and covariances from where they started."""
        return self.mean.deviation() + self.x.deviation() + self.y.deviation()
