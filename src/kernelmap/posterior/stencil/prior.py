"""What local kernels look like: strengths of the bonds of a node, with a learned mean and a learned envelope."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.errors import InputError
from kernelmap.core.mesh.lattice import step_classes, steps

LEAST_NUGGET = 1e-6
"""Relative error of f that is always allowed for: what rounding may leave."""


@dataclass(frozen=True)
class LocalOptions:
    """Size of the prior of local kernels.

    Attributes:
        reach: bonds reach this many steps of the mesh in each direction; training decides how many of them matter.
    """

    reach: int = 3

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise InputError(f"the reach must be at least one step of the mesh, got {self.reach}.")


class LocalPrior(nn.Module):
    """c(x) = s (m (1 + τ z_0(x)) + a z(x)), z ~ N(0, 1), for a scale s that the context decides.

    m: mean strengths, positive, with a sum of 4 and none for the node itself; a: the envelope of deviations from them.
    Both are functions of the step in units of the mesh, the same for steps that are alike by symmetry. τ: how much the
    strength of all bonds together varies from node to node.
    """

    classes: Tensor

    def __init__(self, options: LocalOptions) -> None:
        super().__init__()
        classes = step_classes(options.reach)
        self.register_buffer("classes", classes, persistent=False)
        lengths = steps(options.reach).double().norm(dim=1)
        length = torch.zeros(int(classes.max()) + 1).scatter(0, classes, lengths.float())
        self.strength = nn.Parameter(3 - 3 * length[1:].square())
        self.envelope = nn.Parameter(-1 - length.square() / 2)
        self.amplitude = nn.Parameter(torch.tensor(math.log(0.5)))
        self.nugget = nn.Parameter(torch.tensor(math.log(1e-3)))

    def mean(self) -> Float[Tensor, " R"]:
        """m of every step."""
        positive = torch.cat([self.strength.new_zeros(1), self.strength.exp()])[self.classes]
        return 4 * positive / positive.sum()

    def weights(self) -> Float[Tensor, " features"]:
        """a of every step, and τ."""
        return torch.cat([self.envelope[self.classes], self.amplitude[None]]).exp()

    def nugget_variance(self) -> Tensor:
        """Relative variance of the error of f that no local kernel explains."""
        return (2 * self.nugget).exp() + LEAST_NUGGET**2
