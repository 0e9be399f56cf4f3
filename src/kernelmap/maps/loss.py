"""What training minimises. A map supplies its loss; by default it is the operator error on the context's own pairs."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import operator_error, squared_norm


class Loss(nn.Module):
    """(U, F) -> the loss of every context. The true kernels play no part.

    Attributes:
        model: the kernel map.
        targets: pairs of a draw beyond the context's own, to be predicted.
        variants: seeds that a validation averages over.
        single_process: whether a step needs its whole batch in one process.
        double_precision: whether the map computes in float64 only.
        points: output points that a step of training compares, drawn anew; all if None.
    """

    targets: ClassVar[int] = 0
    variants: ClassVar[int] = 1
    single_process: ClassVar[bool] = False
    double_precision: ClassVar[bool] = False

    def __init__(self, model: Callable[..., Any], y: Grid, x: Grid, points: int | None = None) -> None:
        super().__init__()
        if points is not None and not 1 <= points <= len(x.points):
            raise InputError(f"a step needs from 1 to all {len(x.points)} output points, got {points}.")
        self.model, self.y, self.x, self.points = model, y, x, points

    @classmethod
    def pairs(cls, d: int) -> int:
        """Pairs a draw needs for contexts of up to d."""
        return d + cls.targets

    @abstractmethod
    def forward(self, U: Float[Tensor, "*bu N D"], F: Float[Tensor, "*bf M D"], seed: int) -> Float[Tensor, "*bf"]: ...


class ContextLoss(Loss):
    """||K_hat U - F|| / ||F|| of every context. At few points, NAO evaluates its functions of two points there only."""

    def forward(self, U: Float[Tensor, "*bu N d"], F: Float[Tensor, "*bf M d"], seed: int) -> Float[Tensor, "*bf"]:
        context = Context.unchecked(U, F, self.y, self.x)
        if self.points is None or not self.training:
            return operator_error(self.model(context).apply(U), F, self.x)
        order = torch.randperm(len(self.x.points), generator=torch.Generator().manual_seed(seed))
        chosen = order[: self.points].to(F.device)
        x = self.x.sample(chosen)
        measured = F.unflatten(-2, (x.components, -1))[..., chosen, :].flatten(-3, -2)
        # Over ||F|| at all points: a few of them may all lie where responses are zero.
        return (
            (squared_norm(self.model(context, x).apply(U) - measured, x) / squared_norm(F, self.x)).sqrt().mean(dim=-1)
        )
