"""The data set: every specimen under every load, solved in parallel, in one HDF5 file.

Solved specimens are kept as parts beside the file until all are there: a run that was killed goes on where it was.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from jaxtyping import Bool, Float

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, is_file, locked, open_hdf5, parse_json, read_json, read_text, write_json
from kernelmap.core.files.limits import check_count
from kernelmap.core.files.processes import ending_with_us
from kernelmap.core.progress import progress
from kernelmap.core.provenance import provenance
from kernelmap.problems.mechanics.forces import evaluate
from kernelmap.problems.mechanics.images import modulus
from kernelmap.problems.mechanics.parts import part_path, read_part, write_part
from kernelmap.problems.mechanics.plan import Plan
from kernelmap.problems.mechanics.specimen import respond

Part = tuple[int, Float[np.ndarray, "L 2 m"], Bool[np.ndarray, " L"]]


def generate(plan: Plan, out: Path, jobs: int = -1) -> list[str]:
    """Write the data set to `out`, and say which loads did not converge; a finished file is left as it is.

    `jobs` processes work on it, -1 for one per core; inside `joblib.parallel_config("dask")` those of the cluster do.
    """
    if jobs != -1:
        check_count(jobs, "--jobs, a number of processes, or -1 for one per core,")
    about = plan.about()
    with locked(out):
        if not (is_file(out) and _about(out) == about):
            _generate(plan, out, about, jobs)
    with open_hdf5(out) as file:
        failed = np.argwhere(plan.solved() & ~file["converged"][()])  # pyright: ignore
    return [f"load {load} of {plan.specimens.names[index]}" for index, load in failed]


def _generate(plan: Plan, out: Path, about: dict[str, Any], jobs: int) -> None:
    parts = out.with_name(f"{out.name}.parts")
    _claim(parts, about)
    shapes, identity = _shapes(plan), _hash(about)
    missing = [index for index, shape in enumerate(shapes) if read_part(parts, index, identity, shape) is None]
    for index, u, converged in progress(_solve_all(plan, missing, jobs), "Specimens", total=len(missing)):
        write_part(parts, index, identity, u, converged)
    _collect(plan, parts, out, about)
    # The plan goes last: what a kill leaves here still says whose it is.
    for index in range(len(shapes)):
        part_path(parts, index).unlink(missing_ok=True)
    shutil.rmtree(parts)


def _shapes(plan: Plan) -> list[tuple[int, int, int]]:
    """Of every specimen's displacements."""
    return [(int(loads), 2, (plan.specimens.pixels + 1) ** 2) for loads in plan.solved().sum(axis=1)]


def _hash(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _solve_all(plan: Plan, indices: list[int], jobs: int) -> Iterator[Part]:
    """Parts in the order in which they are ready."""
    from joblib import Parallel, delayed

    coefficients, solved = plan.coefficients(), plan.solved()
    tasks = (delayed(_solve)(i, plan.specimens.images[i], plan.elements, coefficients[solved[i]]) for i in indices)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", **ending_with_us())(tasks)  # pyright: ignore


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


def _about(out: Path) -> dict[str, Any] | None:
    with open_hdf5(out) as file:
        return parse_json(read_text(file, "about"), out) if "about" in file.attrs else None


def _collect(plan: Plan, parts: Path, out: Path, about: dict[str, Any]) -> None:
    images, loads = plan.specimens.images, plan.loads + plan.heldout
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
        chunks = (1, plan.heldout, *shape[2:])
        u = file.create_dataset("displacement", shape, np.float32, chunks=chunks, fillvalue=np.nan)
        converged = file.create_dataset("converged", shape[:2], bool)
        for index, wanted in enumerate(_shapes(plan)):
            part = read_part(parts, index, _hash(about), wanted)
            if part is None:
                raise InputError(f"{part_path(parts, index)} was removed or changed meanwhile; start again to go on.")
            u[index, : wanted[0]], converged[index, : wanted[0]] = part
