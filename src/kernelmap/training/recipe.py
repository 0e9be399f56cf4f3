"""How a model is trained: the numbers, and the learning rate as a function of time."""

from dataclasses import dataclass
from math import cos, inf, pi
from typing import Literal

import torch
from torch import nn

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import check_seed
from kernelmap.training.muon import Muon


@dataclass(frozen=True)
class Recipe:
    """The paper's recipe by default, but for the number of epochs.

    Attributes:
        epochs: passes over all contexts.
        batch: contexts per step, over all processes.
        lr: largest learning rate.
        schedule: step (times 0.9 every 100 epochs, as released), one-cycle, cosine or constant.
        optimizer: adam, adamw, or muon (for matrices of at least 8 rows and columns; adam for the rest).
        weight_decay: of the optimiser.
        precision: float32 or float64.
        clip: largest norm of a gradient; longer ones are shortened.
        points: output points, drawn anew in every step, at which responses are compared; all by default.
        random_draws: draw the pairs of every context anew in every epoch, instead of fixed strided contexts.
        validation: fraction of each system's contexts kept for choosing the checkpoint.
        validation_systems: whole systems kept for that instead, so that the checkpoint is chosen on systems not seen.
        validation_inputs: inputs kept for validation where systems share theirs, so that the checkpoint is chosen on
            inputs not seen either; for maps that predict pairs they are not shown.
        every: epochs between validations, each with a checkpoint.
        seed: of the weights, the order of contexts and the draws.
    """

    epochs: int = 2000
    batch: int = 10
    lr: float = 3e-3
    schedule: Literal["step", "one-cycle", "cosine", "constant"] = "step"
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    weight_decay: float = 1e-5
    precision: Literal["float32", "float64"] = "float32"
    clip: float | None = None
    points: int | None = None
    random_draws: bool = False
    validation: float = 0.1
    validation_systems: int = 0
    validation_inputs: int = 0
    every: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.every) < 1 or not 0 < self.lr < inf or not 0 < self.validation < 1:
            raise InputError("epochs, batch and every must be at least 1, lr positive, and validation between 0 and 1.")
        check_seed(self.seed)
        if self.validation_systems < 0:
            raise InputError(f"validation systems cannot be fewer than none, got {self.validation_systems}.")
        if self.validation_inputs < 0 or (self.validation_inputs and not self.random_draws):
            raise InputError("validation inputs cannot be fewer than none, and need random draws.")
        if not 0 <= self.weight_decay < inf or (self.clip is not None and not self.clip > 0):
            raise InputError("weight decay must not be negative, and clip must be positive.")

    @property
    def dtype(self) -> torch.dtype:
        return {"float32": torch.float32, "float64": torch.float64}[self.precision]

    def optimizers(self, module: nn.Module) -> list[torch.optim.Optimizer]:
        """For all parameters of a module."""
        parameters = list(module.parameters())
        if self.optimizer == "adamw":
            return [torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay, fused=True)]
        matrices = [p for p in parameters if p.ndim == 2 and min(p.shape) >= 8] if self.optimizer == "muon" else []
        others = [p for p in parameters if all(p is not matrix for matrix in matrices)]
        adam = torch.optim.Adam(others, lr=self.lr, weight_decay=self.weight_decay, fused=True)
        return [adam, Muon(matrices, self.lr, self.weight_decay)] if matrices else [adam]


def learning_rate(recipe: Recipe, epoch: float) -> float:
    """The learning rate at a time given in epochs: a pure function, so a resumed run needs no state for it."""
    time = epoch / recipe.epochs
    if recipe.schedule == "step":
        return recipe.lr * 0.9 ** int(epoch // 100)
    if recipe.schedule == "cosine":
        return recipe.lr * (1 + cos(pi * time)) / 2
    if recipe.schedule == "one-cycle":
        warm = 0.3
        if time < warm:
            return recipe.lr * (1 / 25 + (1 - 1 / 25) * (1 - cos(pi * time / warm)) / 2)
        return recipe.lr * (1 + cos(pi * (time - warm) / (1 - warm))) / 2
    return recipe.lr
