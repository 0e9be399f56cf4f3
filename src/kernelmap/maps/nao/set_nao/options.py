"""Size and form of the order-free NAO."""

from dataclasses import dataclass

from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.maps.nao.set_nao.modes import Basis

WAVES = {1: 20, 2: 12, 3: 5}
"""Waves in each direction, by the number of directions."""


@dataclass(frozen=True)
class SpectralOptions:
    """The functions of position that a map learns.

    Attributes:
        waves: cosines or sines in each direction; 20 on a line and 12 in the plane by default.
        basis: cosines, or sines where u and f vanish on the boundary.
        pull: of learned functions to where they start, in training: pairs say nothing of what no input excites.
    """

    waves: int | None = None
    basis: Basis = "cosines"
    pull: float = 1e-3

    def __post_init__(self) -> None:
        if (self.waves is not None and self.waves < 1) or not self.pull >= 0:
            raise InputError("waves must be at least 1, and pull must not be negative.")

    def count(self, shape: ContextShape) -> int:
        """Waves in each direction, for contexts of this shape."""
        return WAVES[len(shape.y.low)] if self.waves is None else self.waves


@dataclass(frozen=True)
class SetNAOOptions(SpectralOptions):
    """Size and form of the order-free NAO.

    Attributes:
        layers: attention layers; the more, the closer the answer comes to the pairs.
        heads: mixers of the u-tokens, whose attention scores are added.
        interpolation: layers of one more head, which fits what the others leave of the context; none by default.
    """

    layers: int = 6
    heads: int = 1
    interpolation: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.layers, self.heads) < 1 or self.interpolation < 0:
            raise InputError(
                f"layers and heads must be at least 1, got {self.layers} and {self.heads}, and layers of interpolation "
                f"must not be negative, got {self.interpolation}."
            )
