"""What a data set is to hold: which specimens, under which loads, on which elements."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from kernelmap.core.errors import InputError
from kernelmap.problems.cache import code_hash
from kernelmap.problems.mechanics.forces import HELDOUT, TRAINING, ForceField
from kernelmap.problems.mechanics.images import Specimens
from kernelmap.problems.mechanics.solver.elements import read_elements

ELEMENTS = "q2-28"
LOADS = 200


@dataclass(frozen=True)
class Plan:
    """All specimens under the same `loads` loads; those for testing also under a quarter as many held-out loads."""

    specimens: Specimens
    forces: ForceField = field(default_factory=ForceField)
    loads: int = LOADS
    elements: str = ELEMENTS

    def __post_init__(self) -> None:
        if self.loads < 1:
            raise InputError(f"at least one load is needed, got {self.loads}.")
        read_elements(self.elements).corners(self.specimens.pixels)

    @property
    def heldout(self) -> int:
        return max(1, self.loads // 4)

    def coefficients(self) -> Float[np.ndarray, "L 2 k k"]:
        """Of all loads, the held-out ones last."""
        return np.concatenate([self.forces.draw(self.loads, TRAINING), self.forces.draw(self.heldout, HELDOUT)])

    def solved(self) -> Bool[np.ndarray, "S L"]:
        """Which loads each specimen is solved for: the held-out ones only where a split keeps it for testing."""
        tested = self.specimens.for_testing("id")
        if self.specimens.digits is not None:
            tested = tested | self.specimens.for_testing("ood")
        return (np.arange(self.loads + self.heldout) < self.loads) | tested[:, None]

    def about(self) -> dict[str, Any]:
        """All that the results depend on, as JSON has it."""
        about = {
            "problem": "mechanics",
            "names": self.specimens.names,
            "images": hashlib.sha256(self.specimens.images.tobytes()).hexdigest(),
            "forces": self.forces.about(),
            "loads": self.loads,
            "heldout_loads": self.heldout,
            "elements": self.elements,
            "code": code_hash(Path(__file__).parent),
        }
        return json.loads(json.dumps(about))
