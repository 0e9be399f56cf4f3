"""The order-free NAO (`set-nao`) and its exact limit (`integral-posterior`) on systems they have not seen.

    python experiments/order_free.py [darcy|meshes|splines|line|specimens|own-loads|interpolating|depth|figure]

Each part trains what it needs, in minutes on one core, and writes results/order_free/PART.json; finished parts are made
anew only when named. Pairs are drawn at random, and one set of weights serves all numbers of pairs. Nothing is chosen
on test systems: checkpoints are those with the lowest loss on training systems kept apart and, where all systems share
their inputs, on inputs kept apart.
"""

import json
import sys
from dataclasses import asdict, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kernels_of_two_points import line_systems, with_best_ridge
from order_free_errors import DRAWS, measure
from order_free_systems import MESHES, TESTS, interior, missed_between, on_nodes, splined, with_own_loads
from parts import run_parts

from kernelmap.core.files import read_json
from kernelmap.core.systems import SystemSet
from kernelmap.evaluation.evaluate import estimate
from kernelmap.io.models import load_model
from kernelmap.maps import MAPS, KernelMap, SetNAO
from kernelmap.maps.nao.set_nao.newton_schulz import START
from kernelmap.paper.tables.darcy import order_free
from kernelmap.paper.tables.mechanics import TABLE4
from kernelmap.paper.tables.run import trained_model, training_record
from kernelmap.problems.darcy import darcy
from kernelmap.problems.mechanics import Plan, generate, mechanics, mnist
from kernelmap.training import Recipe, train

RESULTS = Path(__file__).parent / "results" / "order_free"
PAIRS = 100
SPECIMENS, OWN_SPECIMENS = 50, 20
PAPER = RESULTS.parent / "paper"
RECIPE = order_free(True)[0].recipe
LINE = replace(RECIPE, epochs=200, batch=6, validation_systems=6, every=10)


def trained(name: str, map: str, systems: SystemSet, d: int, recipe: Recipe, **options: Any) -> tuple[KernelMap, float]:
    """The model, trained as far as that is not done, and the seconds it took."""
    run = RESULTS / "runs" / name
    train(map, MAPS[map].Options(**options), systems, d, recipe, run, about=systems.about, resume=True)
    seconds = json.loads((run / "log.jsonl").read_text().splitlines()[-1])["seconds"]
    return load_model(run)[0].double(), seconds


def of_darcy(map: str, own: bool) -> tuple[KernelMap, float]:
    """The model of the rows of Table 3."""
    row = next(row for row in order_free(own) if row.map == map)
    model = trained_model(row, PAPER)
    assert model is not None
    return model.double(), training_record(row, PAPER)["seconds"]


def darcy_part() -> dict[str, Any]:
    """Trained on sources of every system's own and on shared ones; kernels between interior nodes, Frobenius norm."""
    results: dict[str, Any] = {}
    for map, own in (("set-nao", True), ("set-nao", False), ("integral-posterior", True)):
        data = darcy("g-to-p", own_sources=own)
        model, seconds = of_darcy(map, own)
        found = {f"d = {d}": measure(model, data.test, data.heldout, d, interior(21)) for d in (20, 50)}
        name = f"{map}, {'own' if own else 'shared'} sources"
        results[name] = {"seconds": seconds, "parameters": model.parameter_count} | found
    return results


def meshes() -> dict[str, Any]:
    """Trained at 21 x 21 nodes, used at 41 x 41 and on uneven meshes of 31 x 31 nodes (`MESHES`)."""
    results: dict[str, Any] = {}
    for map in ("set-nao", "integral-posterior"):
        model, _ = of_darcy(map, own=True)
        for name, (n, nodes) in MESHES.items():
            test, heldout = (on_nodes(n, nodes, pairs) for pairs in (range(PAIRS), range(PAIRS, 2 * PAIRS)))
            rows = interior(len(nodes))
            results[f"{map}, {name}"] = {f"d = {d}": measure(model, test, heldout, d, rows) for d in (20, 50)}
    model, _ = of_darcy("integral-posterior", own=True)
    results["band at 21 x 21 and at 41 x 41 nodes, relative difference"] = band_difference(model)
    results["sources between the nodes, percent missed"] = {
        name: missed_between(n, nodes) for name, (n, nodes) in MESHES.items() if "31" in name
    }
    return results


