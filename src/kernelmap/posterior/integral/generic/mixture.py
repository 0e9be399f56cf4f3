"""The bands of one system, each a mixture of components: bands are independent, so their variances add."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.grids import Grid
from kernelmap.core.state import prefixed, under
from kernelmap.posterior.integral.generic.bands import Bands
from kernelmap.posterior.integral.generic.component import Component
from kernelmap.posterior.integral.generic.matern import Matern

Weighted = tuple[tuple[float, Component], ...]

ARRAYS = ("W", "ones", "Q", "D")
NUMBERS = ("t", "tau2", "a2", "s2")


@dataclass(frozen=True)
class Mixture:
    """K = unit Σ_bands V Z, and Z of a band Σ_c weight_c N(mean_c, variance_c).

    A_scale, f_scale: sizes of w U and of F; all else is in these units. s2: variance of the noise on f.
    nonlinearity: log odds that responses are not linear in u.
    """

    V: Bands
    bands: tuple[Weighted, ...]
    A_scale: float
    f_scale: float
    s2: float
    nonlinearity: float

    @property
    def unit(self) -> float:
        return self.f_scale / self.A_scale

    def moments(
        self, of: Callable[[Component], tuple[Float[Tensor, "m n"], Float[Tensor, " n"]]]
    ) -> tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]]:
        """Mean and variance of n functionals of K(x, ·) at every x.

        Var = Σ_bands Σ_c weight_c [ Σ_i V_xi² variance_c + (V mean_c - V mean)² ]
        """
        means, variances = [], []
        for members, parts in zip(self.V.members, self.bands, strict=True):
            V, found = self.V.V[:, members], [(weight, *of(component)) for weight, component in parts]
            mean = torch.stack([weight * z for weight, z, _ in found]).sum(dim=0)
            within = torch.stack([weight * v for weight, _, v in found]).sum(dim=0)
            between = torch.stack([weight * (V @ (z - mean)).square() for weight, z, _ in found]).sum(dim=0)
            means.append(V @ mean)
            variances.append(V.square().sum(dim=-1)[:, None] * within + between)
        return torch.stack(means).sum(dim=0), torch.stack(variances).sum(dim=0)

    def prior_variance(self) -> Float[Tensor, "M 1"]:
        each = [
            self.V.V[:, members].square().sum(dim=-1) * sum(weight * c.prior_variance() for weight, c in parts)
            for members, parts in zip(self.V.members, self.bands, strict=True)
        ]
        return torch.stack(each).sum(dim=0)[:, None]

    def sample(self, count: int, generator: torch.Generator | None) -> list[Float[Tensor, "M N"]]:
        draws = [torch.zeros(()) for _ in range(count)]
        for members, parts in zip(self.V.members, self.bands, strict=True):
            weights = torch.tensor([weight for weight, _ in parts])
            chosen = torch.multinomial(weights, count, replacement=True, generator=generator).tolist()
            roots = {i: parts[i][1].root() for i in set(chosen)}
            V = self.V.V[:, members]
            draws = [K + V @ parts[i][1].sample(roots[i], generator) for K, i in zip(draws, chosen, strict=True)]
        return draws

    def state(self) -> dict[str, Tensor]:
        numbers = self.V.V.new_tensor
        state = {
            "V": self.V.V,
            "members": numbers([[members.start, members.stop] for members in self.V.members]),
            "sizes": numbers([self.A_scale, self.f_scale, self.s2, self.nonlinearity]),
        }
        for band, parts in enumerate(self.bands):
            for i, (weight, component) in enumerate(parts):
                arrays = {name: getattr(component, name) for name in ARRAYS}
                constants = [weight, *component.matern, *(getattr(component, name) for name in NUMBERS)]
                state |= prefixed(f"band{band}.{i}", arrays | {"constants": numbers(constants)})
        return state

    @classmethod
    def restored(cls, state: dict[str, Tensor], y: Grid) -> "Mixture":
        members = tuple(slice(int(low), int(high)) for low, high in state["members"].tolist())
        bands = []
        for band in range(len(members)):
            parts, own = [], under(state, f"band{band}")
            while part := under(own, str(len(parts))):
                weight, p, length, *constants = part.pop("constants").tolist()
                numbers = dict(zip(NUMBERS, constants, strict=True))
                parts.append((weight, Component(**part, **numbers, matern=Matern(int(p), length), y=y)))
            bands.append(tuple(parts))
        return cls(Bands(state["V"], members), tuple(bands), *state["sizes"].tolist())
