"""`Discovery`: a kernel with its error bar, and what to think of it."""

import json
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import h5py
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.context import Context
from kernelmap.core.files import atomic_path
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.core.posterior import HiddenField, KernelEstimate, Prediction, responses
from kernelmap.discovery.check import Check, Residual
from kernelmap.discovery.diagnostics import Diagnostic
from kernelmap.discovery.identifiability import Identifiability
from kernelmap.discovery.laws import ClosedForm, closed_form
from kernelmap.discovery.suggest import Suggestions, suggest
from kernelmap.estimators import Estimate
from kernelmap.io.discoveries import FORMAT, KIND, write_state


@dataclass(frozen=True)
class Discovery:
    """What was found.

    kernel, std: the kernel and the standard deviation of its error at every point; the 95 % interval is ± 1.96 std. NaN
        for a map that does not know its error.
    posterior: all that is known of the kernel: intervals, samples, predictions.
    context: the pairs from which the kernel was found.
    check: how well pairs that were kept back are predicted; None with too few pairs.
    classical: the classical estimate (DARTR) from the same pairs.
    diagnostics: what the user should know.
    residuals: the pairs that the kernel explains worst, with their standardised residuals.
    about: model, hashes of model and data, version, command: what it takes to repeat this.
    law: which simple laws the pairs speak for, where that was asked for.
    next: what to measure next, where that was asked for.
    """

    kernel: Kernel
    std: Float[Tensor, "M N"]
    posterior: KernelEstimate
    context: Context
    check: Check | None
    classical: Estimate
    identifiability: Identifiability
    diagnostics: tuple[Diagnostic, ...]
    residuals: tuple[Residual, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    law: ClosedForm | None = None
    next: Suggestions | None = None

    @property
    def noise(self) -> float:
        """The noise found on f, relative to its root mean square."""
        return float(self.posterior.relative_residual.mean())

    @property
    def has_band(self) -> bool:
        """Whether the kernel has an error bar."""
        return not bool(self.std.isnan().all())

    @property
    def hidden(self) -> HiddenField | None:
        """The field of the medium that the kernel comes from, where the model has one."""
        return self.posterior.hidden

    def predict(self, U: Float[Tensor, "N n"], places: Places | None = None) -> Prediction:
        """Mean and standard deviation of the measured responses to n new inputs, noise included.

        places: of the inputs, which a trend of f needs.
        """
        return responses(self.posterior, U, places)

    def closed_form(self) -> ClosedForm:
        """Simple laws (exponential, Gaussian, power law, ...) with parameters and errors, ranked by evidence."""
        return closed_form(self.context, self.posterior) if self.law is None else self.law

    def suggest(self, candidates: Float[Tensor, "N n"], count: int = 3, places: Places | None = None) -> Suggestions:
        """Of candidates, given by their tokens, those whose measurement would narrow the band most, best first."""
        return suggest(self.posterior, candidates, count, places)

    def save(self, path: Path | str) -> None:
        """Write HDF5, for `load_discovery`: a kernel file with the error bar, the classical estimate, the hidden field
        and what predicting needs beside it, and the numbers as attributes.
        """
        with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
            self.kernel.write(file)
            file.attrs.update({"kernelmap": KIND, "format": FORMAT, "about": json.dumps(self.about)})
            file.attrs["diagnostics"] = json.dumps([vars(diagnostic) for diagnostic in self.diagnostics])
            if self.has_band:
                file["std"] = self.std.cpu().numpy()
            file["classical"] = self.classical.kernel.values.cpu().numpy()
            write_state(file, self.posterior)
            if self.hidden is not None:
                for part in ("points", "values", "std"):
                    file[f"hidden/{part}"] = getattr(self.hidden, part).cpu().numpy()
                file["hidden"].attrs.update({"name": self.hidden.name, **self.hidden.constants})
            check = {} if self.check is None else {f"check_{key}": v for key, v in self.check.summary().items()}
            for name, value in (self.summary() | check).items():
                if value is not None:
                    file.attrs[name] = value

    def summary(self) -> dict[str, Any]:
        """The numbers of all pairs together; what is not a number is None."""
        numbers = {
            "pairs": self.context.d,
            "noise": self.noise,
            "expected_error": self.identifiability.expected_error,
            "effective_rank": self.identifiability.effective_rank,
            "informed_directions": self.identifiability.informed_directions,
        }
        return {key: None if value is None or not isfinite(value) else value for key, value in numbers.items()}

    def to_json(self) -> dict[str, Any]:
        """Everything that is written by `kernelmap discover --json`: these names stay."""
        result: dict[str, Any] = {
            "format": FORMAT,
            "kernel": self.kernel.values.tolist(),
            "std": self.std.tolist() if self.has_band else None,
            "y": self.kernel.y.points.tolist(),
            "x": self.kernel.x.points.tolist(),
            "diagnostics": [vars(diagnostic) for diagnostic in self.diagnostics],
            "residuals": [{"pair": self.context.name(r.pair), "size": r.size} for r in self.residuals],
            "check": None if self.check is None else self.check.summary(),
            "classical": self.classical.kernel.values.tolist(),
        }
        if self.posterior.nuisance:
            result["nuisance"] = {name: {"value": v, "std": std} for name, (v, std) in self.posterior.nuisance.items()}
        if self.posterior.outliers:
            named = {self.context.name(pair): size for pair, size in self.posterior.outliers.items()}
            result["outliers"] = [{"pair": name, "size": size} for name, size in named.items()]
        if self.posterior.error_time is not None:
            result["error_time"] = self.posterior.error_time
        if self.posterior.through_kernel is not None:
            result["errors_from_u"] = self.posterior.through_kernel
        if self.law is not None:
            result["law"] = self.law.to_json()
        if self.next is not None:
            result["next"] = self.next.to_json()
        if (hidden := self.hidden) is not None:
            parts = {name: getattr(hidden, name).tolist() for name in ("points", "values", "std")}
            result["hidden"] = {"name": hidden.name, **hidden.constants, **parts}
        return result | self.summary() | self.about
