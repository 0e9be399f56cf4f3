"""One writer at a time: a lock file beside what is written, with the process and machine that holds it.

The system's own lock on that file (`flock`) ends with its process, so that a killed run leaves no barrier and two runs
cannot take over at once; what the file says tells people who holds it, and guards disks shared by machines.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelmap.core.errors import InputError
from kernelmap.core.files.processes import Process
from kernelmap.core.files.writing import make_directory, writing
from kernelmap.core.progress import notice

try:
    import fcntl
except ImportError:  # Windows: what the file says is all there is
    fcntl = None


@contextmanager
def locked(target: Path | str) -> Iterator[None]:
    """Nobody else writes `target` meanwhile; a second writer is told who does."""
    target = Path(os.path.realpath(target))
    if not target.name:
        raise InputError(f"cannot write {target}: all files of this machine are in it. Choose another place.")
    lock = target.with_name(f"{target.name}.lock")
    with writing(lock):
        make_directory(lock.parent)
        handle = _acquire(lock, target)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _acquire(lock: Path, target: Path) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _is_free(handle):
                raise InputError(_refusal(target, lock, _holder(handle)))
            if not _is_same(handle, lock):  # its last holder removed it between our two calls
                os.close(handle)
                continue
            if (holder := _holder(handle)) is not None:
                if not holder.is_local or (fcntl is None and holder.is_alive):
                    raise InputError(_refusal(target, lock, holder))
                notice(f"the lock {lock} of {holder}, which has ended, is taken over.")
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(Process.here().to_json()).encode(), 0)
            return handle
        except BaseException:
            os.close(handle)
            raise


def _is_free(handle: int) -> bool:
    """Whether no other process holds the system's lock, which is then ours."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(lock))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> Process | None:
    try:
        return Process.from_json(json.loads(os.pread(handle, 4096, 0)))
    except (ValueError, RecursionError):
        return None


def _refusal(target: Path, lock: Path, holder: Process | None) -> str:
    who = "another process" if holder is None else str(holder)
    return (
        f"{target} is being written by {who}, which holds the lock {lock}. Wait for it, or choose another --out; if it "
        "has ended, delete that file."
    )
