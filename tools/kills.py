"""Commands killed at random moments and started again: is anything lost, mixed, different, or left behind?

    python tools/kills.py 200 experiments/results/reliability/kills.json

Each case runs a command to its end once, for reference. Then it is started, killed (SIGKILL, the process alone) at a
random moment and started again until it ends; the result must be that of the reference, nothing else may lie beside it,
and no process of it may be left.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kernelmap.core.files import read_json, read_tensors, write_json
from kernelmap.core.files.together import is_whole
from kernelmap.core.provenance import provenance

TRAIN = ["train", "radial", "--dx", "0.5", "--d", "20", "--setting", "sine", "--dk", "2"]
TRAIN += ["--epochs", "5", "--every", "1", "--threads", "1", "--resume"]
MECHANICS = ["--specimens", "8", "--loads", "4", "--elements", "q1-28", "--jobs", "2"]
ORPHAN = 5.0
"""Seconds after which no process of a killed command may be left."""


@dataclass(frozen=True)
class Case:
    """A command, where it writes, and what of the result must be the same every time."""

    words: list[str]
    out: str
    result: Callable[[Path], Any]


def model(out: Path) -> Any:
    tensors = read_tensors(out / "weights.safetensors")[0]
    training = read_json(out / "config.json")["about"]["training"]
    hashes = {name: hashlib.sha256(tensor.numpy().tobytes()).hexdigest() for name, tensor in sorted(tensors.items())}
    return hashes | {key: training[key] for key in ("best_epoch", "best_loss")}


def arrays(path: Path) -> Any:
    found = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            found[name] = hashlib.sha256(np.asarray(node[()]).tobytes()).hexdigest()

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def record(out: Path) -> Any:
    return next(read_json(path)["systems"] for path in out.glob("*.json"))


def discovery(out: Path) -> Any:
    return is_whole(out), arrays(out / "discovery.h5")


CASES = {
    "train": Case([*TRAIN, "--out"], "model", model),
    "train on 2 processes": Case([*TRAIN, "--devices", "2", "--out"], "model", model),
    "generate radial": Case(["generate", "radial", "--dx", "0.1", "--out"], "radial.h5", arrays),
    "generate darcy": Case(["generate", "darcy", "--n", "7", "--out"], "darcy.h5", arrays),
    "generate mechanics --jobs 2": Case(["generate", "mechanics", *MECHANICS, "--out"], "mechanics.h5", arrays),
    "reproduce": Case(
        ["reproduce", "table1", "--rows", "nao-302-10", "--epochs", "2", "--threads", "1", "--out"], "table", record
    ),
    "discover": Case(["discover", "DATA", "--out"], "discovery", discovery),
}


def main(count: int, out: Path) -> None:
    results: dict[str, Any] = {}
    each = -(-count // len(CASES))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNELMAP_CACHE"] = str(Path(folder) / "cache")
        data = Path(folder) / "data.npz"
        write_measurements(data)
        for name, case in CASES.items():
            words = [str(data) if word == "DATA" else word for word in case.words]
            results[name] = kill(Case(words, case.out, case.result), Path(folder) / "work", each)
            results[name] |= at_once(Case(words, case.out, case.result), Path(folder) / "work")
            print(name, results[name], flush=True)
            save(results, count, out)


def save(results: dict[str, Any], count: int, out: Path) -> None:
    keys = ("kills", "lost", "different", "orphans", "left")
    total = {key: sum(case[key] for case in results.values()) for key in keys}
    command = {"command": f"python tools/kills.py {count} {out}"}
    write_json(out, {"total": total, "cases": results} | provenance() | command)


def kill(case: Case, work: Path, count: int) -> dict[str, Any]:
    fresh(work)
    start = time.perf_counter()
    finish(case, work)
    duration = time.perf_counter() - start
    expected = case.result(work / case.out)
    beside = names(work)
    found = {"kills": 0, "lost": 0, "different": 0, "orphans": 0, "left": 0}
    while found["kills"] < count:
        fresh(work)
        for _ in range(3):  # several kills of one run, then its end
            process = begin(case, work)
            wait(process, random.uniform(0.1, duration))
            if process.poll() is None:
                process.kill()
                found["kills"] += 1
            process.wait()
            found["orphans"] += orphans(work)
        code, _ = finish(case, work)
        if code:
            found["lost"] += 1
        elif case.result(work / case.out) != expected:
            found["different"] += 1
        found["left"] += names(work) != beside
    return found | {"seconds_of_a_run": round(duration, 1)}


def at_once(case: Case, work: Path) -> dict[str, Any]:
    """Two of the same: how many work, and whether the other says who holds the lock."""
    fresh(work)
    both = [begin(case, work, subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[1].decode() for process in both]
    codes = [process.returncode for process in both]
    told = ["being written by process" in " ".join(text.split()) for text in said]
    return {"two_at_once": {"worked": codes.count(0), "told_who_holds_the_lock": sum(told)}}


def begin(case: Case, work: Path, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kernelmap", *case.words, str(work / case.out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=os.environ | {"KILLED": str(work)})


def finish(case: Case, work: Path) -> tuple[int, str]:
    process = begin(case, work, subprocess.PIPE)
    _, said = process.communicate()
    if process.returncode:
        print(said.decode()[-600:], file=sys.stderr)
    return process.returncode, said.decode()


def wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """So long, or until the process has ended by itself."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def orphans(work: Path) -> int:
    """Processes of a killed command, known by a variable, that outlive it."""
    deadline = time.time() + ORPHAN
    while (left := marked(work)) and time.time() < deadline:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def marked(work: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"KILLED={work}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def names(work: Path) -> list[str]:
    return sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())


def fresh(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()


def write_measurements(path: Path) -> None:
    x = np.linspace(0, 30, 121)
    u = np.stack([np.sin(k * x) for k in (1, 2, 3)])
    np.savez(path, x=x, u=u, f=0.3 * u + 0.01)


if __name__ == "__main__":
    random.seed(0)
    main(int(sys.argv[1]), Path(sys.argv[2]))
