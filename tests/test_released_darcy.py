"""The authors' released Darcy checkpoints: their outputs where the files are, and their formulas written out."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, leaky_relu, linear

from kernelmap.core import grids
from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.grids import Grid
from kernelmap.paper.released import Moments, import_released_darcy

PLAIN = Moments(0.0, 1.0, 0.0, 1.0)
RECORD = Path(__file__).parents[1] / "experiments" / "results" / "darcy" / "released.json"


@pytest.mark.parametrize(("name", "d", "parameters"), [("dk40", 50, 189234), ("dk20_small", 20, 76914)])
def test_released_outputs_are_reproduced(reference, name, d, parameters):
    cases = np.load(reference / "released" / "darcy_cases.npz")
    grid = grids.rectangle(21, low=-1.0)
    model = import_released_darcy(reference / "released" / f"darcy_gtou_{name}.ckpt", grid, PLAIN)
    X, theirs = (torch.from_numpy(cases[key]).double() for key in (f"input_d{d}", f"output_{name}"))
    with torch.no_grad():
        ours = model(Context(X[:441], X[441:], grid, grid)).apply(X[:441])
    difference = float((ours - theirs).norm() / theirs.norm())
    assert difference < 1e-5
    assert model.parameter_count == parameters
    recorded = json.loads(RECORD.read_text())["results"][f"darcy_gtou_{name}"]["difference"]
    assert difference == pytest.approx(recorded, rel=0.1)


def random_checkpoint(d: int, dk: int, layers: int, n: int, seed: int = 0) -> dict[str, Tensor]:
    """A state dict of the released form with random weights."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {f"fc{kind}_{layer}_0": (dk, d) for kind in "qk" for layer in range(layers)}
    for name in ("kernel", "kernelf"):
        sizes |= {f"{name}.layers.{i}": size for i, size in ((0, (32, 4)), (2, (64, 32)), (4, (1, 64)))}
    state = {}
    for name, (rows, columns) in sizes.items():
        state[f"{name}.weight"] = torch.randn(rows, columns, generator=generator).double() / columns**0.5
        state[f"{name}.bias"] = torch.randn(rows, generator=generator).double()
    for layer in range(layers):
        for part in ("weight", "bias"):
            state[f"fcn{layer}.{part}"] = torch.randn(2 * n * n, d, generator=generator).double()
    return state


def written_out(state: dict[str, Tensor], X: Tensor, layers: int, n: int) -> Tensor:
    """P of standardised tokens X by the released model's formulas, with the attention matrices built."""
    N, h = n * n, (2 / (n - 1)) ** 2
    t = torch.linspace(-1, 1, n).double()
    x = torch.cartesian_prod(t, t)
    z = x.flip(1)

    def norm(layer: int, Y: Tensor) -> Tensor:
        return layer_norm(Y, list(Y.shape), state[f"fcn{layer}.weight"], state[f"fcn{layer}.bias"])

    def attention(layer: int, V: Tensor) -> Tensor:
        q, k = (linear(V, state[f"fc{c}_{layer}_0.weight"], state[f"fc{c}_{layer}_0.bias"]) for c in "qk")
        return q @ k.T / q.shape[1] ** 0.5

    def W(name: str) -> Tensor:
        values = torch.cat([x[:, None].expand(N, N, 2), z[None].expand(N, N, 2)], dim=-1)
        for layer in (0, 2, 4):
            values = linear(values, state[f"{name}.layers.{layer}.weight"], state[f"{name}.layers.{layer}.bias"])
            values = leaky_relu(values) if layer < 4 else values
        return values[..., 0]

    V = norm(0, X)
    for layer in range(layers - 1):
        V = norm(layer + 1, h * attention(layer, V) @ V) + V
    A, g = attention(layers - 1, V), X[:N]
    return h * (W("kernel").T @ (h * A[:N, :N] @ g) + W("kernelf").T @ (h * A[N:, :N] @ g))


def imported(tmp_path: Path, state: dict[str, Tensor], grid: Grid, moments: Moments):
    torch.save(state, tmp_path / "random.ckpt")
    return import_released_darcy(tmp_path / "random.ckpt", grid, moments)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_an_import_is_the_released_formulas_for_any_number_of_layers(tmp_path, layers):
    """On sources and pressures of other units, too: sources without a mean, for which nothing is dropped."""
    n, d, dk = 5, 6, 3
    state = random_checkpoint(d, dk, layers, n)
    grid, moments = grids.rectangle(n), Moments(0.0, 3.0, 0.2, 0.01)
    g, p = torch.randn(2, n * n, d, generator=torch.Generator().manual_seed(1)).double()
    model = imported(tmp_path, state, grid, moments)
    with torch.no_grad():
        ours = model(Context(g, p, grid, grid)).apply(g)
    X = torch.cat([g / moments.u_std, (p - moments.f_mean) / moments.f_std])
    theirs = written_out(state, X, layers, n)
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-9


def test_checkpoints_of_other_grids_and_other_problems_are_refused(tmp_path):
    state = random_checkpoint(6, 3, 2, 5)
    with pytest.raises(InputError, match="is not a released NAO on 16 nodes"):
        imported(tmp_path, state, grids.rectangle(4), PLAIN)
    del state["kernelf.layers.2.bias"]
    with pytest.raises(InputError, match=r"kernelf\.layers\.2\.bias"):
        imported(tmp_path, state, grids.rectangle(5), PLAIN)
