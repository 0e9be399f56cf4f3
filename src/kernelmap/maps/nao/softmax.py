"""Softmax-NAO: NAO with the softmax of ordinary attention."""

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.maps.nao.attention import softmax_attention, softmax_rows, split_heads, stack_blocks
from kernelmap.maps.nao.model import NAO
from kernelmap.maps.registry import register


@register("softmax-nao")
class SoftmaxNAO(NAO):
    """A = softmax(Q Kᵀ / √dk) in the layers, and over the u-columns alone in the kernel:

        K(x, y) h(y) = ∫ W_u(x, z) A_uu(z, y) dz + ∫ W_f(x, z) A_fu(z, y) dz

    The softmax is that of a measure (it weighs each token by h), so that the map does not depend on the grid. With the
    continuous normaliser a layer is linear in its values, so it is applied to the projections Z = X W that later layers
    need, which have fewer columns than the tokens X.
    """

    linear_attention = False

    def kernel_at(self, context: Context, x: Grid) -> Kernel:
        coordinates, h = self.geometry(context)
        q, k = (self.projected if self.by_position else self.layer_normed)(context, coordinates, h)
        rows = self.rows(x, context, h) * self.unit
        values = softmax_rows(rows, q, k[..., : context.y.size, :], h[0]) / h[0]
        return Kernel(values, context.y, x)

    def projected(
        self, context: Context, coordinates: tuple[Tensor, Tensor], h: list[Tensor]
    ) -> tuple[Float[Tensor, "*#b H n dk"], Float[Tensor, "*#b H n dk"]]:
        """Queries and keys of the last layer: Z <- Z + Σ_heads w (A Z - mean A Z) + b (1ᵀW)."""
        heads, weights = self.options.heads, torch.cat(h)
        W = torch.cat([p.weight for p in self.linear_layers]).mT
        z = stack_blocks(self.tokens(context, h).times(W))
        for projection, norm in zip(self.linear_layers, self.norms, strict=False):
            w, b = (torch.cat(parts, dim=-1) for parts in norm(coordinates[: len(h)]))
            both, z = z[..., : projection.out_features] + projection.bias, z[..., projection.out_features :]
            W = W[:, projection.out_features :]
            q, k = (split_heads(part, heads) for part in both.chunk(2, dim=-1))
            update = softmax_attention(q, k, weights, z)
            mean = ((weights / weights.sum()) @ update)[..., None, :] if self.normaliser == "continuous" else 0.0
            z = z + (w[..., None] * (update - mean)).sum(dim=-3) + b[:, None] * W.sum(dim=0)
        q, k = (z + self.linear_layers[-1].bias).chunk(2, dim=-1)
        return split_heads(q, heads), split_heads(k, heads)

    def attention(self, q: Tensor, k: Tensor, h: Tensor, values: Tensor) -> Float[Tensor, "*#b H n c"]:
        return softmax_attention(q, k, h, values)
