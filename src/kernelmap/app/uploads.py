"""What a user drops: kept in memory, and in a private directory only while it is read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kernelmap.core.errors import InputError

LONGEST_NAME = 100


class Upload(NamedTuple):
    """A file by its name and its bytes."""

    name: str
    content: bytes

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """In a directory that nobody else may read, and that is removed, whatever happens.

        A sentence about the file calls it by its name: nobody knows the directory.
        """
        with tempfile.TemporaryDirectory(prefix="kernelmap-app-") as folder:
            path = Path(folder) / (Path(self.name).name[-LONGEST_NAME:] or "upload")
            path.write_bytes(self.content)
            try:
                yield path
            except InputError as error:
                raise InputError(str(error).replace(str(path), path.name)) from error
