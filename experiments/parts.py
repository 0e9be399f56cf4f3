"""Running the parts of an experiment: each writes its results with the command, commit and duration that made them."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelmap.progress import progress
from kernelmap.provenance import provenance


def run_parts(
    script: str, results: Path, model: Any, parts: Mapping[str, Callable[[Any], dict[str, Any]]], **about: Any
) -> None:
    """Those named on the command line, or those that are not finished."""
    results.mkdir(parents=True, exist_ok=True)
    unfinished = [name for name in parts if not (results / f"{name}.json").exists()]
    for part in progress(sys.argv[1:] or unfinished, "Parts"):
        start = time.perf_counter()
        made = {"results": parts[part](model), **about, "command": f"python experiments/{script} {part}"}
        made |= {"commit": provenance()["commit"], "seconds": round(time.perf_counter() - start, 1)}
        (results / f"{part}.json").write_text(json.dumps(made, indent=1) + "\n")
