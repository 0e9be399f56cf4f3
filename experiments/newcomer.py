"""The way of somebody who has only README: from a checkout to the kernel of its example file, each step timed.

    python experiments/newcomer.py walk

The steps are taken from README as they stand there, in a fresh environment in a directory of their own, outside the
checkout. Time of the clock says what this machine did at that moment; time of the processor what the step takes.
"""

import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from measured import RESULTS, ROOT, markdown, read
from parts import run_parts

EXAMPLE = "mine.npz"


def steps(readme: str) -> dict[str, str]:
    """What README says, by what it is for."""
    install = re.findall(r"^    (pip install .*)$", readme, re.MULTILINE)[0]
    check, discover = re.findall(rf"^    (kernelmap \w+ {EXAMPLE}.*)$", readme, re.MULTILINE)
    placed = install.replace("constraints.txt", "{checkout}/constraints.txt").replace('".[', '"{checkout}[')
    write, in_python = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    return {
        "an environment": f"{sys.executable} -m venv fresh",
        f"`{install}`": f"fresh/bin/{placed}",
        f"the lines that write `{EXAMPLE}`": f"fresh/bin/python -c '{write}'",
        f"`{check}`": f"fresh/bin/{check}",
        f"`{discover}`": f"fresh/bin/{discover}",
        "the same in Python": f"fresh/bin/python -c '{in_python}'",
    }


def walk() -> dict:
    """Seconds of the clock and of the processor; the checkout is a clone without anything that is not committed."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
        for name, command in steps((checkout / "README.md").read_text()).items():
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            words = command.replace("{checkout}", str(checkout))
            subprocess.run(words, shell=True, cwd=folder, env=environment, check=True, stdout=sys.stderr)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken[name] = {"seconds": time.perf_counter() - start, "processor": processor}
            taken[name]["load"] = os.getloadavg()[0]
        assert (Path(folder) / "DIR" / "report.html").exists()
    machine = {"processors": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    return {"steps": taken, "torch": torch.__version__, **machine}


def table() -> str:
    """Seconds of each step, and of all."""
    steps = read(RESULTS / "newcomer" / "walk.json")["results"]["steps"]
    total = {key: sum(step[key] for step in steps.values()) for key in ("processor", "seconds")}
    rows = [[name, *(f"{step[key]:.0f}" for key in total)] for name, step in {**steps, "all": total}.items()]
    return markdown(["step", "processor, s", "clock, s"], rows)


PARTS = {"walk": walk}

if __name__ == "__main__":
    run_parts("newcomer.py", RESULTS / "newcomer", PARTS, seed=0)
