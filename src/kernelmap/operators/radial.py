"""Tokens of the radial problem, from u sampled on a uniform mesh."""

import torch
from jaxtyping import Float
from torch import Tensor


def radial_tokens(u: Float[Tensor, "n J_plus_2R"], radii: int) -> Float[Tensor, "n J R"]:
    """g[u](r_k, x_j) = u(x_j + r_k) + u(x_j - r_k) - 2u(x_j) with r_k = k dx, k = 1..radii.

    The mesh must reach `radii` steps beyond the first and the last location x_j.
    """
    windows = u.unfold(-1, radii, 1)
    count = u.shape[-1] - 2 * radii
    ahead = windows[..., radii + 1 : radii + 1 + count, :]
    behind = windows[..., :count, :].flip(-1)
    centre = u[..., radii : radii + count, None]
    return torch.add(ahead, behind).sub_(2 * centre)
