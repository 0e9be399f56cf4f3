"""Local kernels of lines and rectangles, of data from much finer meshes, and of schemes and elements."""

import numpy as np
import pytest
import torch

from fine_meshes import flow
from kernelmap import discover, load_model
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.mesh.lattice import Lattice, steps
from kernelmap.core.metrics import operator_error
from kernelmap.io.measurements import read_measurements
from kernelmap.posterior.stencil import StencilMap
from kernelmap.posterior.stencil.averaging import Averaging
from kernelmap.posterior.stencil.local import LocalPosteriorMap
from kernelmap.posterior.stencil.solution import SolutionPosterior, SolutionPosteriorMap


@pytest.fixture(scope="module")
def model() -> StencilMap:
    found = load_model("darcy")[0].double()
    assert isinstance(found, StencilMap)
    return found


def judged(model: StencilMap, known: Context, fresh: Context) -> tuple[float, float]:
    """The error of fresh pairs, and the fraction of their values inside their 95 % interval."""
    with torch.no_grad():
        mean, std = model.select_model(known).posterior(known).predict(fresh.U)
    responds = (fresh.F != 0).any(dim=1)
    inside = ((mean - fresh.F).abs() <= 1.96 * std)[responds]
    return float(operator_error(mean, fresh.F, fresh.x)), float(inside.double().mean())


@pytest.mark.parametrize("to_pressure", [True, False])
@pytest.mark.parametrize("sides", [(2.0, 1.0), (0.05, 0.05)])
def test_rectangles_of_any_size_from_a_finer_mesh(model, sides, to_pressure):
    """33 x 17 nodes of 2 x 1, and of a square of 50 mm where the steps along the axes differ."""
    data = flow((33, 17), sides)
    error, coverage = judged(model, *(data.context(part, to_pressure) for part in (slice(40), slice(40, None))))
    assert error < 0.02
    assert coverage > 0.9


def test_a_rectangle_in_a_report(tmp_path, kernelmap):
    """The smooth medium is not cut in two phases."""
    data = flow((33, 17), (2.0, 1.0), pairs=40)
    np.savez(tmp_path / "flow.npz", x1=data.axes[0], x2=data.axes[1], u=data.pressure, f=data.source)
    code, _, err = kernelmap("discover", tmp_path / "flow.npz", "--out", tmp_path / "found")
    assert code == 0, err
    page = (tmp_path / "found" / "report.html").read_text()
    assert "Two phases" not in page
    assert "likelier to vary smoothly" in page


def line(finer: int, pairs: int = 60, n: int = 41) -> dict[str, np.ndarray]:
    """-(b p')' = g on a line of length 3, by dense finite differences."""
    x = np.linspace(0, 3, finer * (n - 1) + 1)
    h, inner = x[1], slice(1, -1)
    b = np.exp(0.5 * np.sin(2 * x) + 0.3 * np.cos(5 * x))
    faces = (b[1:] + b[:-1]) / 2 / h**2
    A = np.diag(faces[1:] + faces[:-1]) - np.diag(faces[1:-1], 1) - np.diag(faces[1:-1], -1)
    k = np.arange(1, 21)
    rng = np.random.default_rng(0)
    g = rng.normal(size=(pairs, 20)) / k @ np.sin(np.pi * k[:, None] * x / 3)
    p = np.zeros_like(g)
    p[:, inner] = np.linalg.solve(A, g[:, inner].T).T
    return {"x1": x[::finer], "g": g[:, ::finer], "p": p[:, ::finer]}


@pytest.mark.parametrize(("u", "f"), [("g", "p"), ("p", "g")])
def test_a_line_from_file_to_prediction(tmp_path, kernelmap, u, f):
    data = line(finer=8)
    np.savez(tmp_path / "line.npz", x1=data["x1"], u=data[u][:50], f=data[f][:50])
    code, _, err = kernelmap("discover", tmp_path / "line.npz", "--out", tmp_path / "found")
    assert code == 0, err
    np.savez(tmp_path / "new.npz", x1=data["x1"], u=data[u][50:])
    args = (tmp_path / "found" / "discovery.h5", tmp_path / "new.npz", "--out", tmp_path / "p.npz")
    assert kernelmap("predict", *args)[0] == 0
    with np.load(tmp_path / "p.npz") as predicted:
        off, truth = predicted["mean"] - data[f][50:], data[f][50:]
        assert np.linalg.norm(off) < 0.01 * np.linalg.norm(truth)
        responds = truth.any(axis=0)
        assert (np.abs(off) <= 1.96 * predicted["std"])[:, responds].mean() > 0.9


