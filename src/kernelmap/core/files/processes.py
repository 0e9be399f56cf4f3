"""Which process did something, whether it still runs, and the end of helpers whose parent is gone."""

import os
import socket
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from runpy import run_path
from typing import Any

from kernelmap.core.files import parent

PARENT = "KERNELMAP_PARENT"
"""The variable by which a command tells the commands it starts who their parent is."""

HELPER = "KERNELMAP_HELPER"
"""Set in such a command, which leaves what is to be said to its parent."""


@dataclass(frozen=True)
class Process:
    """A process of this or another machine. `started` tells it from a later one with the same number."""

    host: str
    pid: int
    started: str

    @classmethod
    def here(cls) -> "Process":
        return cls(_host(), os.getpid(), _started(os.getpid()) or "")

    @classmethod
    def from_json(cls, values: Any) -> "Process | None":
        """None where the values do not name a process."""
        if not isinstance(values, dict) or not all(isinstance(values.get(key), str) for key in ("host", "started")):
            return None
        pid = values.get("pid")
        return cls(values["host"], pid, values["started"]) if type(pid) is int and 0 < pid < 2**31 else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_local(self) -> bool:
        return self.host == _host()

    @property
    def is_alive(self) -> bool:
        """Of another machine's process nothing is known: it counts as alive."""
        if not self.is_local:
            return True
        started = _started(self.pid)
        return started is not None and self.started in ("", started)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"


def ending_with_us() -> dict[str, Any]:
    """For `joblib.Parallel`: workers of this machine end with this process; those of a cluster live on their own."""
    from joblib.parallel import get_active_backend

    if type(get_active_backend()[0]).__name__ != "LokyBackend":
        return {}
    return {"initializer": run_path, "initargs": (parent.__file__, {"PARENT": os.getpid()}, parent.RUN_NAME)}


def end_with_named_parent() -> None:
    """The same in a command that another command started."""
    named = os.environ.pop(PARENT, "")
    if named.isdecimal():
        os.environ[HELPER] = named
        parent.end_with_parent(int(named))


def machine_tag() -> str:
    """Eight digits of the machine, for names of files."""
    return sha256(_host().encode()).hexdigest()[:8]


def _host() -> str:
    """With the namespace of process numbers, which containers on one machine may not share."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}/{namespace}"


def _started(pid: int) -> str | None:
    """When a process began, "" where the system does not tell, None where there is no such process."""
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return ""
