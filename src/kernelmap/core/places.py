"""`Places`: where or when each pair was measured, so that a diagnostic can name it."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta

import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError

DATE = "date"
MOST_DAYS = 7e5
"""From 1970 on, either way: the years that `datetime` knows."""


@dataclass(frozen=True)
class Places:
    """values[j] are the coordinates of pair j, such as a location x or a time t; `names` are those of the columns.

    A column named `date` holds days since 1970-01-01 and is shown as a date.
    """

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
        """Such as `x = 1.25`, or `2003-01-31`."""
        return ", ".join(map(_shown, self.names, self.values[pair].tolist()))


def _shown(name: str, value: float) -> str:
    if name != DATE or abs(value) > MOST_DAYS:
        return f"{name} = {value:.6g}"
    moment = datetime(1970, 1, 1) + timedelta(seconds=round(86400 * value))
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat()
