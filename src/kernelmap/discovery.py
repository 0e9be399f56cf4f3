"""`discover`: from the pairs of an unseen system to its kernel with an error bar, and what to think of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.cautions import Caution, Check, cautions_of
from kernelmap.context import Context
from kernelmap.errors import InputError
from kernelmap.estimators import Estimate, dartr
from kernelmap.files import atomic_path
from kernelmap.identifiability import Identifiability, identifiability_of
from kernelmap.kernel import Kernel
from kernelmap.maps import KernelMap, PosteriorMap
from kernelmap.metrics import operator_error

HELDOUT = 0.2
"""Share of the pairs that is kept back for the check."""

FEWEST = 20
"""With fewer pairs none is kept back: the kernel needs them all."""


@dataclass(frozen=True)
class Discovery:
    """What was found.

    kernel, std: the kernel and the standard deviation of its error at every point; the 95 % band is ± 1.96 std.
    context: all the pairs, from which the kernel was found.
    noise: estimated noise on f, as a share of its root mean square.
    heldout: pairs that a first attempt was not shown (None with too few pairs), `heldout_error` the relative error of
        predicting them, `heldout_coverage` the share of them inside their 95 % band.
    classical, classical_error: the classical estimate (DARTR), and its error on the same held-out pairs.
    predictive: inputs (1, N, n) -> mean and variance of their responses.
    about: model, hashes of model and data, version, command: what it takes to repeat this.
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
    predictive: Callable[[Tensor], tuple[Tensor, Tensor]]
    about: dict[str, Any] = field(default_factory=dict)

    def predict(self, U: Float[Tensor, "N n"]) -> tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]]:
        """Mean and standard deviation of the measured responses to n new inputs, noise included."""
        if U.shape[0] != self.context.y.size:
            raise InputError(
                f"new inputs must have {self.context.y.size} rows, one per grid value, got {tuple(U.shape)}."
            )
        with torch.no_grad():
            mean, variance = self.predictive(U.to(self.std)[None])
        return mean, variance.sqrt()

    def save(self, path: Path | str) -> None:
        """Write HDF5: kernel, std, grids y and x, and the numbers as attributes."""
        self.kernel.save(path)
        with atomic_path(path) as temporary:
            temporary.write_bytes(Path(path).read_bytes())
            with h5py.File(temporary, "a") as file:
                file["std"] = self.std.numpy()
                for name, value in self.summary().items():
                    if value is not None:
                        file.attrs[name] = value

    def summary(self) -> dict[str, Any]:
        """The numbers, for a JSON file."""
        return {
            "pairs": self.context.d,
            "noise": self.noise,
            "heldout_pairs": None if self.heldout is None else self.heldout.d,
            "heldout_error": self.heldout_error,
            "heldout_coverage": self.heldout_coverage,
            "classical_error": self.classical_error,
            "effective_rank": self.identifiability.effective_rank,
            "determined": self.identifiability.determined,
        }


def discover(model: KernelMap, context: Context, about: dict[str, Any] | None = None) -> Discovery:
    """The hidden kernel of one system, with error bar, check on pairs kept back, diagnosis and cautions.

    The check keeps back one pair in five, finds a kernel from the rest and predicts them; the kernel that is returned
    is found from all pairs.
    """
    if not isinstance(model, PosteriorMap):
        raise InputError("discover needs a posterior map, which knows its error; use the shipped model `radial`.")
    if context.batch_shape:
        raise InputError(f"discover takes one system, got a batch of shape {tuple(context.batch_shape)}.")
    model.check_context(context)
    context = context.to(torch.float64)
    if not context.F.abs().max() > 0:
        raise InputError("all measured responses f are zero: there is nothing to discover.")
    model = model.double()
    with torch.no_grad():
        posterior = model.posterior(context)
        std = model.standard_deviation(posterior)
    check = _check(model, context) if context.d >= FEWEST else None
    diagnosis = identifiability_of(context, posterior)
    return Discovery(
        kernel=Kernel(posterior.kernel, context.y, context.x),
        std=std,
        context=context,
        noise=float(posterior.noise.mean()),
        heldout=None if check is None else check.heldout,
        heldout_error=None if check is None else check.error,
        heldout_coverage=None if check is None else check.coverage,
        classical=dartr(context),
        classical_error=None if check is None else check.classical_error,
        identifiability=diagnosis,
        cautions=cautions_of(context, model.shape.y, posterior, diagnosis, check),
        predictive=posterior.predict,
        about=about or {},
    )


def _check(model: PosteriorMap, context: Context) -> Check:
    """Keep pairs back, and predict them."""
    order = torch.randperm(context.d, generator=torch.Generator().manual_seed(0))
    count = round(HELDOUT * context.d)
    heldout, rest = context.select(order[:count]), context.select(order[count:])
    with torch.no_grad():
        mean, variance = model.posterior(rest).predict(heldout.U[None])
    surprise = (mean - heldout.F) / variance.sqrt()
    return Check(
        heldout,
        error=float(operator_error(mean, heldout.F, context.x)),
        coverage=float((surprise.abs() <= 1.96).double().mean()),
        surprise=float(surprise.square().mean().sqrt()),
        classical_error=float(operator_error(dartr(rest).kernel.apply(heldout.U), heldout.F, context.x)),
    )
