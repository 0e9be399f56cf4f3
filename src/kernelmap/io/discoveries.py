"""Saved discoveries: a kernel file with the error bar, what predicting needs, and the numbers of the report.

Of the posterior the file holds means and factors, `state/`, and not the pairs: their number does not change its size.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files import open_hdf5, read_array
from kernelmap.core.files.limits import require_memory
from kernelmap.core.kernel import Kernel
from kernelmap.core.places import Places
from kernelmap.core.posterior import ESTIMATES, HiddenField, KernelEstimate, Prediction, responses

KIND = "discovery"
FORMAT = 1
"""Of the JSON and HDF5 that a discovery is written to; raised when a name in them changes its meaning."""
NUMBERS = ("pairs", "noise", "effective_rank", "informed_directions")


@dataclass(frozen=True)
class SavedDiscovery:
    """A discovery as it was saved, under the names that a new one has; the pairs and the check's predictions are gone.

    kernel, std: the kernel and its standard deviation, NaN for a map that does not know its error.
    posterior: what the predictions come from.
    classical: the classical estimate.
    diagnostics: what the user should know, each with seen, cause and remedy.
    check: the numbers of the check; None without one.
    numbers: pairs, noise, effective rank, informed directions; what is not a number is left out.
    about: model, hashes of model and data, version, command.
    """

    kernel: Kernel
    std: Float[Tensor, "M N"]
    posterior: KernelEstimate
    classical: Kernel
    diagnostics: tuple[dict[str, str], ...]
    check: dict[str, Any] | None
    numbers: dict[str, float]
    about: dict[str, Any]

    @property
    def noise(self) -> float:
        """The noise found on f, relative to its root mean square."""
        return float(self.posterior.relative_residual.mean())

    @property
    def hidden(self) -> HiddenField | None:
        """The field of the medium that the kernel comes from, where the model has one."""
        return self.posterior.hidden

    def predict(self, U: Float[Tensor, "N n"], places: Places | None = None) -> Prediction:
        """Mean and standard deviation of the measured responses to n new inputs, noise included.

        places: of the inputs, which a trend of f needs.
        """
        return responses(self.posterior, U, places)


def write_state(file: h5py.File, estimate: KernelEstimate) -> None:
    """What predicting needs; nothing for an estimate that cannot be kept."""
    state = estimate.state()
    if state is None:
        return
    group = file.create_group("state")
    group.attrs["kind"] = estimate.name
    for name, values in state.items():
        array = values.detach().cpu().numpy()
        group.create_dataset(name, data=array, **({"compression": "gzip", "shuffle": True} if array.ndim else {}))


def load_discovery(path: Path | str) -> SavedDiscovery:
    """A discovery that `Discovery.save` or `kernelmap discover` wrote, with its band, ready to predict."""
    about, numbers = read_numbers(path)
    with open_hdf5(path) as file:
        state = file.get("state")
        if not isinstance(state, h5py.Group):
            raise InputError(
                f"{path} holds a kernel, but not what predicting needs: it was written by an older version or by a map "
                "whose posterior is not kept. Discover again, or use Kernel.load for the kernel alone."
            )
        kernel = Kernel.read(file)
        attributes: dict[str, Any] = dict(file.attrs)
        # Many names may stand for one array, so that together they take more than the file.
        require_memory(path, 8.0 * sum(getattr(state[name], "size", 0) or 0 for name in state), "what predicting needs")
        arrays = {str(name): read_array(state, str(name)) for name in state}
        try:
            posterior = ESTIMATES[str(state.attrs["kind"])].restored(arrays, kernel, int(attributes["pairs"]))
            _require_predicting(posterior)
        except (KeyError, TypeError, RuntimeError) as error:
            raise InputError(f"{path} was written by another version ({error}); discover again.") from error
        check = {name.removeprefix("check_"): v for name, v in numbers.items() if name.startswith("check_")}
        return SavedDiscovery(
            kernel=kernel,
            std=read_array(file, "std") if "std" in file else torch.full_like(kernel.values, torch.nan),
            posterior=posterior,
            classical=Kernel(read_array(file, "classical"), kernel.y, kernel.x),
            diagnostics=tuple(json.loads(attributes["diagnostics"])),
            check=check or None,
            numbers={name: v for name, v in numbers.items() if name in NUMBERS},
            about=about,
        )


def _require_predicting(posterior: KernelEstimate) -> None:
    """Arrays that do not fit together fail here, while the file is read, and not at the user's inputs."""
    y = posterior.kernel.y
    responses(posterior, y.points.new_zeros(y.size, 1), Places(y.points.new_zeros(1, 1), ("t",)))


def read_numbers(path: Path | str) -> tuple[dict[str, Any], dict[str, float]]:
    """Where a saved discovery comes from (model, hashes of model and data, version, command), and its numbers."""
    with open_hdf5(path) as file:
        if file.attrs.get("kernelmap") != KIND:
            raise InputError(
                f"{path} is not a discovery; give the discovery.h5 that `kernelmap discover` wrote to its directory."
            )
        if (written := file.attrs.get("format", FORMAT)) != FORMAT:
            raise InputError(f"{path} is of format {written}, this version reads format {FORMAT}; take a newer one.")
        numbers = {name: value.item() for name, value in file.attrs.items() if isinstance(value, np.number)}
        numbers["diagnostics"] = len(json.loads(str(file.attrs.get("diagnostics", "[]"))))
        return json.loads(str(file.attrs["about"])), numbers
