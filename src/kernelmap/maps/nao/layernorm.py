"""Attention over tokens under LayerNorm, never updated either: with the statistics of each pair's tokens,

    X_l = w_0 (X - m) s + Σ_i (P_i A_i + b_i 1ᵀ)

LayerNorm of an update Y = Q A (A = Kᵀ diag(h) X, a few rows) needs the mean and variance of Y over the tokens, pair by
pair. These are (mean Q) A and the diagonal of Aᵀ cov(Q) A, so Y itself is not built: P = w (Q - mean Q), and A is
divided by the standard deviations.
"""

from dataclasses import dataclass, replace
from math import sqrt

from jaxtyping import Float
from torch import Tensor

from kernelmap.core.algebra.products import shared_matmul
from kernelmap.maps.nao.attention import Blocks, sum_blocks
from kernelmap.maps.nao.norms import TokenNorm


@dataclass(frozen=True)
class NormedTokens:
    """The tokens after some layers, as an operator: `tokens[i]` minus `mean`, times `scale` and `w[i]`, plus `b[i]`,
    plus `updates`, each a P per block and one A."""

    tokens: Blocks
    mean: Float[Tensor, "*#b 1 d"]
    scale: Float[Tensor, "*#b 1 d"]
    w: Blocks
    b: Blocks
    h: Blocks
    updates: tuple[tuple[Blocks, Tensor], ...] = ()

    @classmethod
    def of(cls, tokens: Blocks, h: Blocks, norm: TokenNorm) -> "NormedTokens":
        """Tokens after their first LayerNorm."""
        count = sum(len(part) for part in h)
        mean = sum_blocks([x.sum(dim=-2, keepdim=True) for x in tokens]) / count
        # The spread within each block, and that of the blocks' means: shared blocks are read once.
        parts = []
        for x in tokens:
            own = x.mean(dim=-2, keepdim=True)
            parts.append((x - own).square().sum(dim=-2, keepdim=True) + x.shape[-2] * (own - mean).square())
        scale = (sum_blocks(parts) / count + norm.eps).rsqrt()
        w, b = norm.blocks([len(part) for part in h])
        return cls(tokens, mean, scale, w, b, h)

    def times(self, c: Float[Tensor, "*#b d k"]) -> list[Tensor]:
        """X c, block by block."""
        scaled = self.scale.mT * c
        offset, sums = self.mean @ scaled, c.sum(dim=-2, keepdim=True)
        summaries = [a @ c for _, a in self.updates]
        z = []
        for i, (x, w, b) in enumerate(zip(self.tokens, self.w, self.b, strict=True)):
            z.append(w[:, None] * (shared_matmul(scaled.mT, x.mT).mT - offset) + b[:, None] * sums)
            for (p, _), summary in zip(self.updates, summaries, strict=True):
                z[i] = z[i] + p[i] @ summary
        return z

    def transposed_times(self, r: Blocks) -> Float[Tensor, "*#b d k"]:
        """Xᵀ r for r (*b, n, k) on each block."""
        weighted = [w[:, None] * v for w, v in zip(self.w, r, strict=True)]
        products = [shared_matmul(v.mT, x).mT for v, x in zip(weighted, self.tokens, strict=True)]
        total = sum_blocks([v.sum(dim=-2, keepdim=True) for v in weighted])
        result = self.scale.mT * (sum_blocks(products) - self.mean.mT * total)
        for p, a in self.updates:
            result = result + a.mT @ sum_blocks([q.mT @ v for q, v in zip(p, r, strict=True)])
        return result + sum_blocks([b[None, :] @ v for b, v in zip(self.b, r, strict=True)])

    def attend(
        self, weight: Float[Tensor, "d QK"], bias: Float[Tensor, " QK"], heads: int, norm: TokenNorm
    ) -> "NormedTokens":
        """The tokens after one more layer of linear attention."""
        q, k = zip(*((z + bias).chunk(2, dim=-1) for z in self.times(weight)), strict=True)
        root = sqrt(q[0].shape[-1] // heads)
        a = self.transposed_times([key * (h[:, None] / root) for key, h in zip(k, self.h, strict=True)]).mT
        count = sum(len(h) for h in self.h)
        mean = sum_blocks([query.sum(dim=-2, keepdim=True) for query in q]) / count
        q = [query - mean for query in q]
        covariance = sum_blocks([query.mT @ query for query in q]) / count
        variance = (a * (covariance @ a)).sum(dim=-2, keepdim=True)
        w, b = norm.blocks([len(h) for h in self.h])
        p = [part[:, None] * query for part, query in zip(w, q, strict=True)]
        update = p, a * (variance + norm.eps).rsqrt()
        both = [old + new for old, new in zip(self.b, b, strict=True)]
        return replace(self, b=both, updates=(*self.updates, update))
