"""Who may write a training directory: one run at a time, and none over another's model."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, is_file, locked, parse_json, reading
from kernelmap.core.files.processes import PARENT, end_with_named_parent

FILES = ("config.json", "weights.safetensors", "state.safetensors", "log.jsonl")


@contextmanager
def claimed(out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """The directory belongs to this run meanwhile; of several processes the first one sees to it."""
    if not _is_first():
        end_with_named_parent()
        yield
        return
    if resume and overwrite:
        raise InputError("--resume goes on with a run and --overwrite begins anew; give one of them.")
    with locked(out):
        found = [name for name in FILES if is_file(out / name)]
        if overwrite:
            for name in found:
                (out / name).unlink()
        elif found and not (resume and is_file(out / "state.safetensors")):
            what = "a training run" if is_file(out / "state.safetensors") else "a model"
            go_on = "go on with --resume, " if is_file(out / "state.safetensors") else ""
            raise InputError(
                f"{out} holds {what} already; {go_on}begin anew with --overwrite, or choose another --out."
            )
        yield


@contextmanager
def helpers() -> Iterator[None]:
    """Processes that are started meanwhile end when this one does."""
    if not _is_first():
        yield
        return
    os.environ[PARENT] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(PARENT, None)


def keep_log(path: Path, epoch: int) -> None:
    """Drop what a killed run logged after its last state; a line that is cut short or damaged ends the log."""
    lines = []
    with reading(path, "log of a training run", "delete it"):
        for line in path.read_text(errors="replace").splitlines() if is_file(path) else []:
            if not _is_line(line, epoch):
                break
            lines.append(line + "\n")
    with atomic_path(path) as temporary:
        temporary.write_text("".join(lines))


def _is_line(line: str, epoch: int) -> bool:
    try:
        value = parse_json(line, "log")
    except InputError:
        return False
    numbers = isinstance(value, dict) and all(isinstance(value.get(key), (int, float)) for key in LOGGED)
    return numbers and value["epoch"] <= epoch


LOGGED = ("epoch", "loss", "validation", "seconds")


def _is_first() -> bool:
    """Of the processes of a run, as torchrun and Fabric number them."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))