def splines() -> dict[str, Any]:
    """Fields measured on the random mesh, taken to the even mesh of 61 x 61 nodes by cubic splines."""
    n, nodes = MESHES["random 31 x 31"]
    test, heldout = (splined(on_nodes(n, nodes, pairs), n, nodes) for pairs in (range(PAIRS), range(PAIRS, 2 * PAIRS)))
    model, _ = of_darcy("set-nao", own=True)
    found = {f"d = {d}": measure(model, test, heldout, d, interior(n)) for d in (20, 50)}
    return {"set-nao, random 31 x 31, splines to 61 x 61": found}


@torch.no_grad()
def band_difference(model: KernelMap) -> dict[str, float]:
    found = {}
    for d in (20, 50):
        bands = []
        for n in (21, 41):
            context = on_nodes(n, np.arange(n), range(d)).batch(torch.arange(d)[None], torch.arange(TESTS))
            std = estimate(model, context).std
            assert std is not None
            step = (n - 1) // 20
            bands.append(std.unflatten(-1, (n, n)).unflatten(-3, (n, n))[..., ::step, ::step, ::step, ::step])
        found[f"d = {d}"] = round(float((bands[0] - bands[1]).norm() / bands[1].norm()), 4)
    return found


def line() -> dict[str, Any]:
    """K(x, y) = A(x) exp(-|x - y| / sqrt(w(x) w(y))), 1 % noise, against ridge with the lambda best for the truth."""
    systems, noiseless = line_systems(40)
    train_set, test = systems.select(systems.names[:30]), systems.select(systems.names[30:])
    train_set = replace(train_set, u=train_set.u[:, :100], f=train_set.f[:, :100])
    seen, heldout = (replace(test, u=test.u[:, part], f=test.f[:, part]) for part in (slice(100), slice(100, None)))
    everywhere = torch.ones(test.x.size, dtype=torch.bool)
    results: dict[str, Any] = {}
    for map, recipe in (("set-nao", LINE), ("integral-posterior", replace(LINE, precision="float64", epochs=100))):
        model, seconds = trained(f"line-{map}", map, train_set, 60, recipe)
        results[map] = {"seconds": seconds, "parameters": model.parameter_count}
        for d in (15, 25, 50, 90):
            results[map][f"d = {d}"] = measure(model, seen, heldout, d, everywhere, noiseless[30:, 100:])
    results["ridge"] = {
        f"d = {d}": with_best_ridge(seen, heldout.u, noiseless[30:, 100:], d, DRAWS) for d in (15, 25, 50, 90)
    }
    return results


def specimens() -> dict[str, Any]:
    """Hyperelastic specimens (Table 4, with 40 of them for training): loads that all share, or loads of their own.

    Both are tested on 10 other specimens under loads that no training specimen has seen.
    """
    file = RESULTS / "runs" / "specimens.h5"
    if not file.exists():
        generate(Plan(mnist().first(SPECIMENS)), file, jobs=1)
    data = mechanics(file, "id")
    nodes = torch.ones(data.test.x.size, dtype=torch.bool)
    cases = {
        "before training": (data.train, 1e-9, 0, 1),
        "shared loads": (data.train, 1e-2, 40, 20),
        "loads of their own": (with_own_loads(OWN_SPECIMENS, RESULTS / "runs" / "own-loads.h5"), 1e-2, 0, 16),
    }
    results: dict[str, Any] = {}
    for name, (systems, lr, inputs, epochs) in cases.items():
        recipe = replace(RECIPE, lr=lr, epochs=epochs, validation_inputs=inputs, validation_systems=4, every=2)
        run = "specimens-" + name.replace(" ", "-")
        model, seconds = trained(run, "set-nao", systems, 100, recipe, basis="sines")
        found = {f"d = {d}": measure(model, data.test, data.heldout, d, nodes) for d in (40, 100)}
        results[name] = {"seconds": seconds, "training specimens": len(systems.names)} | found
    return results


