"""Networks of position: evaluated on a grid they give a vector, on two grids a matrix."""

from itertools import pairwise, product

import torch
import torch.utils.checkpoint
from jaxtyping import Float
from torch import Tensor, nn

from kernelmap.core.domain import Domain
from kernelmap.core.grids import Grid
from kernelmap.maps.nao.functions.base import TwoPointFunction

HIDDEN = (32, 64)

BLOCK = 2**18
"""Values of a function of two points that are held at a time; larger integrals forget them and make them again."""

PIECE = 2**12
"""Points at which a network is evaluated at a time."""


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

    def __init__(self, domains: tuple[Domain, ...], outputs: int, hidden: tuple[int, ...] = HIDDEN) -> None:
        super().__init__()
        self.domains, self.outputs = domains, outputs
        self.choices = list(product(*(range(domain.components) for domain in domains)))
        inputs = sum(len(domain.low) for domain in domains if not domain.is_point)
        if inputs:
            self.parts = nn.ModuleList(mlp(inputs, outputs, hidden) for _ in self.choices)
        else:
            self.constants = nn.Parameter(torch.empty(len(self.choices), outputs).uniform_(-1, 1))

    def forward(self, *coordinates: Float[Tensor, "_ _"]) -> Float[Tensor, "outputs ..."]:
        """Values of shape (outputs, size of grid 1, size of grid 2, ...)."""
        sizes = [len(c) for c in coordinates]
        if hasattr(self, "parts"):
            # In pieces whose activations stay in the processor's cache.
            pieces = self._product(coordinates).split(PIECE)
            values = torch.stack([torch.cat([part(piece) for piece in pieces]) for part in self.parts])
        else:
            values = self.constants[:, None, :]
        components = [domain.components for domain in self.domains]
        values = values.reshape(*components, *sizes, self.outputs)
        count = len(sizes)
        order = [axis for i in range(count) for axis in (i, count + i)]
        flat = [c * n for c, n in zip(components, sizes, strict=True)]
        return values.permute(2 * count, *order).reshape(self.outputs, *flat)

    @torch.no_grad()
    def set_constant(self, value: float) -> None:
        """The same everywhere, from where training goes on."""
        if not hasattr(self, "parts"):
            self.constants.fill_(value)
            return
        for part in self.parts:
            last = next(layer for layer in reversed(list(part.children())) if isinstance(layer, nn.Linear))
            last.weight.zero_()
            last.bias.fill_(value)

    def _product(self, coordinates: tuple[Tensor, ...]) -> Float[Tensor, "points inputs"]:
        """The coordinates of all combinations of points, first grid slowest."""
        sizes = [len(c) for c in coordinates]
        columns = []
        for i, (c, domain) in enumerate(zip(coordinates, self.domains, strict=True)):
            if not domain.is_point:
                shape = [n if j == i else 1 for j, n in enumerate(sizes)]
                columns.append(c.reshape(*shape, -1).expand(*sizes, c.shape[1]))
        return torch.cat(columns, dim=-1).reshape(-1, sum(c.shape[-1] for c in columns))


class NetworkFunction(GridFunction, TwoPointFunction):
    """W(x, z) as networks of (x, z), which is the paper's form: an integral takes M N evaluations."""

    def __init__(self, x: Domain, z: Domain, heads: int, hidden: tuple[int, ...] = HIDDEN) -> None:
        super().__init__((x, z), heads, hidden)
        self.heads = heads

    def integrate(
        self, x: Grid, z: Grid, h: Float[Tensor, " N"], values: Float[Tensor, "*#b H N k"]
    ) -> Float[Tensor, "*#b H M k"]:
        """A block of rows x at a time: of order M N in time, not in memory."""
        at, there = self._coordinates(x, z, h)
        components = self.domains[0].components
        rows = max(1, BLOCK // (len(there) * len(self.choices)))
        weighted = h[:, None] * values

        def part(x: Tensor, values: Tensor) -> Tensor:
            return integral(self(x, there), values).unflatten(-2, (components, len(x)))

        if len(at) <= rows:
            return part(at, weighted).flatten(-3, -2)
        parts = [torch.utils.checkpoint.checkpoint(part, c, weighted, use_reentrant=False) for c in at.split(rows)]
        return torch.cat(parts, dim=-2).flatten(-3, -2)

    def rows(self, x: Grid, z: Grid, h: Float[Tensor, " N"]) -> Float[Tensor, "H M N"]:
        return self(*self._coordinates(x, z, h)) * h

    def _coordinates(self, x: Grid, z: Grid, h: Tensor) -> tuple[Float[Tensor, "m dx"], Float[Tensor, "n dz"]]:
        """In [-1, 1], in the precision of h."""
        at, there = (domain.coordinates(grid).to(h) for domain, grid in zip(self.domains, (x, z), strict=True))
        return at, there


def integral(W: Float[Tensor, "H M N"], values: Float[Tensor, "*#b H N k"]) -> Float[Tensor, "*#b H M k"]:
    """Σ_z W(x, z) v(z) as one product for the whole batch: `W @ values` makes a gradient of W for each member of it."""
    return torch.einsum("hmn,...hnk->...hmk", W, values)
