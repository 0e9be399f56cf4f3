"""What all kernel maps share: the standardisation of tokens, and the checks at the door."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.core.systems import SystemSet
from kernelmap.maps.loss import ContextLoss
from kernelmap.maps.loss import Loss as LossModule


@dataclass(frozen=True)
class NoOptions:
    """A map without sizes to choose."""


class KernelMap(nn.Module):
    """Context -> Kernel. Subclasses write `kernel`, which may rely on a checked context, and join the registry.

    Attributes:
        name: in the registry.
        Options: a frozen dataclass, whose fields are the options of `kernelmap train`.
        Loss: what training minimises; None where a map is fitted by `fit` instead.
        at_any_point: whether the kernel is a function of its output point.
        any_range: whether it takes grids of any range, not only that of training.
        tied_to_pairs: whether contexts must have exactly the d pairs of training.
        several_inputs: whether it finds a kernel for each of several inputs that act together.
    """

    name: str = ""
    Options: ClassVar[type] = NoOptions
    Loss: ClassVar[type[LossModule] | None] = ContextLoss
    at_any_point: ClassVar[bool] = False
    any_range: ClassVar[bool] = False
    tied_to_pairs: ClassVar[bool] = True
    several_inputs: ClassVar[bool] = False

    u_mean: Tensor
    u_std: Tensor
    f_mean: Tensor
    f_std: Tensor

    def __init__(self, shape: ContextShape, options: Any) -> None:
        super().__init__()
        self.shape, self.options = shape, options
        for name, value in (("u_mean", 0.0), ("u_std", 1.0), ("f_mean", 0.0), ("f_std", 1.0)):
            self.register_buffer(name, torch.tensor(value))

    @classmethod
    def build(cls, shape: ContextShape, options: Any) -> "KernelMap":
        """A new map for contexts of this shape."""
        return cls(shape, options)

    @classmethod
    def saved_options(cls, values: dict[str, Any]) -> Any:
        """The options of a saved model, of an earlier version too."""
        return cls.Options(**values)

    @classmethod
    def fit(cls, systems: SystemSet | Sequence[Context], d: int, options: Any) -> "KernelMap":
        """A map without a loss, from the pairs of training systems."""
        raise InputError(f"the map {cls.name} is trained by its loss.")

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

    def check_inputs(self, context: Context) -> None:
        """Refuse several inputs that act together where the map finds one kernel."""
        if context.blocks is not None and len(context.blocks) > 1 and not self.several_inputs:
            raise InputError(
                f"u holds {len(context.blocks)} inputs that act together, and the map {self.name} does not take "
                "several yet: it finds one kernel. Give one input, or one that you put together, such as rain - 0.8 "
                "evaporation."
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

    def begin(self, contexts: Callable[[], Iterable[Context]]) -> None:
        """Start from the training contexts, where a map can; they are made in batches, when they are asked for."""

    @property
    def unit(self) -> Tensor:
        """From the kernel of standardised tokens in coordinates z to the physical one: σ_f/σ_u dz/dy."""
        return self.f_std / self.u_std * self.shape.y.jacobian

    def on(self, device: str | None) -> "KernelMap":
        """This map, or a copy of it on another device."""
        if device is None:
            return self
        try:
            moved = deepcopy(self).to(device)
            moved.u_std.tolist()  # `meta` takes a map too, but holds no numbers
            return moved
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise InputError(f"the device {device!r} cannot be used: {str(error).splitlines()[0]}") from error

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())
