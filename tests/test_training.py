"""Training: repeatable, resumable to the bit, the same on two processes, and better than it started."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from kernelmap.core import grids
from kernelmap.core import progress as said
from kernelmap.core.errors import InputError
from kernelmap.core.files import read_tensors, write_tensors
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import load_model
from kernelmap.maps import NAOOptions
from kernelmap.training.batches import Contexts
from kernelmap.training.loop import train
from kernelmap.training.muon import Muon, orthogonalised
from kernelmap.training.recipe import Recipe, learning_rate
from processes import python

RECIPE = Recipe(epochs=4, batch=6, every=1, optimizer="muon", precision="float64")


def systems(count: int = 4, pairs: int = 60, N: int = 20, shared: bool = True) -> SystemSet:
    """Linear systems with smooth kernels."""
    generator = torch.Generator().manual_seed(0)
    grid = grids.radii(0.5, N)
    u = torch.randn(1 if shared else count, pairs, N, generator=generator, dtype=torch.float64)
    r = grid.points[:, 0]
    kernels = torch.stack([torch.exp(-r / (1 + s)) * torch.cos(s * r / 3) for s in range(count)])[:, None]
    f = (u @ (kernels * grid.weights).mT).expand(count, -1, -1)
    return SystemSet(tuple(f"s{i}" for i in range(count)), u, f, grid, grids.point(), kernels, {"problem": "test"})


def run(out: Path, recipe: Recipe = RECIPE, data: SystemSet | None = None, resume: bool = False):
    return train("nao", NAOOptions(dk=3), data or systems(), 6, recipe, out, about={}, resume=resume)


def weights(out: Path) -> dict[str, torch.Tensor]:
    return read_tensors(out / "weights.safetensors")[0]


def log(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_it_says_how_far_it_is_where_there_is_no_terminal(tmp_path, monkeypatch, capsys):
    for name in ("FIRST", "EVERY"):
        monkeypatch.setattr(said, name, 0.0)
    run(tmp_path, replace(RECIPE, epochs=20))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(re.match(r"Training: \d+%", line) for line in lines)


def test_loss_falls_and_the_best_checkpoint_is_kept(tmp_path):
    progress = run(tmp_path, replace(RECIPE, epochs=40, lr=1e-2, every=4))
    curve = log(tmp_path)
    assert curve[-1]["loss"] < 0.8 * curve[0]["loss"]
    best = min(curve, key=lambda line: line["validation"])
    assert (progress.best_epoch, progress.best_loss) == (best["epoch"], best["validation"])
    _, about = load_model(tmp_path)
    assert about["training"]["best_epoch"] == best["epoch"]


def test_a_seed_repeats_a_run_and_another_does_not(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tmp_path / name, replace(RECIPE, seed=seed))
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_training_never_reads_the_true_kernels(tmp_path):
    run(tmp_path / "with")
    run(tmp_path / "without", data=replace(systems(), kernels=None))
    assert same(weights(tmp_path / "with"), weights(tmp_path / "without"))


KILLED = """
import os, signal, sys
from pathlib import Path
import kernelmap.core.files.tensors
from test_training import RECIPE, run

calls, write = 0, kernelmap.core.files.tensors.save_file

