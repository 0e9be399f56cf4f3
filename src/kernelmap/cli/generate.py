"""`kernelmap generate`: write a problem's data to a file."""

from dataclasses import replace
from pathlib import Path

from rich import print
from rich.markup import escape

from kernelmap.cli.options import Problem
from kernelmap.errors import InputError
from kernelmap.problems.radial import Setting, Variant, radial


def generate(
    problem: Problem,
    out: Path,
    setting: Setting = "diverse",
    variant: Variant = "released",
    dx: float = 0.0125,
    noise: float = 0.0,
    seed: int = 0,
) -> None:
    """Generate training and test systems of a problem, with their true kernels, as one HDF5 file.

    Args:
        problem: radial: nonlocal diffusion with a radial kernel.
        out: the HDF5 file to write.
        setting: sine (7 kernels), diverse (21), single (1 kernel, 14 inputs) or fewer (21 kernels, 5 contexts each).
        variant: as the paper's text says, or as the authors' released data are.
        dx: mesh width of locations and radii; 0.0125 or 0.025.
        noise: standard deviation of noise on f, relative to the root mean square of f.
        seed: of the noise.
    """
    if out.suffix not in (".h5", ".hdf5"):
        raise InputError(f"--out must name an HDF5 file (.h5), got {out}.")
    data = radial(setting, variant, dx)
    if noise:
        data = replace(data, train=data.train.with_noise(noise, seed), test=data.test.with_noise(noise, seed + 1))
    data.save(out)
    train, test = data.train, data.test
    counts = f"{len(train.names)} training systems ({train.pairs} pairs each), {len(test.names)} test systems"
    print(f"{counts} in {escape(str(out))}")
