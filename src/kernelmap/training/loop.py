"""The training loop: one process or many, killed at any moment and resumed to the same weights."""

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from torch import nn

from kernelmap.errors import InputError
from kernelmap.files import atomic_path
from kernelmap.maps import MAPS, ContextShape, LocalOptions, MapName, MapOptions, PosteriorOptions
from kernelmap.model import build, save_model
from kernelmap.progress import console
from kernelmap.systems import SystemSet
from kernelmap.training.batches import Contexts, Tile
from kernelmap.training.local import LocalObjective
from kernelmap.training.objective import ContextObjective
from kernelmap.training.precondition import plain_weights, precondition
from kernelmap.training.predictive import PredictiveObjective
from kernelmap.training.recipe import Recipe, learning_rate
from kernelmap.training.state import Progress, load_state, save_state

PREDICTIVE = {"posterior": PredictiveObjective, "local-posterior": LocalObjective}
"""Maps that are trained to predict pairs they were not shown."""


@dataclass(frozen=True)
class Machine:
    """Where a run takes place.

    Attributes:
        devices: processes on this machine, one per device.
        nodes: machines; start the same command on each with torchrun.
        accelerator: auto, cpu, cuda, ...
    """

    devices: int = 1
    nodes: int = 1
    accelerator: str = "auto"

    def fabric(self, recipe: Recipe) -> Fabric:
        if min(self.devices, self.nodes) < 1:
            raise InputError(f"devices and nodes must be at least 1, got {self.devices} and {self.nodes}.")
        many = self.devices * self.nodes > 1
        try:
            return Fabric(
                accelerator=self.accelerator if many or self.accelerator != "auto" else _accelerator(),
                devices=self.devices,
                num_nodes=self.nodes,
                strategy="ddp" if many else "auto",
                precision="32-true" if recipe.precision == "float32" else "64-true",
            )
        except (ValueError, RuntimeError) as error:
            raise InputError(f"this machine cannot be used as asked: {error}") from error


