"""`Inputs`: new inputs, and where their responses belong in an array of the shape of f."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.places import Places


@dataclass(frozen=True)
class Inputs:
    """n inputs; the responses (M, n), pair by pair, are the entries `at` of an array of this shape.

    places: where or when every entry of that array is, by name, where the file says so.
    of_inputs: where or when the inputs themselves are.
    responses: that array as it is in the file, where it may be measured in part; not checked.
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
