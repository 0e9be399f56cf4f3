"""What is known of one kernel after its pairs were seen: a mixture of Gaussians, weighed by evidence."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.posterior.kernel1d.components import Component, Features
from kernelmap.posterior.kernel1d.errors import ErrorShape
from kernelmap.posterior.kernel1d.evidence import Conditioned, Whitened, condition
from kernelmap.posterior.kernel1d.prior import Prior

PRUNED = 1e-4
"""Cells of the mixture with a smaller weight are left out."""


Blocks = list[Tensor] | dict[int, Tensor]
"""Features, or linear functionals of them, by the number of their block: each (n, R) with an R of its own."""


class Cell(NamedTuple):
    """One component under one shape of errors: its ratios γ that matter, with their weights in the mixture."""

    index: int
    component: Component
    shape: ErrorShape
    given: Conditioned
    chosen: Int[Tensor, " C"]
    weights: Float[Tensor, " C"]


class Mixture(NamedTuple):
    """K ~ Σ over cells and ratios γ of weight N(mean, covariance), on a grid; all in the units of the engine.

    weights: of all components.
    log_evidence: of the pairs, under the whole prior.
    """

    features: Features
    cells: list[Cell]
    weights: Float[Tensor, " K"]
    log_evidence: float

    @property
    def blocks(self) -> set[int]:
        """Numbers of the blocks of features that the cells use."""
        return {cell.component.block for cell in self.cells}

    def moments(self, blocks: Blocks) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (C,), means and variances (C, n) of linear functionals of K, given by those of the features."""
        parts = [
            cell.given.moments(blocks[cell.component.block][:, cell.component.columns], cell.chosen)
            for cell in self.cells
        ]
        weights = torch.cat([cell.weights for cell in self.cells])
        return weights, torch.cat([mean for mean, _ in parts]), torch.cat([variance for _, variance in parts])

    def kappas(self) -> Float[Tensor, " C"]:
        return torch.cat([cell.given.kappa[cell.chosen] for cell in self.cells])

    def log_alpha(self) -> Float[Tensor, " C"]:
        """The amplitude, in every cell."""
        return torch.cat([cell.given.gamma[cell.chosen] for cell in self.cells]).log() + self.kappas().log()

    def error_variance(self, b: Float[Tensor, " n"]) -> Float[Tensor, "C n"]:
        """Of measured responses, in every cell, whose jumps have the variance b."""
        jumping = torch.cat([torch.full_like(cell.weights, float(cell.shape.has_jumps)) for cell in self.cells])
        return self.white_variance()[:, None] + (jumping * self.kappas())[:, None] * b

    def white_variance(self) -> Float[Tensor, " C"]:
        """Of the noise, in every cell."""
        return torch.cat([cell.shape.nugget * cell.given.kappa[cell.chosen] for cell in self.cells])


def pool(
    weights: Float[Tensor, " C"], means: Float[Tensor, "C n"], variances: Float[Tensor, "C n"]
) -> tuple[Tensor, Tensor]:
    """Mean and variance of a mixture."""
    mean = weights @ means
    return mean, weights @ (variances + (means - mean).square())


def weigh(
    features: Features,
    responses: dict[int, Tensor],
    f: Float[Tensor, " d"],
    components: list[int],
    shapes: list[ErrorShape],
    prior: Prior,
    least_noise: float,
) -> Mixture:
    """Condition components under every shape of errors, whose white part has at least the level `least_noise`."""
    found: list[tuple[int, ErrorShape, Conditioned]] = []
    for shape in shapes:
        whitened: dict[int, Whitened] = {}
        for index in components:
            block, columns, omega = features.components[index]
            if block not in whitened:
                whitened[block] = Whitened.of(responses[block], f, shape)
            found.append((index, shape, condition(whitened[block], columns, omega, prior.amplitude, least_noise**2)))
    log_weights = torch.stack([given.log_weight + prior.log_odds[index] for index, _, given in found])
    weights = log_weights.flatten().softmax(dim=0).reshape(log_weights.shape)
    cells = []
    for (index, shape, given), own in zip(found, weights, strict=True):
        chosen = (own > PRUNED).nonzero()[:, 0]
        if len(chosen):
            cells.append(Cell(index, features.components[index], shape, given, chosen, own[chosen]))
    total = sum(cell.weights.sum() for cell in cells)
    cells = [cell._replace(weights=cell.weights / total) for cell in cells]
    numbers = torch.tensor([index for index, _, _ in found], device=f.device)
    each = torch.zeros_like(prior.log_odds).index_add(0, numbers, weights.sum(dim=1))
    return Mixture(features, cells, each, float(log_weights.logsumexp(dim=(0, 1))))
