"""Solving specimens: batched conjugate gradients on Q2-28 against full Newton with splu on the paper's P1-140."""

import time
from typing import Any

import numpy as np

from kernelmap.paper.benchmarks.processes import in_process, peak_memory_gb, serve, shortest
from kernelmap.problems.mechanics import ForceField, mnist, respond
from kernelmap.problems.mechanics.forces import TRAINING, evaluate
from kernelmap.problems.mechanics.plan import ELEMENTS, LOADS
from kernelmap.problems.mechanics.solver.elements import read_elements
from kernelmap.problems.mechanics.solver.matrices import body_forces
from kernelmap.problems.mechanics.solver.newton import newton
from kernelmap.problems.mechanics.specimen import clamped

PAPER = "p1-140"
SPECIMENS = 4
PAPER_SOLVES = 3
CHECKED = 30


def bench_mechanics(repeats: int) -> dict[str, Any]:
    """In a process of its own, with one thread; times are the processor's."""
    result = in_process(__name__, 1, repeats)
    return {"cases": result.pop("cases"), **result}


def measure(repeats: int) -> dict[str, Any]:
    specimens = mnist()
    images, forces = specimens.images[:SPECIMENS], ForceField().draw(LOADS, TRAINING)
    solved = [respond(image, ELEMENTS, forces) for image in images]
    ours = shortest(lambda: [respond(image, ELEMENTS, forces) for image in images], repeats, time.process_time)
    paper = shortest(lambda: full_newton(images[0], PAPER, forces[:PAPER_SOLVES]), repeats, time.process_time)
    ours, paper = ours / (SPECIMENS * LOADS), paper / PAPER_SOLVES
    differences = []
    for which, (image, (u, _)) in enumerate(zip(images, solved, strict=True)):
        loads = np.arange(which, CHECKED, SPECIMENS)
        truth = full_newton(image, ELEMENTS, forces[loads])
        differences += (np.linalg.norm(u[loads] - truth, axis=(1, 2)) / np.linalg.norm(truth, axis=(1, 2))).tolist()
    cases = [
        {
            "solver": "conjugate gradients",
            "elements": ELEMENTS,
            "solves": SPECIMENS * LOADS,
            "ms_per_solve": 1e3 * ours,
        },
        {"solver": "full Newton", "elements": PAPER, "solves": PAPER_SOLVES, "ms_per_solve": 1e3 * paper},
    ]
    return {
        "cases": cases,
        "ratio": paper / ours,
        "core_minutes_full_set": ours * len(specimens) * LOADS / 60,
        "converged": bool(all(converged.all() for _, converged in solved)),
        "checked_against_newton": len(differences),
        "max_relative_difference": max(differences),
        "peak_memory_gb": peak_memory_gb(),
    }


def full_newton(image: np.ndarray, elements: str, forces: np.ndarray) -> np.ndarray:
    """Every load by itself, with a new factorisation in every step; displacements at the corners of the pixels."""
    mesh = read_elements(elements)
    body = clamped(image, mesh)
    loads = body_forces(mesh, evaluate(forces, np.linspace(0, 1, mesh.degree * mesh.cells + 1)))
    results = [newton(body, load, np.zeros_like(load)) for load in loads.swapaxes(0, 1)]
    assert all(converged for _, converged in results)
    return np.stack([u[:, mesh.corners(len(image))] for u, _ in results])


if __name__ == "__main__":
    serve(measure)
