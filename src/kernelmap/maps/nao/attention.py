"""Attention over tokens that are never updated: after l layers they are the linear operator

    X_l = X_0 + Σ_i (P_i K_iᵀ diag(h) X_{i-1} + b_i 1ᵀ)

of which only products with a few columns or rows are ever needed. A layer X <- X + norm(h A X) with A = Q Kᵀ / √dk and
norm(Y) = b + w (Y - mean Y) adds one term, P = w (Q - mean Q) / √dk. So neither A, with its square of the number of
tokens, nor X_1, X_2, ... are built; the products are only associated in another order, which is exact.

Token arrays come in blocks, u-tokens and f-tokens: u-tokens that a batch of systems shares are multiplied once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import torch
import torch.nn.functional as nnf
import torch.utils.checkpoint
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.algebra.products import shared_matmul

Blocks = Sequence[Tensor]
"""One array per block of tokens: (*b, n, c)."""


class Update(NamedTuple):
    """What one layer adds to the tokens, P hKᵀ X + b 1ᵀ, with the heads side by side in P and hK."""

    p: Blocks
    hk: Blocks
    b: Blocks


@dataclass(frozen=True)
class AttendedTokens:
    """The tokens after some layers, as an operator: `tokens[i]` standardised by `moments[i]`, plus `updates`."""

    tokens: Blocks
    moments: Sequence[tuple[Tensor, Tensor]]
    h: Blocks
    updates: tuple[Update, ...] = ()

    @property
    def standardised(self) -> list[Tensor]:
        """The tokens before any layer, block by block."""
        return [(x - mean) / std for x, (mean, std) in zip(self.tokens, self.moments, strict=True)]

    def times(self, c: Float[Tensor, "*#b d k"], bias: Tensor | float = 0.0) -> list[Tensor]:
        """X c + bias, block by block."""
        sums = c.sum(dim=-2, keepdim=True)
        # The bias joins the last term: before that, z serves as values.
        biases = [0.0] * len(self.updates) + [bias]
        z = []
        for x, (mean, std) in zip(self.tokens, self.moments, strict=True):
            product = x @ (c / std) if c.ndim == 2 else shared_matmul((c / std).mT, x.mT).mT
            z.append(product + (biases[0] - mean / std * sums))
        for (p, hk, b), constant in zip(self.updates, biases[1:], strict=True):
            summary = sum_blocks([keys.mT @ v for keys, v in zip(hk, z, strict=True)])
            z = [v + (constant + part[:, None] * sums) + q @ summary for v, q, part in zip(z, p, b, strict=True)]
        return z

    def transposed_times(self, r: Blocks) -> Float[Tensor, "*#b d k"]:
        """Xᵀ r for r (*b, n, k) on each block."""
        constant = torch.zeros_like(r[0][..., :1, :])
        for p, hk, b in reversed(self.updates):
            constant = constant + sum_blocks([part[None, :] @ v for part, v in zip(b, r, strict=True)])
            summary = sum_blocks([q.mT @ v for q, v in zip(p, r, strict=True)])
            r = [v + keys @ summary for v, keys in zip(r, hk, strict=True)]
        parts = []
        for x, v, (mean, std) in zip(self.tokens, r, self.moments, strict=True):
            parts.append(shared_matmul((v / std).mT, x).mT)
            constant = constant - mean / std * v.sum(dim=-2, keepdim=True)
        return sum_blocks(parts) + constant

    def attend(
        self, weight: Float[Tensor, "d QK"], bias: Float[Tensor, " QK"], w: Blocks, b: Blocks, centred: bool = True
    ) -> "AttendedTokens":
        """The tokens after one more layer of linear attention, given w (H, n) and b (n) on each block."""
        q, k = zip(*(z.chunk(2, dim=-1) for z in self.times(weight, bias)), strict=True)
        heads, width = w[0].shape[0], q[0].shape[-1]
        mass = sum_blocks([part.sum() for part in self.h])
        mean = sum_blocks([(part / mass) @ query for part, query in zip(self.h, q, strict=True)])[..., None, :]
        mean = mean if centred else torch.zeros_like(mean)
        scaled = [(part / sqrt(width // heads)).mT.repeat_interleave(width // heads, dim=-1) for part in w]
        p = [part * (query - mean) for part, query in zip(scaled, q, strict=True)]
        hk = [key * part[:, None] for key, part in zip(k, self.h, strict=True)]
        return replace(self, updates=(*self.updates, Update(p, hk, b)))


def softmax_attention(
    q: Float[Tensor, "*#b H n dk"],
    k: Float[Tensor, "*#b H m dk"],
    h: Float[Tensor, " m"],
    values: Float[Tensor, "*#b m c"],
) -> Float[Tensor, "*#b H n c"]:
    """softmax(Q Kᵀ / √dk + log h) V: the softmax of a measure, so that it does not depend on the grid.

    torch's memory-efficient kernel wants queries, keys and values of one width: zeros are appended.
    """
    q, k = measured(q, k, h)
    width = max(q.shape[-1], values.shape[-1])
    v = values[..., None, :, :].expand(*k.shape[:-1], -1)
    q_flat, k_flat, v_flat = (
        nnf.pad(x, (0, width - x.shape[-1])).reshape(-1, *x.shape[-3:-1], width) for x in (q, k, v)
    )
    return nnf.scaled_dot_product_attention(q_flat, k_flat, v_flat, scale=1.0).reshape(*q.shape[:-1], width)[
        ..., : v.shape[-1]
    ]


def softmax_rows(
    rows: Float[Tensor, "H M n"],
    q: Float[Tensor, "*#b H n dk"],
    k: Float[Tensor, "*#b H m dk"],
    h: Float[Tensor, " m"],
) -> Float[Tensor, "*#b M m"]:
    """Σ_heads rows softmax(Q Kᵀ / √dk + log h), a block of the n rows of the softmax at a time."""
    q, k = measured(q, k, h)
    block = max(1, 2**20 // k.shape[-2])

    def part(rows: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (rows @ (q @ k.mT).softmax(dim=-1)).sum(dim=-3)

    total = part(rows[..., :0], q[..., :0, :], k)
    for i in range(0, q.shape[-2], block):
        pieces = rows[..., i : i + block], q[..., i : i + block, :], k
        total = total + torch.utils.checkpoint.checkpoint(part, *pieces, use_reentrant=False)
    return total


def measured(q: Tensor, k: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys whose product is Q Kᵀ / √dk + log h: one more column does it."""
    log_h = h.log()[:, None].expand(*k.shape[:-1], 1)
    return torch.cat([q / sqrt(q.shape[-1]), torch.ones_like(q[..., :1])], dim=-1), torch.cat([k, log_h], dim=-1)


def split_heads(x: Float[Tensor, "*#b n Hdk"], heads: int) -> Float[Tensor, "*#b H n dk"]:
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def join_heads(x: Float[Tensor, "*#b H n dk"]) -> Float[Tensor, "*#b n Hdk"]:
    return x.transpose(-3, -2).flatten(-2)


def sum_blocks(parts: Blocks) -> Tensor:
    """Sum over blocks; a shared block is repeated over the batch."""
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def stack_blocks(parts: Blocks) -> Float[Tensor, "*#b n c"]:
    """One array over all tokens; a shared block is repeated over the batch."""
    batch = torch.broadcast_shapes(*(part.shape[:-2] for part in parts))
    return torch.cat([part.expand(*batch, *part.shape[-2:]) for part in parts], dim=-2)
