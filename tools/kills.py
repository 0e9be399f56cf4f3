"""Commands killed at random moments and started again: is anything lost, mixed, different, or left behind?

    python tools/kills.py 200 experiments/results/reliability/kills.json

Each case runs a command to its end once, for reference. Then it is started, killed (SIGKILL, the process alone) at a
random moment and started again until it ends; the result must be that of the reference, nothing else may lie beside it,
and no process of it may be left. What a kill leaves must be a whole result or none. The numbers are written after every
run: the same command goes on where it was stopped. The problems world and own are not generated and have no case.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kernelmap.core.files import read_json, read_tensors, write_json
from kernelmap.core.files.together import is_whole
from kernelmap.core.provenance import provenance
from kernelmap.io import load_model
from kernelmap.problems.darcy.fields import microstructures, sources
from kernelmap.problems.darcy.scheme import pressures

SEED = 0
TRAIN = ["train", "radial", "--dx", "0.1", "--d", "20", "--setting", "sine", "--dk", "2"]
TRAIN += ["--epochs", "12", "--every", "1", "--threads", "1", "--resume"]
MECHANICS = ["--specimens", "4", "--loads", "2", "--elements", "q1-28", "--jobs", "2"]
TABLE = ["--rows", "nao-30-10", "--epochs", "2", "--threads", "1"]
ORPHAN = 30.0
"""Seconds after which no process of a killed command may be left: a helper that is importing ends when it has done so,
which on a busy machine takes many times the three seconds of an idle one."""

COUNTS = ("kills", "runs", "lost", "mixed", "different", "orphans", "left")


@dataclass(frozen=True)
class Case:
    """A command, where it writes, what of the result must be the same every time, and whether what is there is one."""

    words: list[str]
    out: str
    result: Callable[[Path], Any]
    whole: Callable[[Path], bool]


def model(out: Path) -> Any:
    tensors = read_tensors(out / "weights.safetensors")[0]
    training = read_json(out / "config.json")["about"]["training"]
    hashes = {name: hashlib.sha256(tensor.numpy().tobytes()).hexdigest() for name, tensor in sorted(tensors.items())}
    return hashes | {key: training[key] for key in ("best_epoch", "best_loss")}


def loads(out: Path) -> bool:
    """A model that is there can be used, whichever of its two files came last."""
    return not (out / "config.json").exists() or load_model(out)[0] is not None


def arrays(path: Path) -> Any:
    found = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            found[name] = hashlib.sha256(np.asarray(node[()]).tobytes()).hexdigest()

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def readable(path: Path) -> bool:
    return bool(arrays(path))


def record(out: Path) -> Any:
    return next(read_json(path)["systems"] for path in out.glob("*.json"))


def records(out: Path) -> bool:
    return all("systems" in read_json(path) for path in out.glob("*.json"))


def discovery(out: Path) -> Any:
    return {str(path.relative_to(out)): (is_whole(path.parent), arrays(path)) for path in sorted(out.rglob("*.h5"))}


def manifests(out: Path) -> bool:
    return all(is_whole(path.parent) for path in out.rglob("discovery.h5"))


CASES = {
    "train": Case([*TRAIN, "--out"], "model", model, loads),
    "train on 2 processes": Case([*TRAIN, "--devices", "2", "--out"], "model", model, loads),
    "generate radial": Case(["generate", "radial", "--dx", "0.025", "--out"], "radial.h5", arrays, readable),
    "generate darcy": Case(["generate", "darcy", "--n", "25", "--out"], "darcy.h5", arrays, readable),
    "reproduce": Case(["reproduce", "table1", *TABLE, "--out"], "table", record, records),
    "discover": Case(["discover", "DATA", "--model", "darcy", "--out"], "discovery", discovery, manifests),
    "discover --jobs 2": Case(
        ["discover", "DATA", "MORE", "--model", "darcy", "--jobs", "2", "--out"], "discoveries", discovery, manifests
    ),
    "generate mechanics --jobs 2": Case(
        ["generate", "mechanics", *MECHANICS, "--out"], "mechanics.h5", arrays, readable
    ),
}


def main(count: int, out: Path) -> None:
    results: dict[str, Any] = read_json(out)["cases"] if out.exists() else {}
    each = -(-count // len(CASES))
    with tempfile.TemporaryDirectory() as folder:
        data = [Path(folder) / f"{name}.npz" for name in ("data", "more")]
        for seed, path in enumerate(data):
            write_measurements(path, seed)
        for name, case in CASES.items():
            if "two_at_once" in results.get(name, {}):
                continue
            words = [{"DATA": str(data[0]), "MORE": str(data[1])}.get(word, word) for word in case.words]
            case, work = replace(case, words=words), Path(folder) / "work"
            start = time.perf_counter()
            before = results.get(name, dict.fromkeys(COUNTS, 0))
            for found in kills(case, work, each, before, name):
                seconds = round(before.get("seconds", 0) + time.perf_counter() - start)
                results[name] = found | {"seconds": seconds, "commit": provenance()["commit"]}
                save(results, count, out)
            results[name] |= at_once(case, work)
            print(name, results[name], flush=True)
            save(results, count, out)


def save(results: dict[str, Any], count: int, out: Path) -> None:
    total = {key: sum(case[key] for case in results.values()) for key in (*COUNTS, "seconds")}
    command = {"command": f"python tools/kills.py {count} {out}", "seed": SEED}
    write_json(out, {"total": total, "cases": results} | provenance() | command)


def kills(case: Case, work: Path, count: int, before: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The numbers so far, after every run that was killed up to three times and then left to end."""
    found = dict(before)
    if found["kills"] >= count:
        yield found
        return
    fresh(work)
    start = time.perf_counter()
    finish(case, work)
    duration = time.perf_counter() - start
    expected = case.result(work / case.out)
    beside = names(work)
    while found["kills"] < count:
        moments = random.Random(f"{SEED} {name} {found['runs']}")
        fresh(work)
        for _ in range(3):
            process = begin(case, work)
            wait(process, moments.uniform(0.1, duration))
            if process.poll() is None:
                process.kill()
                found["kills"] += 1
            process.wait()
            left, seconds = orphans(work)
            found["orphans"] += left
            found["slowest_end"] = max(found.get("slowest_end", 0.0), round(seconds, 1))
            found["mixed"] += (work / case.out).exists() and not case.whole(work / case.out)
        code, _ = finish(case, work)
        if code:
            found["lost"] += 1
        elif case.result(work / case.out) != expected:
            found["different"] += 1
        if names(work) != beside:
            print(name, "left", set(names(work)) ^ set(beside), flush=True)
            found["left"] += 1
        found["runs"] += 1
        yield found | {"seconds_of_a_run": round(duration, 1)}


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
    environment = os.environ | {"KILLED": str(work), "KERNELMAP_CACHE": str(work / "cache")}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)


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


def orphans(work: Path) -> tuple[int, float]:
    """Processes of a killed command, known by a variable, that outlive it; and how long the others took to end."""
    start = time.perf_counter()
    while (left := marked(work)) and time.perf_counter() - start < ORPHAN:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left), time.perf_counter() - start


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


def write_measurements(path: Path, seed: int) -> None:
    """Sources and pressures in a porous medium on few nodes."""
    n = 15
    g = sources(n, range(20), seed)
    axis = np.linspace(0, 1, n)
    np.savez(path, x1=axis, x2=axis, u=g, f=pressures(microstructures(n, [seed], seed)[0], g))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
