"""Generated systems, kept in the user's cache directory and checked by their checksum."""

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import platformdirs

from kernelmap.core.errors import InputError
from kernelmap.core.files import is_file
from kernelmap.core.systems import SystemSet

FORMAT = 2
"""Of the files of systems; raised when they, or what their checksum covers, change."""


def cache_directory() -> Path:
    """Where generated data are kept; the environment variable KERNELMAP_CACHE overrides the platform's place."""
    return Path(os.environ.get("KERNELMAP_CACHE") or platformdirs.user_cache_path("kernelmap"))


def code_hash(generator: Path) -> str:
    """Twelve digits that change with the code in a directory."""
    sources = b"".join(source.read_bytes() for source in sorted(generator.rglob("*.py")))
    return hashlib.sha256(sources).hexdigest()[:12]


def cached(name: str, generator: Path, generate: Callable[[], SystemSet]) -> SystemSet:
    """The systems stored under `name`; generated, and stored, when absent, damaged or made by other code.

    `generator` is the directory of the code that generates them.
    """
    path = cache_directory() / f"{generator.name}-{code_hash(generator)}-{FORMAT}" / name
    if is_file(path):
        try:
            return SystemSet.load(path)
        except InputError as error:
            warnings.warn(f"the cached {path} is damaged and is generated again ({error})", stacklevel=2)
    systems = generate()
    try:
        systems.save(path)
    except InputError as error:
        warnings.warn(
            f"generated data are not kept: {error} (the variable KERNELMAP_CACHE names the place)", stacklevel=2
        )
    return systems
