"""The state dicts that the paper's authors released: read without running any code in them, and their parts."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import torch
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file, reading
from kernelmap.core.files.limits import require_memory

STD_OFFSET = 1e-5
"""What the released code adds to standard deviations."""


def projection(weights: dict[str, Tensor], layer: int, part: str) -> Tensor:
    """Queries, then keys, of one layer; part is weight or bias."""
    return torch.cat([weights[f"fc{kind}_{layer}_0.{part}"] for kind in "qk"])


def network(weights: dict[str, Tensor], theirs: str, ours: str) -> dict[str, Tensor]:
    """An MLP of three linear layers, under our name."""
    parts = ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias")
    return {f"{ours}.{part}": weights[f"{theirs}.layers.{part}"] for part in parts}


def widths(weights: dict[str, Tensor], path: Path | str) -> tuple[int, int]:
    """dk and d, from the first layer."""
    first = weights["fcq_0_0.weight"]
    if first.ndim != 2 or not min(first.shape) > 0:
        raise InputError(f"{path}: fcq_0_0.weight should have shape (dk, d), got {tuple(first.shape)}.")
    return first.shape[0], first.shape[1]


def layer_count(weights: dict[str, Tensor], path: Path | str) -> int:
    """How many there are, each with a number of its own: nothing is built before that is known."""
    found = {int(match[1]) for match in (re.fullmatch(r"fcq_(\d{1,9})_0\.weight", name) for name in weights) if match}
    if found != set(range(len(found))):
        raise InputError(f"{path}: expected layers 0, 1, .. without gaps, got {sorted(found)[:10]}.")
    return len(found)


def read_checkpoint(path: Path | str, names: tuple[str, ...]) -> dict[str, Tensor]:
    path = existing_file(path, "a released checkpoint")
    with reading(path, "checkpoint that can be read safely", "download it again"):
        if is_zipfile(path):
            with ZipFile(path) as archive:
                require_memory(path, sum(info.file_size for info in archive.infolist()), "this checkpoint")
        weights: Any = torch.load(path, weights_only=True, map_location="cpu")
    if not isinstance(weights, dict) or "fcq_0_0.weight" not in weights or "kernel.layers.0.weight" not in weights:
        raise InputError(f"{path} does not hold a released NAO (layers {', '.join(names)}).")
    plain = {name: value for name, value in weights.items() if isinstance(name, str) and isinstance(value, Tensor)}
    with reading(path, "released NAO", "download it again"):
        require_memory(path, sum(8 * value.numel() for value in plain.values()), "these weights")
        numbers = {name: value.double() for name, value in plain.items()}
        if bad := [name for name, value in numbers.items() if not value.isfinite().all()]:
            raise InputError(f"{path} holds weights that are not numbers: {', '.join(bad[:5])}; download it again.")
        return numbers
