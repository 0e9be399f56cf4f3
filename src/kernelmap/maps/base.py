"""What all kernel maps share: options, the standardisation of tokens, and the checks at the door."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.grids import Grid
from kernelmap.kernel import Kernel
from kernelmap.maps.domain import ContextShape

Normaliser = Literal["continuous", "functions", "tokens", "array"]


@dataclass(frozen=True)
class MapOptions:
    """Size and form of a map.

    Attributes:
        dk: width of queries and keys per head (AFNO and Autoencoder: scales their channels).
        layers: attention layers, of which the last gives the kernel.
        heads: attention heads, each with its own normaliser and its own part of the kernel.
        normaliser: `continuous` (functions of position), `functions` (LayerNorm over the whole array, with functions of
            position for every pair), or LayerNorm over `tokens` or the whole `array`; the map's own choice by default.
        hidden: widths of the hidden layers of NAO's functions of position.
        rank: terms a(x) b(z) of NAO's functions of two positions, which then cost as much as the grid is long; by
            default they are networks of (x, z).
        per_component: a map of its own for every component of the output.
    """

    dk: int = 10
    layers: int = 2
    heads: int = 1
    normaliser: Normaliser | None = None
    hidden: tuple[int, int] = (32, 64)
    rank: int | None = None
    per_component: bool = False

    def __post_init__(self) -> None:
        sizes = (self.dk, self.layers, self.heads, *self.hidden, 1 if self.rank is None else self.rank)
        if min(sizes) < 1:
            raise InputError(f"dk, layers, heads, hidden widths and rank must be at least 1, got {sizes}.")


class KernelMap(nn.Module):
    """Context -> Kernel. Subclasses write `kernel`, which may rely on a checked context."""

    Options: ClassVar[type] = MapOptions

    at_any_point: ClassVar[bool] = False
    """Whether the kernel is a function of its output point."""

    u_mean: Tensor
    u_std: Tensor
    f_mean: Tensor
    f_std: Tensor

    def __init__(self, shape: ContextShape, options: Any) -> None:
        super().__init__()
        self.shape, self.options = shape, options
        for name, value in (("u_mean", 0.0), ("u_std", 1.0), ("f_mean", 0.0), ("f_std", 1.0)):
            self.register_buffer(name, torch.tensor(value))

    def kernel(self, context: Context) -> Kernel:
        raise NotImplementedError

    def kernel_at(self, context: Context, x: Grid) -> Kernel:
        """At the output points x, which for most maps can only be the context's."""
        if not x.has_points_of(context.x):
            raise InputError("this map has a kernel at the context's own output points only; NAO takes any.")
        return self.kernel(context)

    def check_pairs(self, d: int) -> None:
        if d != self.shape.d:
            raise InputError(
                f"this model takes contexts of exactly d = {self.shape.d} pairs, got {d}. "
                f"Select {self.shape.d} pairs, or use a model trained for d = {d}."
            )

    def check_context(self, context: Context) -> None:
        """Refuse what the map cannot take."""
        self.check_pairs(context.d)
        self.shape.y.check(context.y, "y")
        self.shape.x.check(context.x, "x")

    def forward(self, context: Context, x: Grid | None = None) -> Kernel:
        """The kernel, at the output points x; the context's own by default."""
        self.check_context(context)
        if x is not None:
            self.shape.x.check_places(x, "x")
        context = context.to(self.u_std.dtype)
        return self.kernel_at(context, context.x if x is None else x).expand(context.batch_shape)

    def standardise(self, u: Tensor, f: Tensor) -> None:
        """Take mean and standard deviation of all u-tokens and all f-tokens from training data."""
        for name, values in (("u", u), ("f", f)):
            std = float(values.std())
            if not std > 0:
                raise InputError(f"all training values of {name} are equal; there is nothing to learn from.")
            getattr(self, f"{name}_mean").fill_(float(values.mean()))
            getattr(self, f"{name}_std").fill_(std)

    @property
    def unit(self) -> Tensor:
        """From the kernel of standardised tokens in coordinates z to the physical one: σ_f/σ_u dz/dy."""
        return self.f_std / self.u_std * self.shape.y.jacobian

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())
