"""`discover`: from the pairs of an unseen system to its kernel with an error bar, and what to think of it."""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from kernelmap.context import Context
from kernelmap.estimators import Estimate
from kernelmap.identifiability import Identifiability
from kernelmap.kernel import Kernel


@dataclass(frozen=True)
class Caution:
    """Something the user should know: what was seen, its likely cause, and a remedy."""

    seen: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Discovery:
    """What was found.

    kernel, std: the kernel and the standard deviation of its error at every point; the 95 % band is ± 1.96 std.
    noise: estimated noise on f, as a share of its root mean square.
    heldout: pairs that were kept back (None with too few pairs), `heldout_error` the relative error of predicting
        them, `heldout_coverage` the share of them inside their 95 % band.
    classical, classical_error: the classical estimate (DARTR) from the same pairs, and its error on the held-out pairs.
    about: model name, hashes of model and data, version, command: what it takes to repeat this.
    """

    kernel: Kernel
    std: Float[Tensor, "M N"]
    context: Context
    noise: float
    heldout: Context | None
    heldout_error: float | None
    heldout_coverage: float | None
    classical: Estimate
    classical_error: float | None
    identifiability: Identifiability
    cautions: tuple[Caution, ...]
    about: dict[str, Any] = field(default_factory=dict)

    def predict(self, U: Float[Tensor, "N n"]) -> tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]]:
        """Mean and standard deviation of the responses to n new inputs."""
        raise NotImplementedError
