"""Import of the authors' released radial NAO checkpoints."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import torch
from torch import Tensor

from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file, reading
from kernelmap.core.files.limits import require_memory
from kernelmap.core.systems import strided_draws
from kernelmap.maps import NAO, NAOOptions
from kernelmap.problems.radial import RadialData

# The released code never trained these three scalars, so they are not in the files: they are its seed-0 draws.
W_F = 0.2942022979259491
F_TOKEN_W = -0.6915232539176941
F_TOKEN_B = -0.3062370717525482

# The released code adds this to standard deviations, and multiplies u-tokens by dx before it.
STD_OFFSET = 1e-5


def import_released(path: Path | str, data: RadialData) -> NAO:
    """A released state dict as a NAO, with the token standardisation of its training data."""
    weights = _read(path)
    dk, d = _widths(weights, path)
    layers = _layers(weights, path)
    train = data.train
    context = train.batch(strided_draws(train.pairs, d)[:1], torch.arange(1))
    model = NAO(ContextShape.of(context), NAOOptions(dk=dk, layers=layers, mixer="network")).double()
    state: dict[str, Tensor] = {}
    with reading(path, "released NAO", "download it again"):
        for layer in range(layers):
            for part in ("weight", "bias"):
                halves = [weights[f"fc{kind}_{layer}_0.{part}"] for kind in "qk"]
                state[f"projections.{layer}.{part}"] = torch.cat(halves)
        for theirs, ours in (("kernel", "w_u"), ("fnw", "norms.0.w.0"), ("fnb", "norms.0.b.0")):
            for part in ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"):
                state[f"{ours}.parts.0.{part}"] = weights[f"{theirs}.layers.{part}"]
    for name, value in (("w_f", W_F), ("norms.0.w.1", F_TOKEN_W), ("norms.0.b.1", F_TOKEN_B)):
        state[f"{name}.constants"] = torch.full((1, 1), value, dtype=torch.float64)
    state |= _moments(data)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} is not a released NAO of two layers with one head: {error}") from error
    return model


def _widths(weights: dict[str, Tensor], path: Path | str) -> tuple[int, int]:
    """dk and d, from the first layer."""
    first = weights["fcq_0_0.weight"]
    if first.ndim != 2 or not min(first.shape) > 0:
        raise InputError(f"{path}: fcq_0_0.weight should have shape (dk, d), got {tuple(first.shape)}.")
    return first.shape[0], first.shape[1]


def _layers(weights: dict[str, Tensor], path: Path | str) -> int:
    """How many there are, each with a number of its own: nothing is built before that is known."""
    found = {int(match[1]) for match in (re.fullmatch(r"fcq_(\d{1,9})_0\.weight", name) for name in weights) if match}
    if found != set(range(len(found))):
        raise InputError(f"{path}: expected layers 0, 1, .. without gaps, got {sorted(found)[:10]}.")
    return len(found)


def _read(path: Path | str) -> dict[str, Tensor]:
    path = existing_file(path, "a released checkpoint")
    with reading(path, "checkpoint that can be read safely", "download it again"):
        if is_zipfile(path):
            with ZipFile(path) as archive:
                require_memory(path, sum(info.file_size for info in archive.infolist()), "this checkpoint")
        weights: Any = torch.load(path, weights_only=True, map_location="cpu")
    if not isinstance(weights, dict) or "fcq_0_0.weight" not in weights or "kernel.layers.0.weight" not in weights:
        raise InputError(f"{path} does not hold a released NAO (layers fcq_0_0, fck_0_0, kernel, fnw, fnb).")
    plain = {name: value for name, value in weights.items() if isinstance(name, str) and isinstance(value, Tensor)}
    with reading(path, "released NAO", "download it again"):
        require_memory(path, sum(8 * value.numel() for value in plain.values()), "these weights")
        numbers = {name: value.double() for name, value in plain.items()}
        if bad := [name for name, value in numbers.items() if not value.isfinite().all()]:
            raise InputError(f"{path} holds weights that are not numbers: {', '.join(bad[:5])}; download it again.")
        return numbers


def _moments(data: RadialData) -> dict[str, Tensor]:
    train = data.train
    dx = train.y.weights[0]
    systems = len(train.names)
    count = train.u.numel() * systems
    # One standard deviation over all training samples: every system repeats the shared inputs.
    u_std = dx * train.u.std(correction=0) * (count / (count - 1)) ** 0.5
    return {
        "u_mean": train.u.mean(),
        "u_std": (u_std + STD_OFFSET) / dx,
        "f_mean": train.f.mean(),
        "f_std": train.f.std() + STD_OFFSET,
    }
