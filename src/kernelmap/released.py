"""Import of the authors' released radial NAO checkpoints."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelmap.errors import InputError
from kernelmap.files import existing_file
from kernelmap.maps import NAO, ContextShape, MapOptions
from kernelmap.problems.radial import RadialData
from kernelmap.systems import strided_draws

# The released code never trained these three scalars, so they are not in the files: they are its seed-0 draws.
W_F = 0.2942022979259491
F_TOKEN_W = -0.6915232539176941
F_TOKEN_B = -0.3062370717525482

# The released code adds this to standard deviations, and multiplies u-tokens by dx before it.
STD_OFFSET = 1e-5


def import_released(path: Path | str, data: RadialData) -> NAO:
    """A released state dict as a NAO, with the token standardisation of its training data."""
    weights = _read(path)
    dk, d = weights["fcq_0_0.weight"].shape
    layers = 1 + max(int(found[1]) for found in (re.match(r"fcq_(\d+)_0\.weight", name) for name in weights) if found)
    train = data.train
    context = train.batch(strided_draws(train.pairs, d)[:1], torch.arange(1))
    model = NAO(ContextShape.of(context), MapOptions(dk=dk, layers=layers)).double()
    state: dict[str, Tensor] = {}
    try:
        for layer in range(layers):
            for part in ("weight", "bias"):
                halves = [weights[f"fc{kind}_{layer}_0.{part}"] for kind in "qk"]
                state[f"projections.{layer}.{part}"] = torch.cat(halves)
        for theirs, ours in (("kernel", "w_u"), ("fnw", "norms.0.w.0"), ("fnb", "norms.0.b.0")):
            for part in ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"):
                state[f"{ours}.parts.0.{part}"] = weights[f"{theirs}.layers.{part}"]
    except KeyError as error:
        raise InputError(f"{path} is not a whole released NAO: it lacks {error}.") from error
    for name, value in (("w_f", W_F), ("norms.0.w.1", F_TOKEN_W), ("norms.0.b.1", F_TOKEN_B)):
        state[f"{name}.constants"] = torch.full((1, 1), value, dtype=torch.float64)
    state |= _moments(data)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} is not a released NAO of two layers with one head: {error}") from error
    return model


def _read(path: Path | str) -> dict[str, Tensor]:
    path = existing_file(path, "a released checkpoint")
    try:
        weights: Any = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise InputError(f"{path} is not a checkpoint that can be read safely: {error}") from error
    if not isinstance(weights, dict) or "fcq_0_0.weight" not in weights or "kernel.layers.0.weight" not in weights:
        raise InputError(f"{path} does not hold a released NAO (layers fcq_0_0, fck_0_0, kernel, fnw, fnb).")
    return {name: value.double() for name, value in weights.items() if isinstance(value, Tensor)}


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
