"""Discoveries made by hand, for reports: a dense Gaussian posterior of kernels on radii, lines and squares."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap import Context, grids
from kernelmap.core.metrics import operator_error
from kernelmap.core.posterior import KernelPosterior, Prediction
from kernelmap.discovery import Check, Diagnostic, Discovery
from kernelmap.discovery.identifiability import identifiability_of, normal_spectrum
from kernelmap.estimators import dartr

ABOUT = {
    "model": "radial",
    "model_sha256": "a1" * 32,
    "data_sha256": "b2" * 32,
    "command": "kernelmap discover measurements/from-the-laboratory/2025-03-14/run-07.h5 --model radial --out results",
    "version": "0.2.0",
    "commit": None,
    "data_file": "measurements/from-the-laboratory/2025-03-14/run-07.h5",
}
DIAGNOSTICS = (
    Diagnostic(
        "The residual is <b>3 times</b> the noise & more.",
        "The system may not be linear in its kernel, or f was measured elsewhere.",
        "Check the units of u and f, then run `kernelmap check` on the file.",
    ),
    Diagnostic("Only 12 pairs were given.", "The file holds one short run.", "Measure at more places."),
)


@dataclass(frozen=True)
class DensePosterior(KernelPosterior):
    """Rows K(x, .) ~ N(0, prior), conditioned on the pairs by the textbook formulas, with noise of a known size."""

    context: Context
    prior: Float[Tensor, "N N"]
    noise: float

    @property
    def gain(self) -> Float[Tensor, "d N"]:
        weighted = self.context.y.value_weights[:, None] * self.context.U
        gram = weighted.mT @ self.prior @ weighted + self.noise**2 * torch.eye(self.context.d, dtype=torch.float64)
        return torch.linalg.solve(gram, weighted.mT @ self.prior)

    @property
    def covariance(self) -> Float[Tensor, "N N"]:
        weighted = self.context.y.value_weights[:, None] * self.context.U
        return self.prior - self.prior @ weighted @ self.gain

    @property
    def mean(self) -> Float[Tensor, "M N"]:
        return self.context.F @ self.gain

    @property
    def std(self) -> Float[Tensor, "M N"]:
        return self.covariance.diagonal().clamp(min=0).sqrt().expand(self.context.x.size, -1)

    def predict(self, U: Float[Tensor, "N n"]) -> Prediction:
        weighted = self.context.y.value_weights[:, None] * U
        spread = torch.einsum("kn,kl,ln->n", weighted, self.covariance, weighted).clamp(min=0)
        mean = self.kernel.apply(U)
        return Prediction(mean, (spread + self.noise**2).sqrt().expand_as(mean))

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        return self.mean.expand(count, -1, -1)

    @property
    def relative_residual(self) -> Tensor:
        return torch.tensor(self.noise) / self.context.F.square().mean().sqrt()

    @property
    def informed_directions(self) -> int:
        spectrum = normal_spectrum(self.context)[1]
        return int((spectrum > 4e-4 * spectrum[0]).sum())

    @property
    def variance_reduction(self) -> Float[Tensor, "M N"]:
        return (1 - self.std.square() / self.prior.diagonal()).clamp(0, 1)


def discovery_of(U: Tensor, truth: Tensor, prior: Tensor, y: grids.Grid, x: grids.Grid) -> Discovery:
    """F = K w U with 2 % noise; every fifth pair is kept back."""
    clean = (truth * y.value_weights) @ U
    noise = 0.02 * float(clean.square().mean().sqrt())
    F = clean + noise * torch.randn(clean.shape, generator=torch.Generator().manual_seed(1), dtype=clean.dtype)
    kept = torch.arange(U.shape[1]) % 5 == 0
    context, heldout = Context(U[:, ~kept], F[:, ~kept], y, x), Context(U[:, kept], F[:, kept], y, x)
    posterior, classical = DensePosterior(context, prior, noise), dartr(context)
    mean, std = posterior.predict(heldout.U)
    residual = (mean - heldout.F) / std
    check = Check(
        heldout,
        mean,
        std,
        error=float(operator_error(mean, heldout.F, x)),
        coverage=float((residual.abs() < 1.96).double().mean()),
        rms_standardised_residual=float(residual.square().mean().sqrt()),
        classical_error=float(operator_error(classical.kernel.apply(heldout.U), heldout.F, x)),
    )
    return Discovery(
        kernel=posterior.kernel,
        std=posterior.std,
        posterior=posterior,
        context=context,
        check=check,
        classical=classical,
        identifiability=identifiability_of(context, posterior),
        diagnostics=(),
        about=ABOUT,
    )


def radial_discovery() -> tuple[Discovery, Tensor]:
    """Inputs that die out towards large r, so that a part of the kernel stays unobserved."""
    y = grids.radii(0.1, 110)
    r = y.points[:, 0]
    frequencies = torch.linspace(0.3, 5, 80, dtype=torch.float64)
    U = (torch.cos(r[:, None] * frequencies) - 1) * torch.exp(-((r[:, None] / 5.5) ** 4))
    truth = (torch.exp(-0.4 * r) * torch.sin(2 * r))[None]
    envelope = torch.exp(-0.15 * r)
    prior = envelope[:, None] * envelope * torch.exp(-((r[:, None] - r) ** 2) / 0.72)
    return discovery_of(U, truth, prior, y, grids.point()), truth


def two_input_discovery() -> Discovery:
    """Two inputs in units of their own: the second is small, and dies out half way."""
    y = grids.radii(0.2, 50).with_components(2)
    r = y.points[:, 0]
    waves = torch.randn(2, r.shape[0], 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    U = torch.cat([waves[0], 1e-3 * waves[1] * (r < 5)[:, None]])
    truth = torch.cat([torch.exp(-r), 1e3 * torch.exp(-r / 2)])[None]
    near = torch.exp(-((r[:, None] - r) ** 2))
    about = ABOUT | {"labels": {"u_name": "rain, snow", "u_unit": "mm, m"}}
    return replace(discovery_of(U, truth, torch.block_diag(near, 1e6 * near), y, grids.point()), about=about)


def field_discovery(grid: grids.Grid) -> tuple[Discovery, Tensor]:
    """A smoothing kernel between the points of a grid, of each component by itself."""
    distance = torch.cdist(grid.points, grid.points)
    U = torch.randn(grid.size, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    each = torch.eye(grid.components, dtype=torch.float64)
    truth, prior = (torch.kron(each, torch.exp(-((distance / scale) ** 2))) for scale in (0.3, 0.25))
    return discovery_of(U, truth, prior, grid, grid), truth


FIELDS = {
    "interval": grids.from_points(torch.linspace(0, 1, 30)),
    "square": grids.rectangle(9),
    "vector": grids.rectangle(5).with_components(2),
    "cube": grids.rectangle(4, dim=3),
}
