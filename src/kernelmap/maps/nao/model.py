"""The Nonlocal Attention Operator."""

from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.maps.base import KernelMap
from kernelmap.maps.componentwise import Componentwise
from kernelmap.maps.nao.attention import AttendedTokens, Blocks, join_heads, split_heads, stack_blocks
from kernelmap.maps.nao.functions import Convolution, NetworkFunction, SpectralFunction, TwoPointFunction
from kernelmap.maps.nao.layernorm import NormedTokens
from kernelmap.maps.nao.norms import ContinuousNormaliser, FunctionNorm, TokenNorm
from kernelmap.maps.nao.options import NAOOptions
from kernelmap.maps.nao.options import Normaliser as NormaliserName
from kernelmap.maps.nao.start import F_SIZE, gram_matrices, inverse_projections
from kernelmap.maps.registry import register


@register("nao")
class NAO(KernelMap):
    """Linear attention over the tokens X = [U; F], and the kernel from the last layer's attention:

        A = Q Kᵀ / √dk,  X <- X + norm(h A X)          for all layers but the last
        K(x, y) = ∫ W_u(x, z) A_uu(z, y) dz + ∫ W_f(x, z) A_fu(z, y) dz

    W_u and W_f are functions of position, so the map takes any grid of its domain. A single f-token is a point, not
    an integral: it enters the kernel with weight one.
    """

    Options = NAOOptions
    default_normaliser: ClassVar[NormaliserName] = "continuous"
    uses_f: ClassVar[bool] = True
    tied_to_grid: ClassVar[bool] = False
    linear_attention: ClassVar[bool] = True
    at_any_point: ClassVar[bool] = True

    def __init__(self, shape: ContextShape, options: NAOOptions) -> None:
        super().__init__(shape, options)
        self.normaliser = options.normaliser or self.default_normaliser
        width = 2 * options.heads * options.dk
        self.projections = nn.ModuleList(nn.Linear(shape.d, width) for _ in range(options.layers))
        domains = (shape.y, shape.x) if self.uses_f else (shape.y,)
        if self.by_position:
            norms = [ContinuousNormaliser(domains, options.heads) for _ in range(options.layers - 1)]
        elif self.normaliser == "functions":
            norms = [FunctionNorm(domains, shape.d) for _ in range(options.layers + self.last_norm)]
        else:
            size = shape.N + (shape.M if self.uses_f else 0)
            pairs = shape.d if self.normaliser == "array" else None
            norms = [TokenNorm(size, pairs) for _ in range(options.layers + self.last_norm)]
        self.norms = nn.ModuleList(norms)
        self.build_mixer()
        functions = options.mixer != "network" and not self.tied_to_grid
        if options.start == "inverse" and not (
            functions and self.linear_attention and self.uses_f and self.by_position
        ):
            raise InputError(
                "attention starts at the inverse where it is linear and sees f, W is spectral or a convolution, and "
                "the normaliser is continuous or uncentred; leave out --start."
            )

    @classmethod
    def build(cls, shape: ContextShape, options: NAOOptions) -> KernelMap:
        if options.per_component and shape.x.components > 1:
            return Componentwise(cls, shape, options)
        return cls(shape, options)

    @classmethod
    def saved_options(cls, values: dict[str, Any]) -> NAOOptions:
        """Models of earlier versions name no mixer: theirs are networks."""
        if values.pop("rank", None) is not None:
            raise InputError("W of low rank is no form of NAO any more; train it again with --mixer spectral.")
        saved: dict[str, Any] = {"mixer": "network"} | values
        return NAOOptions(**saved)

    @property
    def by_position(self) -> bool:
        """Whether normalisers are functions of position, so that layers are linear in the tokens."""
        return self.normaliser in ("continuous", "uncentred")

    @property
    def last_norm(self) -> bool:
        """Whether LayerNorm is applied once more, before the last layer."""
        return False

    def build_mixer(self) -> None:
        # With W_f = 1 and W_u = 0, K U = F (W_Q W_Kᵀ Uᵀ U): where W_u has a delta too, u itself comes in as an error.
        self.w_u = self.function(self.shape.x, self.shape.y, delta=0.0)
        self.w_f = self.function(self.shape.x, self.shape.x, delta=1.0) if self.uses_f else None

    def function(self, x: Domain, z: Domain, delta: float) -> TwoPointFunction:
        """A function of two points; where the only output is a point, one of z alone or a number."""
        heads, waves = self.options.heads, self.options.waves
        mixer = self.options.mixer or ("network" if x.is_point else "spectral")
        if mixer == "convolution":
            return Convolution(x, z, heads, waves, delta)
        if mixer == "spectral" and not z.is_point:
            return SpectralFunction(x, z, heads, waves, delta)
        return NetworkFunction(x, z, heads, self.options.hidden)

    def rows(self, x: Grid, context: Context, h: list[Tensor]) -> Float[Tensor, "H M n"]:
        """[W_u W_f] from the points x to the tokens' grids, times the weights of the integrals over z."""
        u = self.w_u.rows(x, context.y, h[0])
        if self.w_f is None:
            return u
        return torch.cat([u, self.w_f.rows(x, context.x, self._f_weights(h))], dim=-1)

    def mixed(self, x: Grid, context: Context, h: list[Tensor], q: Blocks) -> Float[Tensor, "*#b H M dk"]:
        """[W_u W_f] diag(h) Q, without the matrix, from the queries (*b, H, n, dk) of each block of tokens."""
        left = self.w_u.integrate(x, context.y, h[0], q[0])
        if self.w_f is None:
            return left
        return left + self.w_f.integrate(x, context.x, self._f_weights(h), q[1])

    def _f_weights(self, h: list[Tensor]) -> Float[Tensor, " M"]:
        """Of f-tokens in the kernel: a single one is a point, not an integral."""
        return torch.ones_like(h[1]) if self.shape.x.is_point else h[1]

    def standardise(self, u: Tensor, f: Tensor) -> None:
        super().standardise(u, f)
        if self.options.start == "inverse":
            self.f_std /= F_SIZE

    @property
    def unit(self) -> Tensor:
        """Tokens of f that are made small do not make the kernel large: W_f is."""
        return super().unit * (F_SIZE if self.options.start == "inverse" else 1.0)

    @torch.no_grad()
    def begin(self, contexts: Callable[[], Iterable[Context]]) -> None:
        """At the inverse of the contexts' mean, W_f a delta over F_SIZE, W_u zero; where options say so."""
        if self.options.start != "inverse":
            return
        grams = []
        for context in contexts():
            h = self.geometry(context)[1]
            grams.append(gram_matrices(self.tokens(context, h).standardised, h))
        width, dk = self.options.heads * self.options.dk, self.options.dk
        starts = inverse_projections(torch.cat(grams), self.options.layers, width, dk)
        for projection, (q, k) in zip(self.linear_layers, starts, strict=True):
            # Queries beyond the rank stay random: were both zero, neither would ever move.
            projection.weight[width:] = 0.0
            projection.weight[: len(q)], projection.weight[width : width + len(k)] = q.to(self.u_std), k.to(self.u_std)
            projection.bias.zero_()
        for norm in self.norms:
            if isinstance(norm, ContinuousNormaliser):
                norm.set_identity()
        assert self.w_f is not None
        for function, delta in ((self.w_u, 0.0), (self.w_f, 1 / F_SIZE)):
            if isinstance(function, NetworkFunction):
                function.set_constant(delta)
            elif function is self.w_f:
                function.get_parameter("pointwise.c").mul_(delta)
            else:
                for parameter in function.parameters():
                    parameter.zero_()

    def kernel(self, context: Context) -> Kernel:
        return self.kernel_at(context, context.x)

    def kernel_at(self, context: Context, x: Grid) -> Kernel:
        coordinates, h = self.geometry(context)
        if self.normaliser in ("array", "functions"):
            q, k = self.layer_normed(context, coordinates, h)
            blocks = q.split([len(part) for part in h], dim=-2)
            return self.from_queries(context, x, blocks, join_heads(k[..., : context.y.size, :]))
        X = self.tokens(context, h)
        if self.normaliser == "tokens":
            first, *norms = [norm for norm in self.norms if isinstance(norm, TokenNorm)]
            X = NormedTokens.of(X.standardised, h, first)
            for projection, norm in zip(self.linear_layers, norms, strict=False):
                X = X.attend(projection.weight.mT, projection.bias, self.options.heads, norm)
            return self.mix(X, context, x)
        for projection, norm in zip(self.linear_layers, self.norms, strict=False):
            w, b = norm(coordinates[: len(h)])
            X = X.attend(projection.weight.mT, projection.bias, w, b, self.normaliser == "continuous")
        return self.mix(X, context, x)

    def from_queries(self, context: Context, x: Grid, q: Blocks, k: Float[Tensor, "*#b N Hdk"]) -> Kernel:
        """Σ_heads rows Q K_uᵀ, as factors, from the queries of all tokens and the keys of u-tokens."""
        left = join_heads(self.mixed(x, context, self.geometry(context)[1], q))
        scale = self.unit / sqrt(self.options.dk)
        return Kernel(k.mT, context.y, x, left * scale)

    def mix(self, X: AttendedTokens | NormedTokens, context: Context, x: Grid) -> Kernel:
        """Σ_heads rows Q K_uᵀ. With fewer rows than columns of Q, from vectors: (rows X) W_Q W_Kᵀ Xᵀ."""
        weight, bias = self.linear_layers[-1].weight, self.linear_layers[-1].bias
        heads, M = self.options.heads, x.size
        if weight.shape[0] // 2 < M:
            q, k = zip(*((z + bias).chunk(2, dim=-1) for z in X.times(weight.mT)), strict=True)
            return self.from_queries(context, x, [split_heads(part, heads) for part in q], k[0])
        rows = self.rows(x, context, self.geometry(context)[1]) / sqrt(self.options.dk) * self.unit
        w_q, w_k = weight.unflatten(0, (2, heads, -1))
        b_q, b_k = bias.unflatten(0, (2, heads, -1))
        sizes = [len(part) for part in X.h]
        columns = [part.flatten(0, 1).mT for part in rows.split(sizes, dim=-1)]
        attended_rows = X.transposed_times(columns).mT.unflatten(-2, (heads, M))
        left = attended_rows @ w_q.mT + rows.sum(dim=-1, keepdim=True) * b_q[:, None]
        values = X.times((left @ w_k).sum(dim=-3).mT)[0] + (left @ b_k[..., None]).sum(dim=-3).mT
        return Kernel(values.mT, context.y, x)

    @property
    def linear_layers(self) -> list[nn.Linear]:
        """The projections to queries and keys, one per layer."""
        return [p for p in self.projections if isinstance(p, nn.Linear)]

    def geometry(self, context: Context) -> tuple[tuple[Tensor, Tensor], list[Tensor]]:
        """Coordinates of both grids in [-1, 1], and the quadrature weight of every token."""
        tied = self.tied_to_grid or self.normaliser in ("tokens", "array")
        if tied and (context.y.size, context.x.size) != (self.shape.N, self.shape.M):
            raise InputError(
                f"this model is tied to the grid it was trained on, {self.shape.N} input and {self.shape.M} output "
                f"values, got {context.y.size} and {context.x.size}. Interpolate, or use the continuous NAO."
            )
        domains = ((self.shape.y, context.y), (self.shape.x, context.x))
        y, x = (domain.coordinates(grid).to(self.u_std) for domain, grid in domains)
        h = [domain.token_weights(grid).to(self.u_std) for domain, grid in domains]
        return (y, x), h[: 2 if self.uses_f else 1]

    def tokens(self, context: Context, h: list[Tensor]) -> AttendedTokens:
        moments = [(self.u_mean, self.u_std), (self.f_mean, self.f_std)]
        return AttendedTokens([context.U, context.F][: len(h)], moments[: len(h)], h)

    def layer_normed(
        self, context: Context, coordinates: tuple[Tensor, Tensor], h: list[Tensor]
    ) -> tuple[Float[Tensor, "*#b H n dk"], Float[Tensor, "*#b H n dk"]]:
        """Queries and keys of the last layer with LayerNorm, which needs the tokens themselves."""
        weights = torch.cat(h)
        places = (coordinates[: len(h)], weights) if self.normaliser == "functions" else ()
        first, *norms = self.norms
        X = first(stack_blocks(self.tokens(context, h).standardised), *places)
        for projection, norm in zip(self.linear_layers[:-1], norms, strict=False):
            q, k = (split_heads(part, self.options.heads) for part in projection(X).chunk(2, dim=-1))
            X = X + norm(self.attention(q, k, weights, X).sum(dim=-3), *places)
        X = norms[-1](X, *places) if self.last_norm else X
        q, k = self.projections[-1](X).chunk(2, dim=-1)
        return split_heads(q, self.options.heads), split_heads(k, self.options.heads)

    def attention(self, q: Tensor, k: Tensor, h: Tensor, values: Tensor) -> Float[Tensor, "*#b H n c"]:
        """(Q Kᵀ / √dk) diag(h) V, associated as Q (Kᵀ diag(h) V)."""
        return q @ ((k * (h[:, None] / sqrt(q.shape[-1]))).mT @ values[..., None, :, :])


@register("nao-u")
class NAOu(NAO):
    """NAO that sees the inputs only: the f-tokens are left out."""

    uses_f = False
