"""The data sets of the Darcy experiments: generated once, cached, and cut into the paper's tasks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, open_hdf5, read_array
from kernelmap.core.grids import rectangle
from kernelmap.core.progress import progress
from kernelmap.core.systems import SystemSet
from kernelmap.problems.base import read_part
from kernelmap.problems.cache import cached
from kernelmap.problems.darcy.fields import check_nodes, microstructures, sources
from kernelmap.problems.darcy.scheme import FaceMean, green_kernel, pressures, stiffness_kernel

TRAINING, TEST, PAIRS = 90, 10, 100
"""Training systems, test systems, and the pairs of each that training may see; as many again are held out."""

Task = Literal["g-to-p", "p-to-g", "b-to-p"]


@dataclass(frozen=True)
class DarcyData:
    """What a task trains on and is tested on.

    `test` and `heldout` are the same systems: contexts are drawn from the pairs of `test`, and errors measured on those
    of `heldout`, whose inputs no training system has seen. `b` are the test systems' microstructures; None for b-to-p,
    where they are the inputs.
    """

    train: SystemSet
    test: SystemSet
    heldout: SystemSet
    b: Float[Tensor, "S n n"] | None

    def save(self, path: Path | str) -> None:
        room = self.train.nbytes + self.test.nbytes + self.heldout.nbytes + (0 if self.b is None else self.b.nbytes)
        with atomic_path(path, room=room) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["kernelmap"] = "darcy"
            for name, systems in (("train", self.train), ("test", self.test), ("heldout", self.heldout)):
                systems.write(file.create_group(name))
            if self.b is not None:
                file["b"] = self.b.numpy()

    @classmethod
    def load(cls, path: Path | str) -> "DarcyData":
        with open_hdf5(path) as file:
            b = read_array(file, "b") if "b" in file else None
        train, test, heldout = (read_part(path, name) for name in ("train", "test", "heldout"))
        return cls(train, test, heldout, b)


def darcy(
    task: Task,
    n: int = 21,
    *,
    faces: FaceMean = "arithmetic",
    own_sources: bool = False,
    truth: bool = True,
    seed: int = 0,
) -> DarcyData:
    """Training and test systems of a task on n x n nodes, the boundary ring included.

    g-to-p: a system is a microstructure, a pair a source and its pressure; the kernel is the Green's function.
    p-to-g: the same pairs the other way round; the kernel is the stiffness. The pressure, zero on the boundary ring,
        tells nothing of the source there: f is set to zero on it.
    b-to-p: a system is a source, a pair a microstructure and its pressure. That is not linear in b: there is no true
        kernel.

    All systems share their sources (b-to-p: their microstructures), as in the paper, unless `own_sources` gives each
    its own. `truth` says whether the test systems carry their n² x n² kernels.
    """
    check_nodes(n)
    if task == "b-to-p":
        if own_sources:
            raise InputError(
                "in b-to-p a system is one source, so it has no sources of its own; leave own_sources out."
            )
        systems = _cached(f"b-to-p-{n}-{faces}-{seed}.h5", lambda: _of_sources(n, faces, seed))
        return _cut(systems, None)
    name = f"g-to-p-{n}-{faces}-{'own' if own_sources else 'shared'}-{seed}.h5"
    systems = _cached(name, lambda: _of_microstructures(n, faces, own_sources, seed))
    b = microstructures(n, range(TRAINING, TRAINING + TEST), seed)
    if task == "p-to-g":
        systems = _reversed(systems, n)
    cut = _cut(systems, torch.from_numpy(b))
    if not truth:
        return cut
    kernel = green_kernel if task == "g-to-p" else stiffness_kernel
    return replace(cut, test=replace(cut.test, kernels=torch.from_numpy(np.stack([kernel(each, faces) for each in b]))))


def _of_microstructures(n: int, faces: FaceMean, own_sources: bool, seed: int) -> SystemSet:
    b = microstructures(n, range(TRAINING + TEST), seed)
    systems = range(len(b)) if own_sources else [None]
    g = np.stack([sources(n, range(2 * PAIRS), seed, system) for system in systems])
    each = np.broadcast_to(g, (len(b), *g.shape[1:]))
    p = np.stack([pressures(*pair, faces) for pair in progress(zip(b, each, strict=True), "Darcy systems", len(b))])
    about = {"task": "g-to-p", "own_sources": own_sources}
    return _system_set([f"microstructure-{i}" for i in range(len(b))], g, p, about | _about(n, faces, seed))


def _of_sources(n: int, faces: FaceMean, seed: int) -> SystemSet:
    b, g = microstructures(n, range(2 * PAIRS), seed), sources(n, range(TRAINING + TEST), seed)
    p = np.stack([pressures(each, g, faces) for each in progress(b, "Darcy systems", len(b))], axis=1)
    return _system_set([f"source-{i}" for i in range(len(g))], b[None], p, {"task": "b-to-p"} | _about(n, faces, seed))


def _about(n: int, faces: FaceMean, seed: int) -> dict[str, Any]:
    return {"problem": "darcy", "n": n, "faces": faces, "seed": seed}


def _system_set(names: list[str], u: np.ndarray, f: np.ndarray, about: dict[str, Any]) -> SystemSet:
    grid = rectangle(about["n"])
    tokens, responses = (torch.from_numpy(values).flatten(2) for values in (u, f))
    return SystemSet(tuple(names), tokens, responses, grid, grid, about=about)


def _reversed(systems: SystemSet, n: int) -> SystemSet:
    """From pressure to source, which is zero on the boundary ring."""
    g = systems.u.unflatten(-1, (n, n)).clone()
    g[..., [0, -1], :] = 0
    g[..., :, [0, -1]] = 0
    about = systems.about | {"task": "p-to-g", "boundary": "zero"}
    return replace(systems, u=systems.f, f=g.flatten(-2).expand(len(systems.names), -1, -1), about=about)


def _cut(systems: SystemSet, b: Tensor | None) -> DarcyData:
    train, test = systems.select(systems.names[:TRAINING]), systems.select(systems.names[TRAINING:])
    seen, unseen = slice(None, PAIRS), slice(PAIRS, None)
    return DarcyData(_pairs(train, seen), _pairs(test, seen), _pairs(test, unseen), b)


def _pairs(systems: SystemSet, chosen: slice) -> SystemSet:
    return replace(systems, u=systems.u[:, chosen], f=systems.f[:, chosen])


def _cached(name: str, generate: Callable[[], SystemSet]) -> SystemSet:
    return cached(name, Path(__file__).parent, generate)
