"""Several files of one result that appear together."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelmap.core.errors import InputError
from kernelmap.core.files.json import read_json, write_json
from kernelmap.core.files.reading import file_sha256
from kernelmap.core.files.writing import flush_to_disk, make_directory, remove_stray, temporary_name, writing

MANIFEST = "manifest.json"
"""The names and hashes of the files of a result. It is written last: without it, a result is not whole."""


@contextmanager
def together(out: Path | str) -> Iterator[Path]:
    """A directory to write into, whose files appear in `out` when all of them are there.

    A new `out` appears by one renaming. In one that is there, the manifest goes first and comes last.
    """
    out = Path(os.path.realpath(out))
    with writing(out):
        if out.exists() and not out.is_dir():
            raise InputError(f"cannot write the directory {out}: it is a file. Choose another name.")
        make_directory(out.parent)
        remove_stray(out.parent)
        staging = out.with_name(temporary_name())
        make_directory(staging)
        try:
            yield staging
            names = sorted(path.name for path in staging.iterdir())
            write_json(staging / MANIFEST, {name: file_sha256(staging / name) for name in names})
            if out.exists():
                _move(staging, out, names)
            else:
                os.rename(staging, out)
            flush_to_disk(out.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def is_whole(out: Path) -> bool:
    """Whether every file of the manifest is there as it was written."""
    if not (out / MANIFEST).is_file():
        return False
    return all(
        (out / name).is_file() and file_sha256(out / name) == sha for name, sha in read_json(out / MANIFEST).items()
    )


def _move(staging: Path, out: Path, names: list[str]) -> None:
    (out / MANIFEST).unlink(missing_ok=True)
    flush_to_disk(out)
    for name in [*names, MANIFEST]:
        os.replace(staging / name, out / name)
    flush_to_disk(out)