def test_a_plane_without_x2_is_refused_with_what_to_do(tmp_path):
    np.savez(tmp_path / "plane.npz", x1=np.arange(4.0), u=np.ones((3, 4, 4)), f=np.ones((3, 4, 4)))
    with pytest.raises(Exception, match=r"fields on a plane need x2 too\), got \(3, 4, 4\)"):
        read_measurements(tmp_path / "plane.npz")


def lattice(*axes: torch.Tensor) -> Lattice:
    mesh = grids.mesh(*axes)
    return Lattice.of(mesh, mesh)


def test_averaging_with_a_sixth_is_the_mass_matrix_of_linear_elements():
    """(1/6, 4/6, 1/6), where there are neighbours on both sides; on a plane that of bilinear elements."""
    sixth = torch.full((1, 1), 1 / 6, dtype=torch.float64)
    M = Averaging.of(lattice(torch.arange(5.0)), torch.ones(5, dtype=torch.bool), sixth).matrix
    torch.testing.assert_close(M[2], torch.tensor([0, 1, 4, 1, 0], dtype=torch.float64) / 6)
    assert M[0].tolist() == [1, 0, 0, 0, 0]
    plane = Averaging.of(lattice(torch.arange(5.0), torch.arange(5.0)), torch.ones(25, dtype=torch.bool), sixth)
    hat = torch.tensor([0, 1, 4, 1, 0], dtype=torch.float64) / 6
    torch.testing.assert_close(plane.matrix[12].reshape(5, 5), torch.outer(hat, hat))


def test_averaging_with_a_twelfth_is_of_fourth_order():
    """Of -p'' = g: the five-point scheme's error is of second order in the step, with M of fourth (Numerov)."""
    errors = []
    for n in (16, 32):
        x = torch.linspace(0, 1, n + 1, dtype=torch.float64)
        p, g = torch.sin(3 * x), 9 * torch.sin(3 * x)
        second = -(p[2:] - 2 * p[1:-1] + p[:-2]) * n**2
        row = []
        for gamma in (0.0, 1 / 12):
            free = torch.ones(n + 1, dtype=torch.bool)
            M = Averaging.of(lattice(x), free, torch.full((1, 1), gamma, dtype=torch.float64))
            row.append(float((second - M.apply(g[:, None])[1:-1, 0]).abs().max()))
        errors.append(row)
    rates = np.log2(np.array(errors[0]) / np.array(errors[1]))
    np.testing.assert_allclose(rates, [2, 4], atol=0.1)


@pytest.mark.parametrize(("finer", "gamma"), [(1, None), (8, 1 / 12)])
def test_the_averaging_is_found(model, finer, gamma):
    """Of a scheme on its own mesh there is none; of much finer data there is."""
    context = flow((13, 13), (1.0, 1.0), finer, pairs=30).context(slice(None), to_pressure=False)
    found = LocalPosteriorMap.posterior(model, context).averaging
    assert (None if found is None else float(found.gamma)) == gamma


def test_a_saved_solution_averages_as_before(model):
    context = flow((9, 9), (1.0, 1.0), pairs=30).context(slice(None), to_pressure=True)
    found = SolutionPosteriorMap.of(model).posterior(context)
    assert found.local.averaging is not None
    again = SolutionPosterior.restored(found.state(), found.kernel, context.d)
    for one, other in zip(found.predict(context.U), again.predict(context.U), strict=True):
        torch.testing.assert_close(one, other)


def test_steps_of_cells_that_are_not_square():
    """Bonds of the Laplacian: 1 / h² along both axes, relative to the same area."""
    wide = lattice(torch.arange(4.0), 2 * torch.arange(4.0)).stretch(1)
    along = {tuple(o): float(v) for o, v in zip(steps(1).tolist(), wide, strict=True)}
    assert along[1, 0] == pytest.approx(2)
    assert along[0, 1] == pytest.approx(0.5)
    assert along[0, 0] == 1
    assert lattice(torch.arange(4.0), torch.arange(5.0)).stretch(2).unique().tolist() == [1]


def test_reactions_of_constrained_nodes_are_named(model):
    """Sources on the boundary, where the pressure is zero, do not make the others look noisy."""
    context = flow((13, 13), (1.0, 1.0), 1, pairs=30).context(slice(None), to_pressure=False)
    ring = (context.U == 0).all(dim=1)
    F = torch.where(ring[:, None], torch.randn(context.F.shape, generator=torch.Generator().manual_seed(0)), context.F)
    given = Context(context.U, F, context.y, context.x)
    found = discover(model, given)
    assert found.noise == 0
    assert any("48 points where u is zero in all pairs" in diagnostic.seen for diagnostic in found.diagnostics)
    mean, std = found.predict(context.U)
    assert ((mean - F).abs() <= 1.96 * std)[ring].double().mean() > 0.8
    assert float((mean - F)[~ring].norm() / F[~ring].norm()) < 1e-3
