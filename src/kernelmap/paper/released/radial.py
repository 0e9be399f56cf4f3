"""Import of the authors' released radial NAO checkpoints."""

from pathlib import Path

import torch
from torch import Tensor

from kernelmap.core.domain import ContextShape
from kernelmap.core.errors import InputError
from kernelmap.core.files import reading
from kernelmap.core.systems import strided_draws
from kernelmap.maps import NAO, NAOOptions
from kernelmap.paper.released.checkpoint import STD_OFFSET, layer_count, network, projection, read_checkpoint, widths
from kernelmap.problems.radial import RadialData

RADIAL = ("fcq_0_0", "fck_0_0", "kernel", "fnw", "fnb")
"""Layers of a radial NAO."""

# The released code never trained these three scalars, so they are not in the files: they are its seed-0 draws.
W_F = 0.2942022979259491
F_TOKEN_W = -0.6915232539176941
F_TOKEN_B = -0.3062370717525482


def import_released(path: Path | str, data: RadialData) -> NAO:
    """A released state dict as a NAO, with the token standardisation of its training data."""
    weights = read_checkpoint(path, RADIAL)
    dk, d = widths(weights, path)
    layers = layer_count(weights, path)
    train = data.train
    context = train.batch(strided_draws(train.pairs, d)[:1], torch.arange(1))
    model = NAO(ContextShape.of(context), NAOOptions(dk=dk, layers=layers, mixer="network")).double()
    state: dict[str, Tensor] = {}
    with reading(path, "released NAO", "download it again"):
        for layer in range(layers):
            for part in ("weight", "bias"):
                state[f"projections.{layer}.{part}"] = projection(weights, layer, part)
        for theirs, ours in (("kernel", "w_u"), ("fnw", "norms.0.w.0"), ("fnb", "norms.0.b.0")):
            state |= network(weights, theirs, f"{ours}.parts.0")
    for name, value in (("w_f", W_F), ("norms.0.w.1", F_TOKEN_W), ("norms.0.b.1", F_TOKEN_B)):
        state[f"{name}.constants"] = torch.full((1, 1), value, dtype=torch.float64)
    state |= _moments(data)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{path} is not a released NAO of two layers with one head: {error}") from error
    return model


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
