"""Where a result comes from: the command, the version, the commit."""

import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelmap.core.terminal import encodable


def provenance() -> dict[str, Any]:
    return {
        "command": encodable(shlex.join(["kernelmap", *sys.argv[1:]])),
        "version": version("kernelmap"),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of this source tree, or None where it is installed without one."""
    package = Path(__file__).parents[1]
    query = ["git", "-C", str(package), "log", "-1", "--format=%h", "--", str(package)]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None
