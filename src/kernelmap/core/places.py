"""`Places`: where or when each pair was measured, so that a diagnostic can name it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError


@dataclass(frozen=True)
class Places:
    """values[j] are the coordinates of pair j, such as a location x or a time t; `names` are those of the columns."""

    values: Float[Tensor, "d k"]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names) or not self.names:
            raise InputError(
                f"the places of d pairs are an array (d, {len(self.names)}) with a name for every column, got shape "
                f"{tuple(self.values.shape)} and the names {list(self.names)}."
            )
        if not torch.isfinite(self.values).all():
            raise InputError("the places of pairs must be finite; drop the pairs without one.")

    def __len__(self) -> int:
        return len(self.values)

    def select(self, pairs: Tensor) -> "Places":
        return Places(self.values[pairs], self.names)

    def name(self, pair: int) -> str:
        """Such as `x = 1.25`."""
        values = self.values[pair].tolist()
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.names, values, strict=True))
