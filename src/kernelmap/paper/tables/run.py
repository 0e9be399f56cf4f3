"""Making a row: train its model where it has one, measure it on the test systems, and keep a small record."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kernelmap.core.files import locked, read_json, reading, write_json
from kernelmap.core.provenance import provenance
from kernelmap.io.models import load_model
from kernelmap.maps import KernelMap
from kernelmap.paper.tables.rows import Row
from kernelmap.training import train


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
    with locked(path):
        return _make(row, out, path)


def _make(row: Row, out: Path, path: Path) -> dict[str, Any]:
    measured = row.measure(trained_model(row, out))
    record = {"row": row.name, **measured, **training_record(row, out), **provenance()}
    write_json(path, record)
    return record


def trained_model(row: Row, out: Path) -> KernelMap | None:
    """The row's model; None for an estimator without one."""
    if row.map in ("dartr", "linear"):
        return None
    if not row.trained:
        return load_model(row.shipped)[0]
    run = out / "runs" / row.run_name
    if not (record_path(out, row).exists() and (run / "config.json").exists()):
        data = row.training()
        about = data.about | {"row": row.run_name, **provenance()}
        d, recipe = row.training_d, row.recipe
        train(row.map, row.options, data.systems, d, recipe, run, about=about, draws=data.draws, resume=True)
    return load_model(run)[0]


def training_record(row: Row, out: Path) -> dict[str, Any]:
    """The recipe, what it came to and, in a few points, the way there."""
    if not row.trained:
        return {}
    run = out / "runs" / row.run_name
    training = read_json(run / "config.json")["about"]["training"]
    with reading(run / "log.jsonl", "log of a training run", f"delete {run}"):
        log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        few = torch.linspace(0, len(log) - 1, min(len(log), 20)).round().int().tolist()
        curve = [[log[i]["epoch"], round(log[i]["loss"], 5), round(log[i]["validation"], 5)] for i in few]
    return {"recipe": asdict(row.recipe), "seconds": log[-1]["seconds"], "training": training, "curve": curve}
