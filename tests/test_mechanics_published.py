"""A finite-element result that others published: uniaxial extension of an MNIST specimen (Mechanical MNIST)."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kernelmap.problems.mechanics.images import modulus
from kernelmap.problems.mechanics.solver.assembly import Body, deformation, energy, internal_forces
from kernelmap.problems.mechanics.solver.elements import Mesh
from kernelmap.problems.mechanics.solver.newton import newton

EXTENSIONS = (0, 0.001, 0.01, 0.1, 0.5, 1, 2, 4, 6, 8, 10, 12, 14)
PUBLISHED = np.load(Path(__file__).parent / "data" / "mechanical_mnist.npz")


def test_the_kept_figures_are_the_published_ones(reference):
    for name in PUBLISHED.files:
        np.testing.assert_array_equal(PUBLISHED[name], np.loadtxt(reference / "mechanics" / f"{name}.txt"))


@cache
def extended() -> tuple[Body, list[np.ndarray]]:
    """Bottom fixed, top u = (0, D), sides free: every extension from the one before."""
    mesh = Mesh("p1", 28, 28.0, "alternating")
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on("bottom", "top")] = False
    body = Body(mesh, modulus(PUBLISHED["image"]).ravel(), free)
    u, before, steps = np.zeros(free.shape), 0.0, []
    for extension in EXTENSIONS:
        stretched = u + np.stack([0 * u[1], (extension - before) * mesh.points[:, 1] / 28])
        u, converged = newton(body, np.zeros_like(u), stretched)
        assert converged
        steps.append(u)
        before = extension
    return body, steps


@pytest.mark.parametrize("step", range(13))
def test_strain_energy(step):
    """To 1e-9, or to the rounding of the published figures: see the next test."""
    body, steps = extended()
    value = energy(body, deformation(body, steps[step][:, None]))[0]
    assert value == pytest.approx(PUBLISHED["strain_energy"][step], rel=1e-9, abs=3e-11)


def test_the_rounding_of_the_published_energies():
    """They are changes from -Σ μ/2 at rest, 1568 terms that add up to -2305 and, cell by cell, 2.6e-11 of rounding."""
    mu = modulus(PUBLISHED["image"]).T.ravel() / 2.6
    terms = np.repeat(-mu / 2 * 0.5, 2)
    in_order = np.cumsum(terms)[-1] - np.sum(terms.astype(np.longdouble))
    body, steps = extended()
    for step in (1, 2, 3):
        value = energy(body, deformation(body, steps[step][:, None]))[0]
        assert value - PUBLISHED["strain_energy"][step] == pytest.approx(in_order, abs=5e-12)


@pytest.mark.parametrize("step", range(13))
def test_reactions_at_the_top(step):
    body, steps = extended()
    forces = internal_forces(body, deformation(body, steps[step][:, None]))[:, 0]
    top = forces[:, body.mesh.on("top")].sum(axis=1)
    np.testing.assert_allclose(top, PUBLISHED["rxn_force"][step, [0, 2]], rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("step", [6, 12])
def test_displacements_at_pixel_centres(step):
    """The centre of a pixel is the middle of its diagonal; cell (0, 0) has the falling one."""
    _, steps = extended()
    u = steps[step].reshape(2, 29, 29)
    falling = np.indices((28, 28)).sum(axis=0) % 2 == 0
    centre = np.where(falling, u[:, 1:, :-1] + u[:, :-1, 1:], u[:, :-1, :-1] + u[:, 1:, 1:]) / 2
    for component, name in enumerate("xy"):
        published = PUBLISHED[f"pixel_disp_step{step}_{name}"]
        np.testing.assert_allclose(centre[component].T, published, rtol=0, atol=1e-9)