def _accelerator() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def train(
    name: MapName,
    options: MapOptions | PosteriorOptions | LocalOptions,
    systems: SystemSet,
    d: int,
    recipe: Recipe,
    out: Path,
    *,
    about: dict[str, Any],
    draws: int | None = None,
    resume: bool = False,
    machine: Machine = Machine(),  # noqa: B008
) -> Progress:
    """Train a map on pairs alone and write the model with the lowest validation loss to `out`.

    `out` also gets the run's state (`state.safetensors`) and its log (`log.jsonl`).
    """
    if name == "solution-posterior":
        raise InputError(
            "a solution posterior map takes the weights of a local-posterior, trained on the pairs reversed."
        )
    if name == "material-posterior":
        raise InputError(
            "the five numbers of a material-posterior are not trained by gradients; see experiments/mechanics.py prior."
        )
    if name in PREDICTIVE and recipe.precision != "float64":
        raise InputError(f"the {name} map conditions in float64; train it with --precision float64.")
    if name in PREDICTIVE and (d < 2 or machine.devices * machine.nodes > 1):
        raise InputError(f"the {name} map trains on one process, for contexts of at least 2 pairs.")
    if recipe.points is not None and (systems.x.is_point or not MAPS[name].at_any_point):
        why = "there is one output point" if systems.x.is_point else f"the {name} map is trained at all output points"
        raise InputError(f"{why}; leave out --points.")
    fabric = machine.fabric(recipe)
    if fabric.world_size > 1:
        fabric.launch()
    systems = systems.to(recipe.dtype)
    kind = PREDICTIVE.get(name, ContextObjective)
    contexts = Contexts(systems, kind.pairs(d), recipe, draws)
    torch.manual_seed(recipe.seed)
    shape = ContextShape.of(systems.batch(contexts.training[:1, :d], torch.arange(1)))
    model = build(name, shape, options).to(recipe.dtype)
    model.standardise(systems.u, systems.f)
    if recipe.precondition:
        precondition(model, systems, contexts.training)
    objective = kind(model, systems.y.to(fabric.device), systems.x.to(fabric.device), recipe.points)
    optimizers = recipe.optimizers(objective)
    run = {"map": name, "options": asdict(options), "d": d, "recipe": asdict(recipe), "data": systems.about}
    state_path, log_path = out / "state.safetensors", out / "log.jsonl"
    progress = Progress()
    if resume and state_path.exists():
        progress = load_state(state_path, objective, optimizers, run)
    elif state_path.exists():
        raise InputError(f"{out} holds a training run already; go on with --resume, or choose another --out.")
    if fabric.is_global_zero:
        _keep_log(log_path, progress.epoch)
    module, *optimizers = fabric.setup(objective, *optimizers)
    systems = systems.to(fabric.device)

    def errors(tile: Tile) -> torch.Tensor:
        context = systems.batch(tile.draws, tile.systems)
        return module(context.U, context.F, tile.seed)

    with _bar(fabric, recipe, progress) as bar:
        clock = time.perf_counter() - progress.seconds
        for epoch in range(progress.epoch, recipe.epochs):
            total, count = torch.zeros((), device=fabric.device), 0
            tiles = list(contexts.epoch(epoch))
            for step, tile in enumerate(tiles):
                for optimizer in optimizers:
                    for group in optimizer.param_groups:
                        group["lr"] = learning_rate(recipe, epoch + step / len(tiles))
                    optimizer.zero_grad()
                part = tile.share(fabric.global_rank, fabric.world_size)
                loss = errors(part).sum() / tile.size
                # DDP averages gradients over processes: the factor makes it the mean over the whole batch.
                fabric.backward(loss * fabric.world_size)
                if recipe.clip is not None:
                    nn.utils.clip_grad_norm_(module.parameters(), recipe.clip)
                for optimizer in optimizers:
                    optimizer.step()
                total, count = total + loss.detach() * tile.size, count + tile.size
            if (epoch + 1) % recipe.every and epoch + 1 < recipe.epochs:
                continue
            training = float(torch.as_tensor(fabric.all_reduce(total, reduce_op="sum"))) / count
            module.eval()
            with torch.no_grad():
                kept = [errors(tile).flatten() for tile in contexts.validation_tiles(kind.variants)]
                validation = float(torch.cat(kept).mean())
            module.train()
            if isnan(training) or isnan(validation):
                raise InputError(f"the loss is not a number after epoch {epoch + 1}; use a smaller --lr.")
            progress.epoch, progress.seconds = epoch + 1, time.perf_counter() - clock
            is_best = validation < progress.best_loss
            if is_best:
                progress.best_epoch, progress.best_loss = epoch + 1, validation
            if fabric.is_global_zero:
                if is_best:
                    save_model(out, model, about | run | {"training": asdict(progress)}, plain_weights(model))
                with log_path.open("a") as log:
                    line = {"epoch": epoch + 1, "loss": training, "validation": validation}
                    log.write(json.dumps(line | {"seconds": round(progress.seconds, 2)}) + "\n")
                save_state(state_path, objective, optimizers, progress, run)
            if bar is not None:
                bar.update(
                    bar.task_ids[0],
                    completed=epoch + 1,
                    loss=f"{training:.4f}",
                    validation=f"{validation:.4f}",
                )
    fabric.barrier()
    return progress


def _keep_log(path: Path, epoch: int) -> None:
    """Drop what a killed run logged after its last state; a last line cut short is dropped too."""
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            if json.loads(line)["epoch"] <= epoch:
                lines.append(line + "\n")
        except json.JSONDecodeError:
            break
    with atomic_path(path) as temporary:
        temporary.write_text("".join(lines))


def _bar(fabric: Fabric, recipe: Recipe, progress: Progress) -> Any:
    if not (fabric.is_global_zero and console.is_terminal):
        return nullcontext()
    columns = [
        "[progress.description]{task.description}",
        BarColumn(),
        "epoch {task.completed:.0f}/{task.total:.0f}",
    ]
    fields = [TextColumn("loss {task.fields[loss]}"), TextColumn("validation {task.fields[validation]}")]
    bar = ProgressBar(*columns, *fields, TimeRemainingColumn(), console=console)
    bar.add_task("Training", total=recipe.epochs, completed=progress.epoch, loss="-", validation="-")
    return bar