def write_half_and_die(tensors, path, metadata=None):
    global calls
    write(tensors, path, metadata)
    # A state is written before the first epoch and after every one: that of the third epoch dies half way.
    if "progress" not in metadata:
        return
    calls += 1
    if calls == 4:
        data = Path(path).read_bytes()
        Path(path).write_bytes(data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

kernelmap.core.files.tensors.save_file = write_half_and_die
run(Path(sys.argv[1]))
"""


def test_killed_while_writing_a_checkpoint_resumes_bit_for_bit(tmp_path):
    run(tmp_path / "whole")
    killed = python("-c", KILLED, tmp_path / "killed", cwd=Path(__file__).parent)
    assert killed.returncode == -9, killed.stderr
    assert len(log(tmp_path / "killed")) == 3
    progress = run(tmp_path / "killed", resume=True)
    assert progress.epoch == RECIPE.epochs
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    states = [read_tensors(tmp_path / name / "state.safetensors")[0] for name in ("whole", "killed")]
    assert same(*states)
    losses = [[(line["loss"], line["validation"]) for line in log(tmp_path / name)] for name in ("whole", "killed")]
    assert losses[0] == losses[1]


def test_two_processes_give_the_curve_of_one(kernelmap, tmp_path):
    """The same global batch on one process and on two (gloo, CPU), through the command line."""
    words = "train radial --dx 0.5 --d 20 --setting sine --epochs 3 --every 1 --precision float64 --batch 7"
    one, two = (tmp_path / name for name in ("one", "two"))
    code, _, err = kernelmap(*words.split(), "--device", "cpu", "--out", one)
    assert code == 0, err
    machine = ["--devices", "2", "--device", "cpu", "--out", two]
    done = python("-m", "kernelmap.cli.main", *words.split(), *machine)
    assert done.returncode == 0, done.stderr
    curves = [
        torch.tensor([[line["loss"], line["validation"]] for line in log(out)], dtype=torch.float64)
        for out in (one, two)
    ]
    assert curves[0].shape == (3, 2)
    torch.testing.assert_close(curves[0], curves[1], rtol=1e-6, atol=0)


def test_a_run_is_not_overwritten_or_mixed_up(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match="go on with --resume"):
        run(tmp_path)
    with pytest.raises(InputError, match="belongs to another run"):
        run(tmp_path, replace(RECIPE, lr=1e-4), resume=True)


def test_a_damaged_state_says_so(tmp_path):
    run(tmp_path)
    (tmp_path / "state.safetensors").write_text("not tensors")
    with pytest.raises(InputError, match="not a readable safetensors file"):
        run(tmp_path, resume=True)


def test_a_state_of_another_version_says_so(tmp_path):
    run(tmp_path)
    tensors, metadata = read_tensors(tmp_path / "state.safetensors")
    tensors.pop(next(name for name in tensors if name.startswith("model.")))
    write_tensors(tmp_path / "state.safetensors", tensors, metadata)
    with pytest.raises(InputError, match="written by another version"):
        run(tmp_path, resume=True)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("random", [True, False])
def test_an_epoch_sees_every_system_with_every_draw(shared, random):
    data = systems(shared=shared)
    contexts = Contexts(data, 6, replace(RECIPE, random_draws=random), None)
    tiles = list(contexts.epoch(3))
    seen = [(tuple(draw.tolist()), int(s)) for tile in tiles for draw in tile.draws for s in tile.systems]
    assert len(seen) == len(set(seen)) == len(contexts.training) * 4
    fixed = {tuple(draw.tolist()) for draw in contexts.training}
    assert ({draw for draw, _ in seen} == fixed) is not random
    assert not fixed & {tuple(draw.tolist()) for draw in contexts.validation}
    again = [tile.draws for tile in contexts.epoch(3)]
    assert all(torch.equal(a, tile.draws) for a, tile in zip(again, tiles, strict=True))


def test_whole_systems_are_kept_for_validation():
    recipe = Recipe(batch=2, validation_systems=3)
    contexts = Contexts(systems(8), 4, recipe, None)
    trained = {int(i) for epoch in range(3) for tile in contexts.epoch(epoch) for i in tile.systems}
    kept = {int(i) for tile in contexts.validation_tiles(1) for i in tile.systems}
    assert len(kept) == 3
    assert trained | kept == set(range(8))
    assert not trained & kept
    # Systems do not fit one step here, and yet no two steps in a row have the same draws.
    assert all(not torch.equal(a.draws, b.draws) for a, b in pairwise(contexts.epoch(0)))
    with pytest.raises(InputError, match="too few to keep 3"):
        Contexts(systems(3), 4, recipe, None)


def test_a_tile_is_dealt_out_whole():
    contexts = Contexts(systems(), 6, RECIPE, None)
    for tile in contexts.epoch(0):
        parts = [tile.shard(rank, 3) for rank in range(3)]
        assert sum(part.size for part in parts) == tile.size
        assert sorted(int(s) for part in parts for s in part.systems) == sorted(tile.systems.tolist())


def test_too_few_pairs_for_validation():
    with pytest.raises(InputError, match="too few to keep one"):
        Contexts(systems(), 40, RECIPE, None)


@pytest.mark.parametrize("shape", [(8, 30), (30, 8), (12, 12)])
def test_orthogonalised_keeps_the_singular_vectors_and_evens_out_the_values(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    values = u.mT @ orthogonalised(matrix) @ v.mT
    assert torch.allclose(values, torch.diag(values.diag()), atol=1e-12)
    assert values.diag().min() > 0.3
    assert values.diag().max() < 1.3


def test_muon_steps_as_torch_does():
    start = torch.randn(10, 40, generator=torch.Generator().manual_seed(0))
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = [
        Muon([ours], lr=0.1, weight_decay=0.01),
        torch.optim.Muon([theirs], lr=0.1, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
    ]
    for step in range(3):
        for weight, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            (weight - step).square().sum().backward()
            optimizer.step()
    # bfloat16 keeps 8 bits.
    assert (ours - theirs).norm() < 0.02 * (ours - start).norm()


def test_muon_takes_matrices_and_adam_the_rest():
    model = torch.nn.Sequential(torch.nn.Linear(8, 9), torch.nn.Linear(9, 1))
    adam, muon = replace(RECIPE, optimizer="muon").optimizers(model)
    shapes = [[tuple(p.shape) for p in optimizer.param_groups[0]["params"]] for optimizer in (adam, muon)]
    assert shapes == [[(9,), (1, 9), (1,)], [(9, 8)]]


def test_schedules():
    step = Recipe(epochs=1000, lr=1.0, schedule="step")
    assert [learning_rate(step, epoch) for epoch in (0, 99, 100, 250)] == pytest.approx([1, 1, 0.9, 0.81])
    assert learning_rate(replace(step, schedule="cosine"), 500) == pytest.approx(0.5)
    cycle = replace(step, schedule="one-cycle")
    assert [learning_rate(cycle, e) for e in (0, 300, 1000)] == pytest.approx([1 / 25, 1, 0], abs=1e-12)
    assert learning_rate(replace(step, schedule="constant"), 700) == 1.0


def test_bad_recipes():
    with pytest.raises(InputError, match="at least 1"):
        Recipe(epochs=0)


def test_a_diverging_run_stops_with_advice(tmp_path):
    with pytest.raises(InputError, match="smaller --lr"):
        run(tmp_path, replace(RECIPE, epochs=30, lr=1e30, precision="float32", weight_decay=0.0))
