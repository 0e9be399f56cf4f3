"""`discover`: from the pairs of an unseen system to its kernel with an error bar, and what to think of it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite
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
from kernelmap.maps import BandedMap, HiddenField, KernelMap
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
    predictive: inputs (N, n) -> mean and variance of their responses.
    hidden: the field of the medium that the kernel comes from, with its standard deviation, where the model has one.
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
    heldout_prediction: tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]] | None = None
    hidden: HiddenField | None = None

    def predict(self, U: Float[Tensor, "N n"]) -> tuple[Float[Tensor, "M n"], Float[Tensor, "M n"]]:
        """Mean and standard deviation of the measured responses to n new inputs, noise included."""
        if U.ndim != 2 or U.shape[0] != self.context.y.size or not torch.isfinite(U).all():
            raise InputError(
                f"new inputs must be finite with shape ({self.context.y.size}, n), one row per grid point; "
                f"got shape {tuple(U.shape)}."
            )
        with torch.no_grad():
            mean, variance = self.predictive(U.to(self.std))
        return mean, variance.sqrt()

    def save(self, path: Path | str) -> None:
        """Write HDF5: a kernel file with `std`, `classical` and `hidden` beside it, and the numbers as attributes."""
        with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
            self.kernel.write(file)
            file["std"], file["classical"] = self.std.numpy(), self.classical.kernel.values.numpy()
            if self.hidden is not None:
                for part in ("points", "values", "std"):
                    file[f"hidden/{part}"] = getattr(self.hidden, part).numpy()
                file["hidden"].attrs.update({"name": self.hidden.name, **self.hidden.constants})
            for name, value in self.summary().items():
                if value is not None:
                    file.attrs[name] = value

    def plot(self, path: Path | str) -> None:
        """The kernel with its band, as PNG, SVG or PDF."""
        from kernelmap.report import plot

        plot(self, Path(path))

    def report(self, path: Path | str) -> None:
        """One self-contained HTML page."""
        from kernelmap.report import write_report

        write_report(self, Path(path))

    def summary(self) -> dict[str, Any]:
        """The numbers, for a JSON file."""
        numbers = {
            "pairs": self.context.d,
            "noise": self.noise,
            "heldout_pairs": None if self.heldout is None else self.heldout.d,
            "heldout_error": self.heldout_error,
            "heldout_coverage": self.heldout_coverage,
            "classical_error": self.classical_error,
            "effective_rank": self.identifiability.effective_rank,
            "determined": self.identifiability.determined,
        }
        return {key: value if value is None or isfinite(value) else None for key, value in numbers.items()}


def discover(model: KernelMap, context: Context, about: dict[str, Any] | None = None) -> Discovery:
    """The hidden kernel of one system, with error bar, check on pairs kept back, diagnosis and cautions.

    The check keeps back one pair in five, finds a kernel from the rest and predicts them; the kernel that is returned
    is found from all pairs.
    """
    if not isinstance(model, BandedMap):
        raise InputError(
            "discover needs a posterior map, which knows its error; use the shipped `radial`, `darcy` or `mechanics`."
        )
    if context.batch_shape:
        raise InputError(f"discover takes one system, got a batch of shape {tuple(context.batch_shape)}.")
    model.check_context(context)
    context = context.to(torch.float64)
    for name, values in (("responses f", context.F), ("tokens of u", context.U)):
        if not values.abs().max() > 0:
            raise InputError(f"all {name} are zero: there is nothing to discover.")
    if model.u_std.dtype != torch.float64:
        model = deepcopy(model).double()
    with torch.no_grad():
        model = model.suited(context)
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
        cautions=cautions_of(context, model.shape, posterior, diagnosis, check),
        predictive=posterior.predict,
        about=about or {},
        heldout_prediction=None if check is None else (check.mean, check.std),
        hidden=posterior.hidden,
    )


def _check(model: BandedMap, context: Context) -> Check:
    """Keep pairs back, and predict them."""
    order = torch.randperm(context.d, generator=torch.Generator().manual_seed(0))
    count = round(HELDOUT * context.d)
    heldout, rest = context.select(order[:count]), context.select(order[count:])
    with torch.no_grad():
        mean, variance = model.posterior(rest).predict(heldout.U)
    # Held nodes, which never respond, are predicted exactly and without doubt.
    surprise = torch.where(mean == heldout.F, 0.0, (mean - heldout.F) / variance.sqrt())
    return Check(
        heldout,
        mean,
        variance.sqrt(),
        error=float(operator_error(mean, heldout.F, context.x)),
        coverage=float((surprise.abs() <= 1.96).double().mean()),
        surprise=float(surprise.square().mean().sqrt()),
        classical_error=float(operator_error(dartr(rest).kernel.apply(heldout.U), heldout.F, context.x)),
    )
