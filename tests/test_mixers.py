"""The forms of W(x, z): each against its formula written out, value by value, on any grid and at any output points."""

import json
from itertools import product
from math import cos, pi, sin, sqrt

import numpy as np
import pytest
import torch
from scipy.interpolate import LinearNDInterpolator, RegularGridInterpolator

from examples import CONTEXTS
from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape, Domain
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.core.metrics import relative_difference
from kernelmap.io.models import load_model, save_model
from kernelmap.maps import NAO, NAOOptions
from kernelmap.maps.nao.functions import Convolution, NetworkFunction, SpectralFunction, TwoPointFunction
from kernelmap.maps.nao.functions.interpolation import Interpolation

HEADS, WAVES = 2, 3
LINE = grids.from_points(torch.tensor([0.0, 0.2, 0.3, 0.7, 1.0, 1.5]))
PLANE = grids.rectangle(4, high=2.0)


def between(grid: Grid, count: int, seed: int = 0) -> Grid:
    """Points of no grid, in its box."""
    low, high = grid.points.amin(dim=0), grid.points.amax(dim=0)
    share = torch.rand(count, grid.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Grid(low + share * (high - low), torch.full((count,), 1.0 / count).double())


def function(kind: type, x: Grid, z: Grid) -> TwoPointFunction:
    torch.manual_seed(0)
    made = kind(Domain.of(x, 1.0), Domain.of(z, 1.0), HEADS, WAVES, 1.0).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def places(domain: Grid, grid: Grid) -> np.ndarray:
    """In [0, 1]."""
    low, high = domain.points.amin(dim=0), domain.points.amax(dim=0)
    return ((grid.points - low) / (high - low)).numpy()


def delta(z: Grid, x: Grid) -> np.ndarray:
    """Linear interpolation, by scipy."""
    axes = [np.unique(column) for column in z.points.numpy().T]
    shape = [len(axis) for axis in axes]
    columns = [RegularGridInterpolator(axes, e.reshape(shape))(x.points.numpy()) for e in np.eye(len(z.points))]
    return np.stack(columns, axis=1)


def cosines(k: tuple[int, ...], t: np.ndarray) -> float:
    return float(np.prod([(sqrt(2) if i else 1) * cos(pi * i * s) for i, s in zip(k, t, strict=True)]))


def dense(made: TwoPointFunction, x: Grid, z: Grid, h: np.ndarray, box: Grid) -> np.ndarray:
    """W(x, z) h(z), value by value."""
    t, s = places(box, x), places(box, z)
    cx, cz, n = x.components, z.components, len(z.points)
    pointwise = made.pointwise.c.detach().numpy()  # pyright: ignore
    few = list(product(range(round(pointwise.shape[-1] ** (1 / x.dim))), repeat=x.dim))
    D = delta(z, x)
    W = np.zeros((HEADS, cx, len(x.points), cz, n))
    for head, a, m, b in product(range(HEADS), range(cx), range(len(x.points)), range(cz)):
        c = sum(pointwise[head, a, b, i] * cosines(k, t[m]) for i, k in enumerate(few))
        for j in range(n):
            smooth = spectral(made, head, a, b, t[m], s[j]) * h.reshape(cz, n)[b, j]
            W[head, a, m, b, j] = c * D[m, j] + smooth
    return W.reshape(HEADS, cx * len(x.points), cz * n)


def spectral(made: TwoPointFunction, head: int, a: int, b: int, t: np.ndarray, s: np.ndarray) -> float:
    if isinstance(made, SpectralFunction):
        waves = list(product(range(WAVES), repeat=len(t)))
        R = len(waves)
        M = made.M.detach().numpy().reshape(HEADS, -1, made.M.shape[1])[head, a * R : (a + 1) * R, b * R : (b + 1) * R]
        return float(np.array([cosines(k, t) for k in waves]) @ M @ np.array([cosines(k, s) for k in waves]))
    assert isinstance(made, Convolution)
    waves = [k for k in product(range(1 - WAVES, WAVES), repeat=len(t)) if k >= (0,) * len(t)]
    A, B = (p.detach().numpy()[head, a, b] for p in (made.a, made.b))
    angles = [pi * float(np.dot(k, t - s)) for k in waves]
    return sum(A[i] * cos(angle) + B[i] * sin(angle) for i, angle in enumerate(angles))


@pytest.mark.parametrize("kind", [SpectralFunction, Convolution])
@pytest.mark.parametrize(("grid", "components"), [(LINE, (1, 1)), (LINE, (2, 3)), (PLANE, (1, 1)), (PLANE, (2, 1))])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_integrals_are_those_of_the_matrix_written_out(kind, grid, components, elsewhere):
    x, z = (grid.with_components(c) for c in components)
    made = function(kind, x, z)
    at = between(grid, 5).with_components(components[0]) if elsewhere else x
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(2, HEADS, z.size, 3, generator=generator, dtype=torch.float64)
    W = torch.from_numpy(dense(made, at, z, z.value_weights.numpy(), grid))
    with torch.no_grad():
        assert relative_difference(made.rows(at, z, z.value_weights), W) < 1e-10
        assert relative_difference(made.integrate(at, z, z.value_weights, values), W @ values) < 1e-10


def test_without_a_box_of_their_own_there_is_no_delta():
    line = grids.from_points(torch.linspace(0, 1, 5))
    assert function(SpectralFunction, line, LINE).pointwise is None
    with pytest.raises(InputError, match="one box; use --mixer spectral"):
        function(Convolution, line, LINE)


def test_interpolation_between_scattered_points_is_scipys():
    z, x = between(PLANE, 30), between(PLANE, 20, seed=3)
    v = torch.randn(30, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected = LinearNDInterpolator(z.points.numpy(), v.numpy())(x.points.numpy())
    found = Interpolation.of(z, x)
    inside = ~np.isnan(expected[:, 0])
    assert 5 < inside.sum() < 20
    np.testing.assert_allclose(found.apply(v)[inside], expected[inside], atol=1e-12)
    nearest = torch.cdist(x.points, z.points).argmin(dim=1)[~inside]
    torch.testing.assert_close(found.apply(v)[~inside], v[nearest])
    torch.testing.assert_close(found.apply(torch.eye(30, dtype=v.dtype)) @ v, found.apply(v))


def test_a_mesh_in_any_order_and_its_ends():
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))
    z = Grid(PLANE.points[order], PLANE.weights[order])
    v = (z.points[:, :1] + 2 * z.points[:, 1:]) * z.points[:, :1]
    found = Interpolation.of(z, PLANE).apply(v)
    torch.testing.assert_close(found[order], v)
    beyond = Grid(torch.tensor([[2.05, 2.05]]).double(), torch.ones(1).double())
    torch.testing.assert_close(Interpolation.of(z, beyond).apply(v), torch.full((1, 1), 12.0).double())


