"""`kernelmap generate`: write a problem's data to a file."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rich import print
from rich.markup import escape
from tyro.conf import subcommand

from kernelmap.cli.generate_mechanics import generate_mechanics
from kernelmap.cli.options import Flat, check_hdf5_name
from kernelmap.problems.darcy import Task, darcy
from kernelmap.problems.darcy.scheme import FaceMean
from kernelmap.problems.radial import Setting, Variant, radial


def generate_radial(
    out: Path,
    setting: Setting = "diverse",
    variant: Variant = "released",
    dx: float = 0.0125,
    noise: float = 0.0,
    seed: int = 0,
) -> None:
    """Nonlocal diffusion with a radial kernel: training and test systems with their true kernels.

    Args:
        out: the HDF5 file to write.
        setting: sine (7 kernels), diverse (21), single (1 kernel, 14 inputs) or fewer (21 kernels, 5 contexts each).
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        noise: standard deviation of noise on f, relative to the root mean square of f.
        seed: of the noise.
    """
    check_hdf5_name(out)
    data = radial(setting, variant, dx)
    if noise:
        data = replace(data, train=data.train.with_noise(noise, seed), test=data.test.with_noise(noise, seed + 1))
    data.save(out)
    train, test = data.train, data.test
    counts = f"{len(train.names)} training systems ({train.pairs} pairs each), {len(test.names)} test systems"
    print(f"{counts} in {escape(str(out))}")


def generate_darcy(
    out: Path,
    task: Task,
    n: int = 21,
    faces: FaceMean = "arithmetic",
    own_sources: bool = False,
    seed: int = 0,
) -> None:
    """Flow through a porous medium: training and test systems, pairs held out, true kernels and microstructures.

    Args:
        out: the HDF5 file to write.
        task: g-to-p (the kernel is the Green's function), p-to-g (the stiffness) or b-to-p (not linear).
        n: nodes in each direction.
        faces: mean of the permeability between two nodes.
        own_sources: give every system sources of its own; shared by all, as in the paper, by default.
        seed: of microstructures and sources.
    """
    check_hdf5_name(out)
    data = darcy(task, n, faces=faces, own_sources=own_sources, seed=seed)
    data.save(out)
    counts = f"{len(data.train.names)} training systems ({data.train.pairs} pairs each)"
    print(f"{counts}, {len(data.test.names)} test systems in {escape(str(out))}")


Radial = Annotated[None, subcommand("radial", constructor=generate_radial, prefix_name=False)]
Darcy = Annotated[None, subcommand("darcy", constructor=generate_darcy, prefix_name=False)]
Mechanics = Annotated[None, subcommand("mechanics", constructor=generate_mechanics, prefix_name=False)]


def generate(problem: Annotated[Radial | Darcy | Mechanics, Flat]) -> None:
    """Generate the systems of a problem as one HDF5 file."""
