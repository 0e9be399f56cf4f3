"""Running the parts of an experiment: each writes its results with the command, commit and duration that made them."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelmap.core.files import write_json
from kernelmap.core.progress import progress
from kernelmap.core.provenance import provenance


def run_parts(script: str, results: Path, parts: Mapping[str, Callable[..., Any]], *arguments: Any, seed: int) -> None:
    """Those named on the command line, or those that are not finished, each called with the arguments."""
    unfinished = [name for name in parts if not (results / f"{name}.json").exists()]
    for part in progress(sys.argv[1:] or unfinished, "Parts"):
        start = time.perf_counter()
        made = {"results": parts[part](*arguments), "seed": seed, "command": f"python experiments/{script} {part}"}
        made |= {"commit": provenance()["commit"], "seconds": round(time.perf_counter() - start, 1)}
        write_json(results / f"{part}.json", made)
