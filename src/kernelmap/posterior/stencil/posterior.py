"""What is known of a local kernel after the pairs were seen: a Gaussian for the bonds of each node."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.algebra.linear_gaussian import Regression, above_noise
from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.mesh.lattice import Lattice, at_ends
from kernelmap.core.posterior import ESTIMATES, KernelPosterior, Prediction, check_one_system
from kernelmap.core.progress import tracked
from kernelmap.core.state import prefixed, under
from kernelmap.posterior.stencil.averaging import Averaging

CHUNK = 2**20
"""Values of inputs around nodes that are looked at together: 8 MB, which a processor's cache may hold."""


@ESTIMATES.register("stencil")
@dataclass(frozen=True)
class LocalPosterior(KernelPosterior):
    """Strengths c(x) = s (m + [a z + m τ z_0]) of the bonds of M nodes; `regression` is of a z and τ z_0.

    The batch *b is that of the context. `level` is the relative noise on f that was found, `error` the variance of f
    that the kernel does not explain, in units of the scale s; its share `systematic` is not noise, and may be alike at
    all nodes. c are the bonds of A in A u = M f; without `averaging`, M is the identity. At `reactions` nodes
    f responds though u is zero in all pairs.
    """

    prior_mean: Float[Tensor, " R"]
    regression: Regression
    scale: Float[Tensor, "*b 1 1"]
    error: Float[Tensor, "*b #M 1"]
    level: Float[Tensor, "*b"]
    systematic: Float[Tensor, "*b #M 1"]
    lattice: Lattice
    reach: int
    context: Context
    averaging: Averaging | None = None
    reactions: int = 0

    @property
    def relative_residual(self) -> Float[Tensor, "*b"]:
        """The relative noise on f that was found."""
        return self.level

    @property
    def strengths(self) -> Float[Tensor, "*b M R"]:
        """Posterior mean of c."""
        return self._strengths(self.regression.mean[0])

    @cached_property
    def mean(self) -> Float[Tensor, "*b M N"]:
        """Posterior mean."""
        return self._at_nodes(self.lattice.rows_of(self.strengths, self.reach)) / self._weights

    @cached_property
    def std(self) -> Float[Tensor, "*b M N"]:
        return self.variance.sqrt()

    @property
    def variance(self) -> Float[Tensor, "*b M N"]:
        """Posterior variance of the kernel; zero beyond the reach, where the prior allows nothing."""
        return self._kernel_variance(self.regression)

    def _kernel_variance(self, regression: Regression) -> Float[Tensor, "*b M N"]:
        _, exists = self.lattice.neighbours(self.reach)
        variances = at_ends(self._factor(regression) * exists[:, None, :]).square().sum(dim=-2)
        return self._variance_at_nodes(self.lattice.scatter(variances, self.reach)) / self._weights.square()

    @property
    def variance_reduction(self) -> Float[Tensor, "*b M N"]:
        """1 - posterior variance / prior variance; 1 beyond the reach, where the kernel is known to be zero."""
        reduction = 1 - self.variance / self._kernel_variance(self.regression._replace(factor=self._no_data))
        return reduction.nan_to_num(1.0).clamp(0, 1)

    @property
    def informed_directions(self) -> int:
        """Directions that stand out of the noise at the middle one of the nodes."""
        factors = self.regression.factor.flatten(0, -3)
        return above_noise(factors[len(factors) // 2])

    @property
    def parameters_in_use(self) -> Float[Tensor, "*b"]:
        """tr(I - (L Lᵀ)⁻¹), averaged over the nodes: what the pairs, and not the prior, determine of a row."""
        inverse = torch.linalg.solve_triangular(self.regression.factor[0], self._no_data[0], upper=False)
        return self.regression.factor.shape[-1] - inverse.square().sum(dim=(-2, -1)).mean(dim=-1)

    @property
    def _no_data(self) -> Tensor:
        """The factor of a regression that has seen nothing."""
        return torch.eye(
            self.regression.factor.shape[-1], dtype=self.prior_mean.dtype, device=self.prior_mean.device
        ).expand_as(self.regression.factor)

    def predict(self, U: Float[Tensor, "*b N n"]) -> Prediction:
        """The responses to new inputs, noise included."""
        mean, variance = self.response_moments(U)
        return Prediction(
            self._at_nodes(mean), self._variance_at_nodes(variance + self.scale.square() * self.error).sqrt()
        )

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count M N"]:
        """Kernels of one system; the nodes are independent."""
        check_one_system(self.context)
        strengths = self._strengths(self.regression.sample(count, generator)[:, 0])
        rows = self._at_nodes(self.lattice.rows_of(strengths, self.reach))
        return (rows / self._weights).reshape(count, *self.mean.shape[-2:])

    def state(self) -> dict[str, Tensor]:
        """The regression of every node, and its scale."""
        names = ("prior_mean", "scale", "error", "level", "systematic")
        own = {name: getattr(self, name) for name in names} | {"reach": torch.tensor(self.reach)}
        averaging = {} if self.averaging is None else prefixed("averaging", vars(self.averaging))
        return own | prefixed("regression", self.regression._asdict()) | averaging

    @classmethod
    def restored(cls, state: dict[str, Tensor], kernel: Kernel, d: int) -> "LocalPosterior":
        return cls.on_grids(state, Context.without_pairs(kernel.y, kernel.x, d))

    @classmethod
    def on_grids(cls, state: dict[str, Tensor], context: Context) -> "LocalPosterior":
        regression, averaging = Regression(**under(state, "regression")), under(state, "averaging")
        return cls(
            state["prior_mean"],
            regression,
            state["scale"],
            state["error"],
            state["level"],
            state["systematic"],
            Lattice.of(context.y, context.x),
            int(state["reach"]),
            context,
            Averaging(**averaging) if averaging else None,
        )

    def _strengths(self, weights: Float[Tensor, "*b M features"]) -> Float[Tensor, "*b M R"]:
        """c of the regression's weights a z and τ z_0."""
        free, common = weights.split([len(self.prior_mean), 1], dim=-1)
        return self.scale * self._stretch * (self.prior_mean * (1 + common) + free)

    def response_moments(self, U: Float[Tensor, "*b N n"]) -> tuple[Float[Tensor, "*b M n"], Float[Tensor, "*b M n"]]:
        """Mean and variance of A u, without noise."""
        rows = at_ends(torch.cat([self._factor(self.regression), self.strengths[..., None, :]], dim=-2))
        M, R = rows.shape[-3], rows.shape[-1]
        count = max(1, CHUNK // (R * U.shape[-1]))
        means, variances = [], []
        for nodes in tracked([slice(start, start + count) for start in range(0, M, count)]):
            products = rows[..., nodes, :, :] @ self.lattice.subset(nodes).around(U, self.reach)
            means.append(products[..., -1, :].clone())  # a view would keep all products
            variances.append(products[..., :-1, :].square().sum(dim=-2))
        return torch.cat(means, dim=-2), torch.cat(variances, dim=-2)

    def _factor(self, regression: Regression) -> Float[Tensor, "*b M features R"]:
        """D = s L⁻¹ ω [1 m]ᵀ, with Cov c = Dᵀ D; its columns stretched as c is."""
        m = self.prior_mean
        strengths = torch.cat([torch.eye(len(m), dtype=m.dtype, device=m.device), m[None]])
        weighted = regression.omega[0][..., None] * strengths * self._stretch
        return self.scale[..., None] * torch.linalg.solve_triangular(regression.factor[0], weighted, upper=False)

    def _at_nodes(self, values: Float[Tensor, "*b M n"]) -> Float[Tensor, "*b M n"]:
        """M⁻¹ values."""
        return values if self.averaging is None else self._unaveraged @ values

    def _variance_at_nodes(self, variances: Float[Tensor, "*b #M n"]) -> Float[Tensor, "*b #M n"]:
        """Of M⁻¹ e for independent e."""
        return variances if self.averaging is None else self._unaveraged.square() @ variances

    @cached_property
    def _unaveraged(self) -> Float[Tensor, "*b M M"]:
        assert self.averaging is not None
        return torch.linalg.inv(self.averaging.matrix)

    @property
    def _stretch(self) -> Float[Tensor, " R"]:
        return self.lattice.stretch(self.reach).to(self.prior_mean)

    @property
    def _weights(self) -> Float[Tensor, " N"]:
        return self.context.y.value_weights.to(self.prior_mean)
