"""Learned functions of position: evaluated on a grid they give a vector, on two grids a matrix."""

from itertools import pairwise, product

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.maps.domain import Domain

HIDDEN = (32, 64)


def mlp(inputs: int, outputs: int, hidden: tuple[int, ...] = HIDDEN) -> nn.Sequential:
    """Linear layers with LeakyReLU between them."""
    sizes = (inputs, *hidden, outputs)
    layers: list[nn.Module] = [nn.Linear(sizes[0], sizes[1])]
    for left, right in pairwise(sizes[1:]):
        layers += [nn.LeakyReLU(), nn.Linear(left, right)]
    return nn.Sequential(*layers)


class GridFunction(nn.Module):
    """A function of one point in each of several domains, with one MLP for every choice of field components.

    Domains that are a single point carry no coordinate; where all of them are, the function is a constant.
    """

    def __init__(self, domains: tuple[Domain, ...], outputs: int) -> None:
        super().__init__()
        self.domains, self.outputs = domains, outputs
        self.choices = list(product(*(range(domain.components) for domain in domains)))
        inputs = sum(len(domain.low) for domain in domains if not domain.is_point)
        if inputs:
            self.parts = nn.ModuleList(mlp(inputs, outputs) for _ in self.choices)
        else:
            self.constants = nn.Parameter(torch.empty(len(self.choices), outputs).uniform_(-1, 1))

    def forward(self, *coordinates: Float[Tensor, "_ _"]) -> Float[Tensor, "outputs ..."]:
        """Values of shape (outputs, size of grid 1, size of grid 2, ...)."""
        sizes = [len(c) for c in coordinates]
        if hasattr(self, "parts"):
            points = self._product(coordinates)
            values = torch.stack([part(points) for part in self.parts])
        else:
            values = self.constants[:, None, :]
        components = [domain.components for domain in self.domains]
        values = values.reshape(*components, *sizes, self.outputs)
        count = len(sizes)
        order = [axis for i in range(count) for axis in (i, count + i)]
        flat = [c * n for c, n in zip(components, sizes, strict=True)]
        return values.permute(2 * count, *order).reshape(self.outputs, *flat)

    def _product(self, coordinates: tuple[Tensor, ...]) -> Float[Tensor, "points inputs"]:
        """The coordinates of all combinations of points, first grid slowest."""
        sizes = [len(c) for c in coordinates]
        columns = []
        for i, (c, domain) in enumerate(zip(coordinates, self.domains, strict=True)):
            if not domain.is_point:
                shape = [n if j == i else 1 for j, n in enumerate(sizes)]
                columns.append(c.reshape(*shape, -1).expand(*sizes, c.shape[1]))
        return torch.cat(columns, dim=-1).reshape(-1, sum(c.shape[-1] for c in columns))
