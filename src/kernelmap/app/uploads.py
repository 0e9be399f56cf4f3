"""What a user drops: kept in memory, and in a private directory only while it is read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LONGEST_NAME = 100


class Upload(NamedTuple):
    """A file by its name and its bytes."""

    name: str
    content: bytes

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """In a directory that nobody else may read and that is removed, whatever happens."""
        with tempfile.TemporaryDirectory(prefix="kernelmap-app-") as folder:
            path = Path(folder) / (Path(self.name).name[-LONGEST_NAME:] or "upload")
            path.write_bytes(self.content)
            yield path

    def told(self, sentence: str) -> str:
        """A sentence about it, without the directory that nobody knows."""
        return sentence.replace(f"{tempfile.gettempdir()}/", "").partition("kernelmap-app-")[0] + (
            sentence.partition("kernelmap-app-")[2].partition("/")[2] if "kernelmap-app-" in sentence else ""
        )
