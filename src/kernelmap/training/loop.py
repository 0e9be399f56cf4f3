"""The training loop: one process or many, killed at any moment and resumed to the same weights."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from torch import nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.files import writing
from kernelmap.core.files.limits import check_count
from kernelmap.core.progress import console, lines
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import save_model
from kernelmap.maps import MAPS, KernelMap
from kernelmap.training.batches import Contexts, Tile
from kernelmap.training.claim import claimed, helpers, keep_log
from kernelmap.training.recipe import Recipe, learning_rate
from kernelmap.training.state import Progress, load_state, save_state


@dataclass(frozen=True)
class Machine:
    """Where a run takes place.

    Attributes:
        devices: processes on this machine, one per device.
        nodes: machines; start the same command on each with torchrun.
        device: auto, cpu, cuda, cuda:1, ...
    """

    devices: int = 1
    nodes: int = 1
    device: str = "auto"

    def fabric(self, recipe: Recipe) -> Fabric:
        check_count(self.devices, "--devices")
        if self.nodes < 1:
            raise InputError(f"--nodes must be at least 1, got {self.nodes}.")
        many = self.devices * self.nodes > 1
        kind, _, number = self.device.partition(":")
        if number and many:
            raise InputError(f"--device {self.device} is one device; give --device {kind} for several.")
        try:
            return Fabric(
                accelerator=kind if many or kind != "auto" else _accelerator(),
                devices=[int(number)] if number else self.devices,
                num_nodes=self.nodes,
                strategy="ddp" if many else "auto",
                precision="32-true" if recipe.precision == "float32" else "64-true",
            )
        except (ValueError, RuntimeError) as error:
            raise InputError(f"this machine cannot be used as asked: {error}") from error


def _accelerator() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def train(
    name: str,
    options: Any,
    systems: SystemSet | Sequence[Context],
    d: int,
    recipe: Recipe,
    out: Path | str,
    *,
    about: dict[str, Any] | None = None,
    draws: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    machine: Machine = Machine(),  # noqa: B008
    device: str | None = None,
) -> Progress:
    """Train a map on pairs alone and write the model with the lowest validation loss to `out`.

    `out` also gets the run's state (`state.safetensors`) and its log (`log.jsonl`). What it holds already is refused,
    unless the run goes on (`resume`) or begins anew (`overwrite`). `device` stands for that of the machine.
    """
    machine = machine if device is None else replace(machine, device=device)
    kind, about, out = MAPS[name], about or {}, Path(out)
    if kind.Loss is not None and kind.Loss.double_precision and recipe.precision != "float64":
        raise InputError(f"the {name} map conditions in float64; train it with --precision float64.")
    if kind.Loss is not None and kind.Loss.single_process and (d < 2 or machine.devices * machine.nodes > 1):
        raise InputError(f"the {name} map trains on one process, for contexts of at least 2 pairs.")
    if kind.Loss is not None and not isinstance(systems, SystemSet):
        raise InputError(f"the {name} map trains on systems of one grid; these have grids of their own.")
    one_point = isinstance(systems, SystemSet) and systems.x.is_point
    if recipe.points is not None and (one_point or not kind.at_any_point):
        why = "there is one output point" if one_point else f"the {name} map is trained at all output points"
        raise InputError(f"{why}; leave out --points.")
    with claimed(out, resume, overwrite):
        if kind.Loss is None or not isinstance(systems, SystemSet):
            return _fit(kind, options, systems, d, out, about)
        return _train(kind, options, systems, d, recipe, out, about, draws, resume, machine)


def _train(
    kind: type[KernelMap],
    options: Any,
    systems: SystemSet,
    d: int,
    recipe: Recipe,
    out: Path,
    about: dict[str, Any],
    draws: int | None,
    resume: bool,
    machine: Machine,
) -> Progress:
    assert kind.Loss is not None
    fabric = machine.fabric(recipe)
    if fabric.world_size > 1:
        with helpers():
            fabric.launch()
    systems = systems.to(recipe.dtype)
    contexts = Contexts(systems, kind.Loss.pairs(d), recipe, draws, kind.Loss.targets)
    torch.manual_seed(recipe.seed)
    shape = ContextShape.of(systems.batch(contexts.training[:1, :d], torch.arange(1)))
    model = kind.build(shape, options).to(recipe.dtype)
    model.standardise(systems.u, systems.f)
    objective = kind.Loss(model, systems.y.to(fabric.device), systems.x.to(fabric.device), recipe.points)
    optimizers = recipe.optimizers(objective)
    run = {"map": kind.name, "options": asdict(options), "d": d, "recipe": asdict(recipe), "data": systems.about}
    state_path, log_path = out / "state.safetensors", out / "log.jsonl"
    progress = Progress()
    if resume and state_path.exists():
        progress = load_state(state_path, objective, optimizers, run)
    else:
        parts = [(draw[None, :d], some) for draw in contexts.training for some in contexts.seen.split(recipe.batch)]
        model.begin(lambda: (systems.batch(*part) for part in parts))
    if fabric.is_global_zero:
        if not progress.epoch:
            # Before any model: a run killed at its first checkpoint can go on too.
            save_state(state_path, objective, optimizers, progress, run)
        keep_log(log_path, progress.epoch)
    module, *optimizers = fabric.setup(objective, *optimizers)
    systems = systems.to(fabric.device)

    def errors(tile: Tile) -> torch.Tensor:
        context = systems.batch(tile.draws, tile.systems)
        return module(context.U, context.F, tile.seed)

    with _telling(fabric, recipe, progress) as tell:
        clock = time.perf_counter() - progress.seconds
        for epoch in range(progress.epoch, recipe.epochs):
            total, count = torch.zeros((), device=fabric.device), 0
            tiles = list(contexts.epoch(epoch))
            for step, tile in enumerate(tiles):
                for optimizer in optimizers:
                    for group in optimizer.param_groups:
                        group["lr"] = learning_rate(recipe, epoch + step / len(tiles))
                    optimizer.zero_grad()
                part = tile.shard(fabric.global_rank, fabric.world_size)
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
                kept = [errors(tile).flatten() for tile in contexts.validation_tiles(kind.Loss.variants)]
                validation = float(torch.cat(kept).mean())
            module.train()
            if not (isfinite(training) and isfinite(validation)):
                raise InputError(f"the loss is not a number after epoch {epoch + 1}; use a smaller --lr.")
            progress.epoch, progress.seconds = epoch + 1, time.perf_counter() - clock
            is_best = validation < progress.best_loss
            if is_best:
                progress.best_epoch, progress.best_loss = epoch + 1, validation
            if fabric.is_global_zero:
                if is_best:
                    save_model(out, model, about | run | {"training": asdict(progress)})
                line = {"epoch": epoch + 1, "loss": training, "validation": validation}
                with writing(log_path), log_path.open("a") as log:
                    log.write(json.dumps(line | {"seconds": round(progress.seconds, 2)}, allow_nan=False) + "\n")
                save_state(state_path, objective, optimizers, progress, run)
            tell(epoch + 1, training, validation)
    fabric.barrier()
    return progress


def _fit(
    kind: type[KernelMap],
    options: Any,
    systems: SystemSet | Sequence[Context],
    d: int,
    out: Path,
    about: dict[str, Any],
) -> Progress:
    """A map without a loss, fitted at once."""
    start = time.perf_counter()
    model = kind.fit(systems, d, options)
    progress = Progress(epoch=1, seconds=time.perf_counter() - start, best_epoch=1)
    data = systems.about if isinstance(systems, SystemSet) else {"systems": len(systems)}
    save_model(out, model, about | {"map": kind.name, "d": d, "data": data, "seconds": progress.seconds})
    return progress


@contextmanager
def _telling(fabric: Fabric, recipe: Recipe, progress: Progress) -> Iterator[Callable[[int, float, float], None]]:
    """Called with an epoch and its two losses: a bar on a terminal, elsewhere a line now and then of what is left."""
    first = progress.epoch
    if not fabric.is_global_zero:
        yield lambda epoch, training, validation: None
        return
    if not console.is_terminal:
        with lines("Training") as say:
            yield lambda epoch, training, validation: say("Training", (epoch - first) / (recipe.epochs - first))
        return
    columns = [
        "[progress.description]{task.description}",
        BarColumn(),
        "epoch {task.completed:.0f}/{task.total:.0f}",
    ]
    fields = [TextColumn("loss {task.fields[loss]}"), TextColumn("validation {task.fields[validation]}")]
    with ProgressBar(*columns, *fields, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("Training", total=recipe.epochs, completed=first, loss="-", validation="-")
        yield lambda epoch, training, validation: bar.update(
            task, completed=epoch, loss=f"{training:.4f}", validation=f"{validation:.4f}"
        )
