"""Many systems and large meshes: batches are worked on in parts, and what nobody asks for is not built."""

from pathlib import Path

import numpy as np
import pytest
import torch

from kernelmap.core import grids, systems
from kernelmap.core.context import Context
from kernelmap.discovery import discover, discoveries
from kernelmap.evaluation import evaluate
from kernelmap.io import load_model
from kernelmap.problems.darcy import darcy
from kernelmap.problems.darcy.fields import microstructures, sources
from kernelmap.problems.darcy.scheme import pressures
from processes import python


def flows(count: int, n: int = 7) -> Context:
    """Pressures of so many media under the same 20 sources."""
    g = sources(n, range(20))
    p = np.stack([pressures(b, g) for b in microstructures(n, range(count))])
    F, U = (torch.from_numpy(values).flatten(-2).mT.contiguous() for values in (p, g[None]))
    return Context(U, F, grids.rectangle(n), grids.rectangle(n))


def test_parts_of_a_batch_are_the_batch():
    U, F = torch.randn(1, 1, 6, 4), torch.randn(3, 7, 1, 4)
    whole = Context(U, F, grids.radii(0.5, 6), grids.point())
    parts = whole.split(2, 1)
    assert [part.batch_shape for part in parts] == [(3, 2), (3, 2), (3, 2), (3, 1)]
    assert torch.equal(torch.cat([part.F for part in parts], dim=1), F)
    assert all(part.U is U for part in parts)


def test_kernels_of_a_batch_part_by_part(monkeypatch):
    model, context = load_model("darcy")[0].double(), flows(5)
    with torch.no_grad():
        whole = model(context).values
        monkeypatch.setattr(systems, "MOST_SYSTEMS", 2)
        parts = model(context).values
    torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-10 * float(whole.abs().max()))


def test_memory_does_not_grow_with_the_batch():
    """Kernels of 16 and of 70 systems, beside the kernels themselves; in one go a thousand took 4 GB."""
    code = (
        "import torch\n"
        "from kernelmap.paper.benchmarks.processes import peak_memory_gb\n"
        "from test_many_systems import flows\nfrom kernelmap.io import load_model\n"
        "model, few, many = load_model('darcy')[0].double(), flows(16), flows(70)\n"
        "with torch.no_grad():\n"
        "    model(few); before = peak_memory_gb(); values = model(many).values\n"
        "print(peak_memory_gb() - before - values.nbytes / 1e9)"
    )
    done = python("-c", code, cwd=Path(__file__).parent)
    assert float(done.stdout) < 0.15, done.stderr


def test_discoveries_are_found_one_by_one():
    model, context = load_model("darcy")[0], flows(2)
    asked = iter([context[0], context[1]])
    first = next(discoveries(model, asked))
    assert len(list(asked)) == 1
    assert torch.equal(first.kernel.values, discover(model, context[0]).kernel.values)


def test_errors_do_not_depend_on_the_parts(monkeypatch):
    model, data = load_model("darcy")[0].double(), darcy("p-to-g", 7).test
    few = data.select(data.names[:2])
    whole = evaluate(model, few, 20)
    monkeypatch.setattr(systems, "MOST_VALUES", 1)
    parts = evaluate(model, few, 20)
    for name, errors in whole["systems"].items():
        assert parts["systems"][name] == pytest.approx(errors, rel=1e-8)


def test_memory_of_a_mesh_is_that_of_a_few_kernels(tmp_path):
    """From sources to pressures: the Green's function, its band, the check and the report."""
    n = 31
    g = sources(n, range(20))
    p, axis = pressures(microstructures(n, [0])[0], g), np.linspace(0, 1, n)
    np.savez(tmp_path / "flow.npz", x1=axis, x2=axis, u=g, f=p)
    code = (
        "from kernelmap.paper.benchmarks.processes import peak_memory_gb\n"
        "from kernelmap.cli.main import main\n"
        "try: main()\nfinally: print(peak_memory_gb())"
    )
    words = ["discover", str(tmp_path / "flow.npz"), "--model", "darcy", "--out", str(tmp_path / "out")]
    done = python("-c", code, *words)
    assert float(done.stdout.split()[-1]) < 0.45 + 20 * 8e-9 * n**4
