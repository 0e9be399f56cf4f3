"""NAO evaluated as its formulas are printed, attention matrices and all: the yardstick for speed and correctness."""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.maps import NAO


def textbook_response(model: NAO, context: Context) -> Float[Tensor, "*#b M d"]:
    """f = K_hat diag(w) U from a NAO's weights with the continuous normaliser."""
    return (textbook_kernel(model, context) * context.y.value_weights.to(context.U)) @ context.U


def textbook_kernel(model: NAO, context: Context) -> Float[Tensor, "*#b M N"]:
    N, heads = context.y.size, model.options.heads
    X = torch.cat([(context.U - model.u_mean) / model.u_std, (context.F - model.f_mean) / model.f_std], dim=-2)
    z_y, z_x = model.shape.y.coordinates(context.y).to(X), model.shape.x.coordinates(context.x).to(X)
    h = torch.cat([model.shape.y.token_weights(context.y), model.shape.x.token_weights(context.x)]).to(X)
    for layer, norm in enumerate(model.norms):
        w, b = (torch.cat(parts, dim=-1) for parts in norm((z_y, z_x)))
        updates = [b[:, None]]
        for head in range(heads):
            A = attention_matrix(model, X, layer, head)
            Y = (A * h) @ X
            mean = (h[:, None] * Y).sum(dim=-2, keepdim=True) / h.sum()
            updates.append(w[head][:, None] * (Y - mean))
        X = X + sum(updates)
    h_f = torch.ones_like(h[N:]) if context.x.is_point else h[N:]
    assert model.w_f is not None
    hW_u, hW_f = model.w_u.rows(context.x, context.y, h[:N]), model.w_f.rows(context.x, context.x, h_f)
    kernel = 0
    for head in range(heads):
        A = attention_matrix(model, X, len(model.norms), head)
        kernel = kernel + hW_u[head] @ A[..., :N, :N] + hW_f[head] @ A[..., N:, :N]
    return kernel * (model.f_std / model.u_std) * model.shape.y.jacobian  # pyright: ignore


def attention_matrix(model: NAO, X: Float[Tensor, "*#b n d"], layer: int, head: int) -> Float[Tensor, "*#b n n"]:
    """A = Q Kᵀ / √dk."""
    both = model.projections[layer](X)
    dk, half = model.options.dk, both.shape[-1] // 2
    q, k = both[..., head * dk : (head + 1) * dk], both[..., half + head * dk : half + (head + 1) * dk]
    return q @ k.mT / sqrt(dk)