def own_loads() -> dict[str, Any]:
    """The order-free NAO of Table 4, whose head fits the context, trained on specimens under loads of their own.

    Tested as the rows of that table are, on the same 10 specimens under loads that no training specimen has seen.
    """
    rows = {d: TABLE4.rows[f"set-{d}-id"] for d in (40, 100)}
    recipe = replace(rows[100].recipe, epochs=80, validation_inputs=0, validation_systems=4, every=8)
    systems = with_own_loads(OWN_SPECIMENS, RESULTS / "runs" / "own-loads.h5")
    model, seconds = trained("own-loads", "set-nao", systems, 100, recipe, **asdict(rows[100].options))
    results: dict[str, Any] = {"seconds": seconds, "training specimens": len(systems.names)}
    for d, row in rows.items():
        errors = row.measure(model)["systems"]["test"]
        results[f"d = {d}"] = {key: round(100 * errors[f"operator_error_{key}"], 3) for key in ("context", "heldout")}
    return {"loads of their own, context fitted": results}


def interpolating() -> dict[str, Any]:
    """The model of shared loads with layers of Newton-Schulz added, which bring its answer to the context."""
    data = mechanics(RESULTS / "runs" / "specimens.h5", "id")
    nodes = torch.ones(data.test.x.size, dtype=torch.bool)
    model = load_model(RESULTS / "runs" / "specimens-shared-loads")[0].double()
    assert isinstance(model, SetNAO)
    trained_layers, results = model.log_bernstein.detach(), {}
    for more in (0, 3, 6):
        start = torch.tensor([[log(b) for b in START]] * more, dtype=torch.float64).reshape(more, 3)
        model.log_bernstein = torch.nn.Parameter(torch.cat([trained_layers, start]))
        results[f"{more} layers more"] = {
            f"d = {d}": measure(model, data.test, data.heldout, d, nodes) for d in (40, 100)
        }
    return results


def depth() -> dict[str, Any]:
    """Held-out error against the number of layers and of pairs; the weights of each depth are trained for it."""
    data = darcy("g-to-p", own_sources=True)
    test, heldout = data.test, data.heldout
    results: dict[str, Any] = {}
    for layers in (1, 2, 3, 4, 6):
        recipe = replace(RECIPE, epochs=30)
        train_set = darcy("g-to-p", own_sources=True, truth=False).train
        model, _ = trained(f"layers-{layers}", "set-nao", train_set, 60, recipe, basis="sines", layers=layers)
        results[f"layers {layers}"] = {
            f"d = {d}": measure(model, test, heldout, d, interior(21)) for d in (5, 10, 20, 50, 80)
        }
    return results


def figure() -> None:
    """Held-out error against the number of layers and against d, from the results of `depth`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = read_json(RESULTS / "depth.json")["results"]
    layers = [int(name.removeprefix("layers ")) for name in found]
    counts = [int(d.removeprefix("d = ")) for d in next(iter(found.values()))]
    errors = np.array([[each[f"d = {d}"]["heldout"] for d in counts] for each in found.values()])
    drawing, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for column, d in enumerate(counts):
        axes[0].plot(layers, errors[:, column], "o-", label=f"d = {d}")
    for row, count in enumerate(layers):
        axes[1].plot(counts, errors[row], "o-", label=f"{count} layers")
    for axis, name in zip(axes, ("layers", "pairs d"), strict=True):
        axis.set(xlabel=name, yscale="log", xscale="log")
        axis.legend(fontsize=8)
    axes[0].set_ylabel("held-out error, percent")
    drawing.savefig(RESULTS.parents[2] / "docs" / "order-free.png", dpi=110)


PARTS = {
    "darcy": darcy_part,
    "meshes": meshes,
    "splines": splines,
    "line": line,
    "specimens": specimens,
    "own-loads": own_loads,
    "interpolating": interpolating,
    "depth": depth,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["figure"]:
        sys.exit(figure())
    run_parts("order_free.py", RESULTS, PARTS, seed=0)
