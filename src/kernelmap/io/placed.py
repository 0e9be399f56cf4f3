"""`Inputs`: new inputs, and where their responses belong in an array of the shape of f."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.places import Places
from kernelmap.io.entries import Entries, numbers


def partly_measured(entries: Entries, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
    """The responses in a file of inputs, where it has them."""
    values = numbers(entries, name) if name in entries else np.empty(0)
    return values if values.size == np.prod(shape) else None


@dataclass(frozen=True)
class Inputs:
    """n inputs; the responses (M, n), pair by pair, are the entries `at` of an array of this shape.

    places: where or when every entry of that array is, by name, where the file says so.
    of_inputs: where or when the inputs themselves are.
    responses: the array itself, where the file has one that may be measured in part.
    """

    U: Float[Tensor, "N n"]
    shape: tuple[int, ...]
    at: Int[np.ndarray, " m"]
    places: dict[str, np.ndarray] = field(default_factory=dict)
    of_inputs: Places | None = None
    responses: np.ndarray | None = None

    def laid_out(self, values: Float[Tensor, "M n"]) -> np.ndarray:
        """Responses in the shape of f; NaN where u does not say what f is."""
        f = np.full(self.shape, np.nan)
        f.flat[self.at] = values.cpu().numpy().T.ravel()
        return f
