"""`SystemSet`: all measured pairs of several systems of one problem, and the contexts drawn from them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kernelmap.core.context import Context, read_grid, responding, write_grid
from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, open_hdf5, parse_json, read_array, read_text
from kernelmap.core.files.limits import check_seed
from kernelmap.core.grids import Grid

MOST_SYSTEMS, MOST_VALUES = 16, 2**24
"""Systems that are worked on at once, and values of their kernels: the memory does not grow with a batch."""


def systems_at_once(y: Grid, x: Grid) -> int:
    return max(1, min(MOST_SYSTEMS, MOST_VALUES // (y.size * x.size)))


@dataclass(frozen=True)
class SystemSet:
    """S systems with P pairs each, pair by pair in memory so that drawing a context copies whole rows.

    `u[s, j] = g[u_j]` on the grid y (size 1 in s when all systems share their inputs) and `f[s, j] = f_j` on x.
    `kernels` is the truth, for evaluation only; training never reads it.
    """

    names: tuple[str, ...]
    u: Float[Tensor, "Su P N"]
    f: Float[Tensor, "S P M"]
    y: Grid
    x: Grid
    kernels: Float[Tensor, "S M N"] | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        return self.f.shape[1]

    @property
    def shares_inputs(self) -> bool:
        return self.u.shape[0] == 1

    def batch(self, draws: Int[Tensor, "G d"], systems: Int[Tensor, " B"]) -> Context:
        """The contexts of every system with every draw of d pairs: batch shape (G, B)."""
        u = self.u[0][draws][:, None] if self.shares_inputs else self.u[systems[None, :, None], draws[:, None, :]]
        f = self.f[systems[None, :, None], draws[:, None, :]]
        return Context.unchecked(u.mT, f.mT, self.y, self.x)

    def select(self, names: Sequence[str]) -> "SystemSet":
        """Some of the systems, by name."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InputError(f"no system named {missing}; there are {list(self.names)}.")
        index = torch.tensor([self.names.index(name) for name in names])
        return replace(
            self,
            names=tuple(names),
            u=self.u if self.shares_inputs else self.u[index],
            f=self.f[index],
            kernels=None if self.kernels is None else self.kernels[index],
        )

    def to(self, target: torch.dtype | torch.device | str) -> "SystemSet":
        """Values in another dtype, or everything on another device; grids stay in float64."""
        kernels = None if self.kernels is None else self.kernels.to(target)
        moved = replace(self, u=self.u.to(target), f=self.f.to(target), kernels=kernels)
        if isinstance(target, torch.dtype):
            return moved
        return replace(moved, y=self.y.to(target), x=self.x.to(target))

    def with_noise(self, level: float, seed: int) -> "SystemSet":
        """White noise on f, of `level` times each system's root mean square, at the points that respond at all."""
        if not 0 <= level < float("inf"):
            raise InputError(f"the level of noise must not be negative and must be finite, got {level}.")
        check_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.f.shape, generator=generator, dtype=torch.float64).to(self.f)
        free = responding(self.f.mT)
        count = self.f.shape[1] * max(1, int(free.sum()))
        rms = (self.f.square().sum(dim=(1, 2), keepdim=True) / count).sqrt()
        return replace(
            self, f=self.f + level * rms * free * noise, about=self.about | {"noise": level, "noise_seed": seed}
        )

    def checksum(self) -> str:
        """SHA-256 of all that is written: names, what they are, components, shapes and numbers."""
        words = [self.names, self.about, self.y.components, self.x.components]
        digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
        numbers = {"u": self.u, "f": self.f, "kernels": self.kernels}
        for letter, grid in (("y", self.y), ("x", self.x)):
            numbers |= {f"{letter} points": grid.points, f"{letter} weights": grid.weights}
        for name, tensor in numbers.items():
            if tensor is not None:
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @property
    def nbytes(self) -> int:
        """About what a file of it takes."""
        kernels = 0 if self.kernels is None else self.kernels.nbytes
        return self.u.nbytes + self.f.nbytes + kernels + 64 * (len(self.y.points) + len(self.x.points)) + 2**16

    def write(self, group: h5py.Group) -> None:
        group["u"], group["f"] = self.u.cpu().numpy(), self.f.cpu().numpy()
        if self.kernels is not None:
            group["kernels"] = self.kernels.cpu().numpy()
        write_grid(group, "y", self.y)
        write_grid(group, "x", self.x)
        group.attrs["names"] = json.dumps(self.names)
        group.attrs["about"] = json.dumps(self.about)
        group.attrs["sha256"] = self.checksum()

    @classmethod
    def read(cls, group: h5py.Group) -> "SystemSet":
        kernels = read_array(group, "kernels") if "kernels" in group else None
        names, about = (parse_json(read_text(group, key), group.file.filename) for key in ("names", "about"))
        grids = read_grid(group, "y"), read_grid(group, "x")
        systems = cls(tuple(names), read_array(group, "u"), read_array(group, "f"), *grids, kernels, about)
        if systems.checksum() != read_text(group, "sha256"):
            raise InputError(f"{group.file.filename} does not match its checksum; generate it again.")
        return systems

    def save(self, path: Path | str) -> None:
        with atomic_path(path, room=self.nbytes) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["kernelmap"] = "systems"
            self.write(file)

    @classmethod
    def load(cls, path: Path | str) -> "SystemSet":
        with open_hdf5(path) as file:
            return cls.read(file)


def strided_draws(pairs: int, d: int) -> Int[Tensor, "n d"]:
    """n = pairs // d disjoint contexts: draw i takes pairs i, i + n, i + 2n, ..."""
    if not 1 <= d <= pairs:
        raise InputError(f"a context takes between 1 and {pairs} pairs here, got d = {d}.")
    n = pairs // d
    return torch.arange(n)[:, None] + n * torch.arange(d)[None, :]


def random_draws(pairs: int, d: int, n: int, generator: torch.Generator) -> Int[Tensor, "n d"]:
    """n random contexts of d different pairs each, in random order."""
    if not 1 <= d <= pairs:
        raise InputError(f"a context takes between 1 and {pairs} pairs here, got d = {d}.")
    return torch.stack([torch.randperm(pairs, generator=generator)[:d] for _ in range(n)])
