"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import torch
import tyro

from kernelmap.errors import InputError

Flat = tyro.conf.arg(name="")
"""Options of a group without the group's name before them."""

JsonFile = Annotated[Path | None, tyro.conf.arg(name="json", metavar="FILE")]


def check_hdf5_name(out: Path) -> None:
    if out.suffix not in (".h5", ".hdf5"):
        raise InputError(f"--out must name an HDF5 file (.h5), got {out}.")


def use_threads(threads: int | None) -> None:
    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads must be at least 1, got {threads}.")
        torch.set_num_threads(threads)
