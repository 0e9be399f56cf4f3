"""Files that are written whole or not at all."""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import safetensors

from kernelmap.core.errors import InputError
from kernelmap.core.files.processes import Process, machine_tag

HDF5_FAILURES = ("Unable to", "Can't", "Couldn't", "Failed to")
"""How h5py begins when the disk is full: as a RuntimeError, like mistakes of our own."""

TEMPORARY = ".kernelmap-"
"""How the names of unfinished files begin: then come the machine, the process and its start."""


@contextmanager
def atomic_path(path: Path | str, room: int = 0) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it on success and removed on failure.

    A process killed half way leaves the old file as it was, and the next write there removes what it left. A link is
    followed, a device or a pipe is written through, an existing file keeps its mode. `room` is the number of bytes that
    must be free on the disk before anything is written: HDF5 may crash when the disk becomes full under it.
    """
    path = Path(path)
    with writing(path):
        if (descriptor := _descriptor(path)) is not None or _is_special(path):
            with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
                yield (temporary := Path(folder) / f"new{path.suffix}")
                _write_through(temporary, path if descriptor is None else descriptor)
            return
        path = Path(os.path.realpath(path))
        if path.is_dir():
            raise InputError(f"cannot write the file {path}: it is a directory. Choose another name.")
        make_directory(path.parent)
        temporary = _create(path)
        try:
            mode = temporary.stat().st_mode
            if room and hasattr(os, "posix_fallocate"):
                with temporary.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, room)
                    file.truncate(0)
            yield temporary
            _take_over(temporary, path, mode)
            flush_to_disk(temporary)
            os.replace(temporary, path)
            flush_to_disk(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """What a disk, a place or a library that writes may refuse, as one sentence."""
    try:
        yield
    except (InputError, BrokenPipeError):  # a reader that has gone, as `head` does, is no mistake
        raise
    except OSError as error:
        raise InputError(
            f"{path} could not be written ({error.strerror or error}); nothing was changed. Free space there, or "
            "choose another place."
        ) from error
    except (safetensors.SafetensorError, RuntimeError) as error:
        if type(error) is RuntimeError and not str(error).startswith(HDF5_FAILURES):
            raise
        raise InputError(f"{path} could not be written ({error}); nothing was changed. Is the disk full?") from error


def require_other(out: Path, *inputs: Path) -> None:
    """A result may not be written over what it is made from."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"{out} is read, and would be overwritten by the result; choose another name.")


def make_directory(path: Path) -> None:
    with _refused(path):
        path.mkdir(parents=True, exist_ok=True)


def temporary_name(suffix: str = "") -> str:
    """Unlike that of any other process, and of any other call in this one."""
    process = Process.here()
    number = next(tempfile._get_candidate_names())  # pyright: ignore[reportAttributeAccessIssue]
    return f"{TEMPORARY}{machine_tag()}-{process.pid}-{process.started}-{number}{suffix}"


def remove_stray(directory: Path) -> None:
    """What killed processes of this machine left in a directory."""
    pattern = re.compile(rf"{re.escape(TEMPORARY)}{machine_tag()}-(\d+)-(\d*)-")
    host = Process.here().host
    with suppress(OSError):
        for entry in list(os.scandir(directory)):
            found = pattern.match(entry.name)
            if found and not Process(host, int(found[1]), found[2]).is_alive:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)


def flush_to_disk(path: Path) -> None:
    """A file's or directory's content, so that it survives a power cut; some file systems cannot."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if stat.S_ISREG(os.fstat(handle).st_mode) and error.errno not in (22, 95):  # EINVAL, ENOTSUP
            raise
    finally:
        os.close(handle)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}. Choose another place.") from error


def _create(path: Path) -> Path:
    """By `open` with the usual mode, so that the umask applies without being asked for."""
    remove_stray(path.parent)
    temporary = path.with_name(temporary_name(path.suffix if len(path.suffix) < 16 else ""))
    with _refused(path):
        _check_name(path)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    return temporary


def _check_name(path: Path) -> None:
    """A name that is too long is found before anything is written."""
    with suppress(FileNotFoundError):
        os.lstat(path)


def _take_over(temporary: Path, path: Path, mode: int) -> None:
    """Mode and owner of the file that is replaced, or the mode of a new one."""
    try:
        old = path.stat()
    except FileNotFoundError:
        temporary.chmod(stat.S_IMODE(mode))
        return
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(stat.S_IMODE(old.st_mode))


def _descriptor(path: Path) -> int | None:
    """The number of an open file that a path such as /dev/stdout stands for."""
    name = os.path.abspath(path)
    standard = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return int(found[1]) if found else standard.get(name)


def _is_special(path: Path) -> bool:
    """A device, a pipe or a socket."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_through(temporary: Path, target: Path | int) -> None:
    with temporary.open("rb") as source, open(target, "wb", closefd=not isinstance(target, int)) as sink:
        shutil.copyfileobj(source, sink)
