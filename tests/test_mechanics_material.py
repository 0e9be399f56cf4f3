"""Energy, stress, tangent: each is the derivative of the one before, at points and for whole bodies."""

import numpy as np
import pytest
import torch

from kernelmap.problems.mechanics.solver import assembly, material
from kernelmap.problems.mechanics.solver.assembly import Body, deformation, gradient, internal_forces
from kernelmap.problems.mechanics.solver.elements import Mesh
from kernelmap.problems.mechanics.solver.line import Lines
from kernelmap.problems.mechanics.solver.matrices import stiffness

rng = np.random.default_rng(0)
F = np.eye(2)[:, :, None] + 0.3 * rng.standard_normal((2, 2, 50))
F = F[:, :, material.determinant(F) > 0.1]
MU, LAM = material.lame(rng.uniform(1, 100, F.shape[2]))


def density(F: torch.Tensor, mu: torch.Tensor, lam: torch.Tensor) -> torch.Tensor:
    """The published ψ of one F, as it is printed (it is -μ/2 at rest)."""
    J = torch.linalg.det(F)
    return mu / 2 * ((F * F).sum() - 3 - 2 * torch.log(J)) + lam / 2 * ((J**2 - 1) / 2 - torch.log(J))


def each(function):
    """A function of one (F, μ, λ), for all points, components first."""
    points = (torch.from_numpy(np.moveaxis(F, -1, 0)), torch.from_numpy(MU), torch.from_numpy(LAM))
    return np.moveaxis(torch.func.vmap(function)(*points).numpy(), 0, -1)


def test_energy_is_the_published_one():
    np.testing.assert_allclose(material.energy(F, MU, LAM), each(density) + MU / 2, rtol=1e-12)


def test_stress_and_tangent_are_derivatives_of_the_energy():
    first = torch.func.grad(density)
    np.testing.assert_allclose(material.stress(F, MU, LAM), each(first), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(material.tangent(F, MU, LAM), each(torch.func.jacrev(first)), rtol=1e-10, atol=1e-10)


def test_at_rest_there_is_neither_energy_nor_stress():
    rest = np.eye(2)[:, :, None] + np.zeros_like(MU)
    assert not material.energy(rest, MU, LAM).any()
    assert not material.stress(rest, MU, LAM).any()


def test_an_inverted_point_has_infinite_energy():
    mirrored = np.diag([1.0, -1.0])[:, :, None]
    collapsed = np.diag([1.0, 0.0])[:, :, None]
    for deformation_gradient in (mirrored, collapsed):
        assert material.energy(deformation_gradient, MU[:1], LAM[:1])[0] == np.inf


def test_the_material_does_not_feel_rotations():
    c, s = np.cos(0.7), np.sin(0.7)
    turned = np.einsum("ij,jkp->ikp", np.array([[c, -s], [s, c]]), F)
    np.testing.assert_allclose(material.energy(turned, MU, LAM), material.energy(F, MU, LAM), rtol=1e-10)


BODIES = [Mesh("p1", 4, 1.0), Mesh("p1", 4, 2.0, "alternating"), Mesh("q1", 4, 1.0), Mesh("q2", 3, 2.0)]


@pytest.fixture(params=BODIES, ids=lambda mesh: f"{mesh.kind}-{mesh.diagonals}")
def state(request):
    """A body, displacements of three loads and directions."""
    mesh = request.param
    free = np.ones((2, len(mesh.points)), bool)
    free[:, mesh.on("left")] = False
    body = Body(mesh, rng.uniform(1, 100, mesh.cells**2), free)
    u, d = 0.02 * mesh.width * rng.standard_normal((2, 2, 3, len(mesh.points)))
    d[:, :, mesh.on("left")] = 0
    return body, u, d


def derivative(function, step=1e-2):
    """Four-point central difference at 0."""
    return (8 * (function(step) - function(-step)) - function(2 * step) + function(-2 * step)) / (12 * step)


def test_internal_forces_are_the_derivative_of_the_energy(state):
    body, u, d = state
    work = (internal_forces(body, deformation(body, u)) * d).sum(axis=(0, 2))
    difference = derivative(lambda t: assembly.energy(body, deformation(body, u + t * d)))
    np.testing.assert_allclose(work, difference, rtol=1e-8)


def test_stiffness_is_the_derivative_of_the_internal_forces(state):
    body, u, d = state
    for load in range(3):
        one = slice(load, load + 1)
        product = stiffness(body, deformation(body, u[:, one])) @ d[:, load][body.free]
        difference = derivative(lambda t, one=one: internal_forces(body, deformation(body, (u + t * d)[:, one])))
        scale = np.abs(product).max()
        np.testing.assert_allclose(product, difference[:, 0][body.free], rtol=0, atol=1e-8 * scale)


def test_stiffness_is_symmetric_and_at_rest_positive(state):
    body, u, _ = state
    K = stiffness(body, deformation(body, u[:, :1])).toarray()
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-12 * np.abs(K).max())
    assert np.linalg.eigvalsh(stiffness(body, deformation(body, 0 * u[:, :1])).toarray())[0] > 0


def test_energy_along_lines(state):
    body, u, d = state
    start, H = deformation(body, u), gradient(body, d)
    lines = Lines(body, start, H)
    for t in (-0.7, 0.3, 1.0):
        change = assembly.energy(body, start + t * H) - assembly.energy(body, start)
        np.testing.assert_allclose(lines.change(np.full(3, t)), change, rtol=1e-8)
    for load, curvature in enumerate(lines.curvature()):
        K = stiffness(body, start[:, :, load : load + 1])
        free = d[:, load][body.free]
        assert curvature == pytest.approx(free @ (K @ free), rel=1e-10)
