"""Making a row: train its model where it has one, measure it on the test systems, and keep a small record."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kernelmap.context import Context
from kernelmap.estimators import dartr
from kernelmap.evaluation import Estimated, errors, evaluate
from kernelmap.files import read_json, write_json
from kernelmap.kernel import Kernel
from kernelmap.maps import KernelMap
from kernelmap.model import load_model
from kernelmap.problems.radial import radial
from kernelmap.provenance import provenance
from kernelmap.reproduce.rows import Row
from kernelmap.training.loop import train


def record_path(out: Path, row: Row) -> Path:
    return out / f"{row.name}.json"


def records(out: Path, rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """The records that there are, by the names of their rows."""
    return {row.name: read_json(record_path(out, row)) for row in rows if record_path(out, row).exists()}


def make(row: Row, out: Path) -> dict[str, Any]:
    """The record of a row: read where it is finished, made where it is not; a half-trained model is trained on."""
    path = record_path(out, row)
    if path.exists():
        return read_json(path)
    model = trained_model(row, out)
    test = radial("sine", row.variant).test
    if model is None:
        measured = {"parameters": 0, "systems": errors(estimate_by_dartr, test, row.d)}
    else:
        measured = evaluate(model.double(), test, row.d)
    record = {"row": row.name, **measured, **training_record(row, out), **provenance()}
    write_json(path, record)
    return record


def trained_model(row: Row, out: Path) -> KernelMap | None:
    """The row's model; None for DARTR."""
    if row.map == "dartr":
        return None
    if row.map == "posterior":
        return load_model("radial")[0]
    data = radial(row.setting, row.variant)
    about = {"problem": "radial", "setting": row.setting, "variant": row.variant, "row": row.name, **provenance()}
    run = out / "runs" / row.name
    train(row.map, row.options, data.train, row.d, row.recipe, run, about=about, draws=data.draws, resume=True)
    return load_model(run)[0]


def training_record(row: Row, out: Path) -> dict[str, Any]:
    """The recipe, what it came to and, in a few points, the way there."""
    if not row.trained:
        return {}
    run = out / "runs" / row.name
    training = read_json(run / "config.json")["about"]["training"]
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    few = torch.linspace(0, len(log) - 1, min(len(log), 20)).round().int().tolist()
    curve = [[log[i]["epoch"], round(log[i]["loss"], 5), round(log[i]["validation"], 5)] for i in few]
    return {"recipe": asdict(row.recipe), "seconds": log[-1]["seconds"], "training": training, "curve": curve}


def estimate_by_dartr(contexts: Context) -> Estimated:
    """DARTR of every context of a batch, one after the other."""
    U = contexts.U.expand(*contexts.batch_shape, *contexts.U.shape[-2:]).flatten(0, -3)
    F = contexts.F.flatten(0, -3)
    kernels = [dartr(Context(u, f, contexts.y, contexts.x)).kernel.values for u, f in zip(U, F, strict=True)]
    values = torch.stack(kernels).reshape(*contexts.batch_shape, *kernels[0].shape)
    return Estimated(Kernel(values, contexts.y, contexts.x), None)
