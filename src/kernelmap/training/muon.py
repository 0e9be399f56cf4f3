"""Muon for the matrices of a model: momentum, made orthogonal.

torch.optim.Muon does the same in bfloat16, which costs a processor without it most of a small model's step.
"""

from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def orthogonalised(matrix: Float[Tensor, "m n"], steps: int = 5) -> Float[Tensor, "m n"]:
    """About U Vᵀ for the singular value decomposition U S Vᵀ, by the Newton-Schulz iteration

        X <- a X + (b X Xᵀ + c (X Xᵀ)²) X,    X_0 = matrix / ||matrix||

    whose odd polynomial carries singular values from (0, 1] to between 0.7 and 1.2 (Jordan et al., 2024).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    x = x / x.norm().clamp(min=torch.finfo(x.dtype).tiny)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if matrix.shape[0] <= matrix.shape[1] else x.mT


class Muon(torch.optim.Optimizer):
    """Steps of lr 0.2 √max(m, n) along the orthogonalised Nesterov momentum of an m x n gradient.

    The factor gives a step the size that Adam's would have, so both share a learning rate.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        for group in self.param_groups:
            lr, rate = group["lr"], 1 - group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, rate)
                direction = orthogonalised(weight.grad.lerp(mean, 1 - rate))
                weight.mul_(1 - lr * group["weight_decay"])
                weight.sub_(direction, alpha=0.2 * sqrt(max(weight.shape)) * lr)
