"""The data set: every specimen under every load, solved in parallel, in one HDF5 file.

Solved specimens are kept as parts beside the file until all are there: a run that was killed goes on where it was.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from jaxtyping import Bool, Float

from kernelmap.errors import InputError
from kernelmap.files import atomic_path, open_hdf5, read_attribute, read_json, write_json
from kernelmap.problems.mechanics.forces import evaluate
from kernelmap.problems.mechanics.images import modulus
from kernelmap.problems.mechanics.plan import Plan
from kernelmap.problems.mechanics.specimen import respond
from kernelmap.progress import progress
from kernelmap.provenance import provenance

Part = tuple[int, Float[np.ndarray, "L 2 m"], Bool[np.ndarray, " L"]]


def generate(plan: Plan, out: Path, jobs: int = -1) -> list[str]:
    """Write the data set to `out`, and say which loads did not converge; a finished file is left as it is.

    `jobs` processes work on it, -1 for one per core; inside `joblib.parallel_config("dask")` those of the cluster do.
    """
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs must be a number of processes, or -1 for one per core; got {jobs}.")
    about = plan.about()
    if not (out.exists() and _about(out) == about):
        parts = out.with_name(f"{out.name}.parts")
        _claim(parts, about)
        missing = [index for index in range(len(plan.specimens)) if not _part(parts, index).exists()]
        for index, u, converged in progress(_solve_all(plan, missing, jobs), "Specimens", total=len(missing)):
            with atomic_path(_part(parts, index)) as temporary:
                np.savez(temporary, u=u, converged=converged)
        _collect(plan, parts, out, about)
        shutil.rmtree(parts)
    with open_hdf5(out) as file:
        failed = np.argwhere(plan.solved() & ~file["converged"][()])  # pyright: ignore
    return [f"load {load} of {plan.specimens.names[index]}" for index, load in failed]


def _solve_all(plan: Plan, indices: list[int], jobs: int) -> Iterator[Part]:
    """Parts in the order in which they are ready."""
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        raise InputError("generating needs the package joblib: pip install 'kernelmap[mechanics]'.") from error
    coefficients, solved = plan.coefficients(), plan.solved()
    tasks = (delayed(_solve)(i, plan.specimens.images[i], plan.elements, coefficients[solved[i]]) for i in indices)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)  # pyright: ignore


def _solve(index: int, image: np.ndarray, elements: str, coefficients: np.ndarray) -> Part:
    u, converged = respond(image, elements, coefficients)
    return index, u.astype(np.float32), converged


def _claim(parts: Path, about: dict[str, Any]) -> None:
    """A directory of parts belongs to one plan."""
    plan = parts / "plan.json"
    if not plan.exists():
        write_json(plan, about)
    elif read_json(plan) != about:
        raise InputError(
            f"{parts} holds the parts of another run (other options, bitmaps or version of the code). Give that run's "
            "options to go on with it, delete the directory, or choose another name."
        )


def _part(parts: Path, index: int) -> Path:
    return parts / f"{index:05d}.npz"


def _about(out: Path) -> dict[str, Any] | None:
    with open_hdf5(out) as file:
        return json.loads(read_attribute(file, "about")) if "about" in file.attrs else None


def _collect(plan: Plan, parts: Path, out: Path, about: dict[str, Any]) -> None:
    images, loads = plan.specimens.images, plan.loads + plan.held_out
    axis = np.linspace(0, 1, plan.specimens.pixels + 1)
    shape = (len(images), loads, 2, len(axis) ** 2)
    room = 4 * (plan.solved().sum() + loads) * shape[2] * shape[3] + 9 * images.size
    with atomic_path(out, room=int(1.01 * room) + 2**20) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["kernelmap"] = "mechanics"
        file.attrs["about"] = json.dumps(about)
        file.attrs["provenance"] = json.dumps(provenance())
        file["force"] = evaluate(plan.coefficients(), axis).swapaxes(0, 1).astype(np.float32)
        file["images"] = images
        file["modulus"] = np.stack([modulus(image) for image in images]).astype(np.float32)
        if plan.specimens.digits is not None:
            file["digits"] = plan.specimens.digits
        # Chunks that are never written, those of loads that were not solved, take no space.
        chunks = (1, plan.held_out, *shape[2:])
        u = file.create_dataset("displacement", shape, np.float32, chunks=chunks, fillvalue=np.nan)
        converged = file.create_dataset("converged", shape[:2], bool)
        for index in range(len(images)):
            with np.load(_part(parts, index)) as part:
                solved = len(part["converged"])
                u[index, :solved], converged[index, :solved] = part["u"], part["converged"]
