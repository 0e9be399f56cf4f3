"""Cases of a benchmark, each in a process of its own: its peak memory and its threads are then its own."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelmap.core.errors import InputError

DROPPED = 24_000_000
"""Bytes of an array that is made and dropped before anything is timed. From then on malloc keeps memory that is freed,
as in a session that has held a data set; before, it returns large arrays page by page, which takes time."""

LONG = 1.0
"""Seconds over which short runs are repeated: fewer of them are hardly ever undisturbed."""


def in_process(module: str, threads: int, *case: Any) -> dict[str, Any]:
    """What `python -m module CASE` prints, as JSON, with so many threads for torch, numpy and scipy alike."""
    command = [sys.executable, "-m", module, json.dumps(case)]
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | limits)
    if done.returncode:
        raise InputError(f"a case of the benchmark could not be measured: {done.stderr.strip().rpartition(chr(10))[2]}")
    result = json.loads(done.stdout)
    if "error" in result:
        raise InputError(result["error"])
    return result | {"threads": threads}


def serve(measure: Callable[..., dict[str, Any]]) -> None:
    """The other side of `in_process`."""
    bytes(DROPPED)
    try:
        result = measure(*json.loads(sys.argv[1]))
    except InputError as error:
        result = {"error": str(error)}
    print(json.dumps(result))


def shortest(run: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several times, and of as many as fit into a second: the least disturbed one."""
    times: list[float] = []
    while len(times) < repeats or sum(times) < LONG:
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def peak_memory_gb() -> float:
    """Of this process alone: on Linux `ru_maxrss` counts what its parent held when it started this one, too."""
    if (status := Path("/proc/self/status")).exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
