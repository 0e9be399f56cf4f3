"""Known errors of single measurements of f, and noise on u, which is smoothed."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.io.entries import Entries, numbers, word
from kernelmap.operators.smoothing import Noise

ESTIMATE = "estimate"

FARTHEST = 1e100
"""How many times larger or smaller than u its noise may be, so that squares of the ratio are numbers."""

DECISIVE = 10.0
"""Log odds of noise on u, against none, from which on an estimated level counts: 20000 to 1."""


def errors_of(entries: Entries, shape: tuple[int, ...], used: np.ndarray) -> Float[Tensor, "1 d"] | None:
    """`f_std`, in the shape of f, of the pairs that are used."""
    if "f_std" not in entries:
        return None
    std = numbers(entries, "f_std")
    if std.size != np.prod(shape):
        raise InputError(f"f_std must have the shape of f, one standard deviation for each value, got {std.shape}.")
    std = std.reshape(shape)[used]
    if not ((std > 0) & np.isfinite(std)).all():
        raise InputError("f_std must be positive where f was measured; every measurement has some error.")
    return torch.from_numpy(std)[None]


def without_noise(
    entries: Entries, u: Float[np.ndarray, "n r J"]
) -> tuple[Float[np.ndarray, "n r J"], Float[Tensor, "n L"] | None]:
    """u of n inputs, each with r rows, smoothed where `u_std` says that it has noise, and the errors that are left.

    `u_std` is the standard deviation of the noise, one number or one for each input, or the text `estimate`.
    """
    if "u_std" not in entries:
        return u, None
    levels: list[float | None] = [None] * len(u)
    if word(entries, "u_std") != ESTIMATE:
        given = numbers(entries, "u_std").ravel()
        if given.size not in (1, len(u)) or not ((given > 0) & np.isfinite(given)).all():
            raise InputError(
                f"u_std must be the standard deviation of the noise on u, positive, one number or one for each of "
                f'{len(u)} input(s), or the text "estimate", got {entries["u_std"]}.'
            )
        largest = np.abs(u).max(axis=(1, 2))
        if not (np.abs(np.log(given / np.where(largest > 0, largest, 1))) < np.log(FARTHEST)).all():
            raise InputError(f"u_std is {given}, but the largest values of u are {largest}; give both in one unit.")
        levels = np.broadcast_to(given, len(u)).tolist()
    smooth, left = [], []
    for rows, std in zip(u, levels, strict=True):
        noise = Noise.of(rows, std)
        certain = std is not None or noise.log_odds > DECISIVE
        smooth.append(noise.removed(rows) if certain else rows)
        left.append(certain * noise.left)
    errors = torch.from_numpy(np.stack(left))
    return np.stack(smooth), errors if errors.any() else None


def left_on(u_errors: Float[Tensor, "n L"]) -> str:
    """Standard deviations of what smoothing left of the noise on each input."""
    return ", ".join(f"{value:.3g}" for value in u_errors[:, 0].sqrt().tolist())
