"""A data set as systems to train on and to be tested on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files import entry, open_hdf5, parse_json, read_array, read_text
from kernelmap.core.grids import rectangle
from kernelmap.core.systems import SystemSet
from kernelmap.problems.mechanics.images import Specimens, Split


@dataclass(frozen=True)
class MechanicsData:
    """Pairs (body force, displacement) at the corners of the pixels, two components each.

    train: specimens for training; test: the other specimens under the same loads; heldout: the same specimens as in
    test, under loads that no training specimen has seen. `modulus` is Young's, per specimen and pixel (column from
    the left, row from the bottom): the truth, which training never reads.
    """

    train: SystemSet
    test: SystemSet
    heldout: SystemSet
    modulus: dict[str, Float[Tensor, "n n"]]


def mechanics(path: Path | str, split: Split) -> MechanicsData:
    """Read a generated file; id tests on 5 of 50 specimens of each digit, ood on all nines."""
    with open_hdf5(path) as file:
        if file.attrs.get("kernelmap") != "mechanics":
            raise InputError(f"{path} is no data set of `kernelmap generate mechanics`; generate one.")
        about = parse_json(read_text(file, "about"), path)
        digits = read_array(file, "digits").numpy() if "digits" in file else None
        specimens = Specimens(tuple(about["names"]), read_array(file, "images").numpy(), digits)
        for_testing = specimens.for_testing(split)
        if for_testing.all() or not for_testing.any():
            raise InputError(
                f"{path} holds {len(specimens)} specimens, and the split {split} keeps {for_testing.sum()} of them for "
                "testing; it should be some, but not all. Generate more specimens, at least 20."
            )
        train, test = np.flatnonzero(~for_testing), np.flatnonzero(for_testing)
        shared, unseen = slice(about["loads"]), slice(about["loads"], None)
        moduli = read_array(file, "modulus")
        return MechanicsData(
            _systems(file, train, shared, about, specimens.names),
            _systems(file, test, shared, about, specimens.names),
            _systems(file, test, unseen, about, specimens.names),
            dict(zip(specimens.names, moduli, strict=True)),
        )


def _systems(
    file: h5py.File, rows: np.ndarray, loads: slice, about: dict[str, Any], names: tuple[str, ...]
) -> SystemSet:
    """Loads that did not converge on one of the specimens are left out for all: they share their inputs."""
    for name in ("converged", "force", "displacement"):
        entry(file, name)
    converged: np.ndarray = file["converged"][:, loads][rows].all(axis=0)  # pyright: ignore
    if not converged.any():
        raise InputError(f"{file.filename}: no load converged on every specimen; generate with a smaller amplitude.")
    force: np.ndarray = file["force"][loads][converged]  # pyright: ignore
    pairs, values = len(force), force[0].size
    u = np.empty((len(rows), pairs, values), np.float32)
    for place, row in enumerate(rows):
        u[place] = file["displacement"][row, loads][converged].reshape(pairs, values)  # pyright: ignore
    grid = rectangle(round((values // 2) ** 0.5)).with_components(2)
    kept = {key: about[key] for key in ("problem", "forces", "elements", "code")}
    left_out = {"left_out_loads": np.flatnonzero(~converged).tolist()}
    return SystemSet(
        tuple(names[row] for row in rows),
        torch.from_numpy(force.reshape(1, pairs, values)),
        torch.from_numpy(u),
        grid,
        grid,
        about=kept | left_out,
    )
