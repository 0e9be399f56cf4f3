"""Thousands of damaged and odd files, each read by a process of its own: what became of it, how long, how much memory.

PYTHONPATH=tests python tools/fuzz.py 2000 experiments/results/reliability/fuzz.json
"""

import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from kernelmap.core.files import read_json, write_json
from kernelmap.core.provenance import provenance
from mutants_of_measurements import MEASUREMENTS  # pyright: ignore[reportMissingImports]
from mutants_of_models import MODELS  # pyright: ignore[reportMissingImports]
from mutation import Kind, mutant, outcome  # pyright: ignore[reportMissingImports]

KINDS = MEASUREMENTS | MODELS
LONGEST = 60
"""Seconds of the processor; ten times as many by the clock, which on a busy machine says little."""

CODES = {0: "accepted", 3: "refused"}


def main(count: int, out: Path) -> None:
    """The numbers are written after every kind: the same command goes on where it was stopped."""
    before = read_json(out) if out.exists() else {"kinds": {}, "failures": []}
    results, failures = before["kinds"], before["failures"]
    each = -(-count // len(KINDS))
    for name in [name for name in KINDS if name not in results]:
        found, longest, peak = Counter(), 0.0, 0
        start = time.perf_counter()
        for seed in range(each):
            what, duration, memory = one(KINDS[name], seed)
            found[what] += 1
            longest, peak = max(longest, duration), max(peak, memory)
            if what not in CODES.values():
                failures.append({"kind": name, "seed": seed, "what": what})
        measured = {"longest_seconds": round(longest, 2), "peak_megabytes": round(peak / 1024)}
        seconds = {"seconds": round(time.perf_counter() - start), "commit": provenance()["commit"]}
        results[name] = dict(found) | measured | seconds
        print(name, results[name], flush=True)
        save(results, failures, {"command": f"python tools/fuzz.py {count} {out}"}, out)


def save(results: dict[str, Any], failures: list[Any], command: dict[str, str], out: Path) -> None:
    kinds = results.values()
    total = {
        "mutants": sum(kind.get(end, 0) for kind in kinds for end in CODES.values()) + len(failures),
        "failures": failures,
        "longest_seconds": max(kind["longest_seconds"] for kind in kinds),
        "peak_megabytes": max(kind["peak_megabytes"] for kind in kinds),
        "seconds": sum(kind["seconds"] for kind in kinds),
        "seeds": "of every kind, from 0 on",
    }
    write_json(out, total | {"kinds": results} | provenance() | command)


def one(kind: Kind, seed: int) -> tuple[str, float, int]:
    """What became of a mutant, seconds of the processor, kilobytes at most (with those of Python and torch)."""
    with tempfile.TemporaryDirectory() as directory:
        path = mutant(kind, Path(directory), seed)
        child = os.fork()
        if child == 0:
            os._exit(read(kind, path))
        _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = "hang" if number in (signal.SIGALRM, signal.SIGXCPU) else f"signal {number}"
    else:
        what = CODES.get(os.WEXITSTATUS(status), "traceback")
    return what, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def read(kind: Kind, path: Path) -> int:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10 * LONGEST)
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    errors = os.dup(2)
    os.dup2(silence, 2)
    try:
        return {what: code for code, what in CODES.items()}[outcome(kind, path)]
    except BaseException as error:
        os.write(errors, f"{path.name}: {type(error).__name__}: {error}\n".encode(errors="replace")[:400])
        return 1


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