def test_points_on_one_line_of_the_plane_are_refused():
    t = torch.tensor([0.0, 0.3, 1.0, 0.5]).double()
    z = Grid(torch.stack([t, t], dim=1), torch.ones(4).double())
    with pytest.raises(InputError, match="on one line"):
        Interpolation.of(z, PLANE)


@pytest.mark.parametrize("mixer", ["spectral", "convolution"])
def test_no_array_of_a_step_has_the_square_of_the_nodes(mixer):
    """On 61 x 61 nodes one such array in float32 takes 55 MB; the largest here is a fifth of that."""
    n = 61
    grid = grids.rectangle(n)
    U, F = torch.randn(n * n, 4), torch.randn(n * n, 4)
    context = Context(U, F, grid, grid)
    model = NAO(ContextShape.of(context), NAOOptions(dk=3, mixer=mixer))
    with torch.profiler.profile(profile_memory=True) as profile:
        model(context).apply(U).sum().backward()
    assert max(event.cpu_memory_usage for event in profile.events() or []) < n**4 * 4 / 5


def test_tokens_weigh_into_the_kernel_at_a_point_with_one():
    """Of a radial system W_u is a sum of cosines of r, and W_f a number."""
    context = CONTEXTS["radial"](batch=())
    model = NAO(ContextShape.of(context), NAOOptions(dk=3, mixer="spectral", waves=5)).double()
    assert isinstance(model.w_u, SpectralFunction)
    assert model.w_u.M.shape == (1, 5)
    assert model.w_f is not None
    ones = torch.ones(1, 1, 1, dtype=torch.float64)
    torch.testing.assert_close(model.w_f.integrate(context.x, context.x, ones[0, 0], ones), model.w_f.constants[None])  # pyright: ignore


def test_fields_have_spectral_functions_by_default_and_points_networks():
    for kind, expected in (("square", SpectralFunction), ("vector", SpectralFunction), ("radial", NetworkFunction)):
        model = NAO(ContextShape.of(CONTEXTS[kind](batch=())), NAOOptions(dk=3))
        assert type(model.w_u) is expected


def test_models_of_before_there_were_mixers_are_networks(tmp_path):
    context = CONTEXTS["square"](batch=())
    model = NAO(ContextShape.of(context), NAOOptions(dk=3, mixer="network")).double()
    save_model(tmp_path, model, {})
    config = json.loads((tmp_path / "config.json").read_text())
    for new in ("mixer", "waves"):
        del config["options"][new]
    config["options"]["rank"] = None
    rewritten(tmp_path, model, config)
    loaded, _ = load_model(tmp_path)
    assert loaded.options == model.options
    assert torch.equal(loaded(context).values, model(context).values)
    config["options"]["rank"] = 4
    rewritten(tmp_path, model, config)
    with pytest.raises(InputError, match="low rank is no form of NAO any more"):
        load_model(tmp_path)


def rewritten(directory, model: NAO, config: dict) -> None:
    """The files of an earlier version."""
    from kernelmap.core.files import write_json, write_tensors

    write_tensors(directory / "weights.safetensors", model.state_dict(), {"config": json.dumps(config)})
    write_json(directory / "config.json", config)


@pytest.mark.parametrize("mixer", ["spectral", "convolution"])
def test_before_training_the_pointwise_part_carries_f_alone(mixer):
    """K = W_f A_fu + W_u A_uu starts near A_fu: a pointwise part of W_u would add the inputs to the responses."""
    torch.manual_seed(0)
    context = CONTEXTS["square"](batch=())
    model = NAO(ContextShape.of(context), NAOOptions(dk=3, mixer=mixer)).double()
    values = torch.randn(1, context.x.size, 2, dtype=torch.float64)
    mixed_f = model.w_f.integrate(context.x, context.x, context.x.value_weights, values)  # pyright: ignore
    mixed_u = model.w_u.integrate(context.x, context.y, context.y.value_weights, values)
    assert relative_difference(mixed_f, values) < 0.5
    assert mixed_u.norm() < 0.5 * values.norm()
