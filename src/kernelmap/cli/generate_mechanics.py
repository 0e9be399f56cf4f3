"""`kernelmap generate mechanics`: specimens under loads, as one HDF5 file."""

from pathlib import Path
from typing import Annotated

from rich import print
from rich.markup import escape

from kernelmap.cli.options import Flat, check_hdf5_name
from kernelmap.problems.mechanics import ForceField, Plan, generate, mnist, read_bitmaps
from kernelmap.problems.mechanics.plan import ELEMENTS, LOADS


def generate_mechanics(
    out: Path,
    specimens: int | None = None,
    loads: int = LOADS,
    elements: str = ELEMENTS,
    images: Path | None = None,
    jobs: int = -1,
    forces: Annotated[ForceField, Flat] = ForceField(),  # noqa: B008
) -> None:
    """Hyperelastic specimens from MNIST digits under body forces; a run that was killed goes on where it was.

    Args:
        out: the HDF5 file to write.
        specimens: how many specimens, of the digits 0, 1, .., 9 in turn; all by default.
        loads: body forces, the same for all specimens; specimens for testing get a quarter more.
        elements: p1-, q1- or q2- and the cells per side, a multiple of the pixels, as in q2-28 and p1-140.
        images: bitmaps of your own: a .npy file of integers from 0 to 255, shape (S, n, n).
        jobs: processes; -1 for one per core.
    """
    check_hdf5_name(out)
    chosen = mnist() if images is None else read_bitmaps(images)
    if specimens is not None:
        chosen = chosen.first(specimens)
    plan = Plan(chosen, forces, loads, elements)
    failed = generate(plan, out, jobs)
    counts = f"{len(chosen)} specimens under {loads} loads, those for testing under {plan.held_out} more"
    print(f"{counts}, in {escape(str(out))}")
    if failed:
        print(f"not converged, and not a number in the file: {', '.join(failed)}. Give a smaller --amplitude.")
