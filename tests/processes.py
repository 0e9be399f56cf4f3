"""Python processes as a test starts them, without the seconds in which each would import torch.

They are forked from a server that has imported what commands need. Each is a process of its own, with its own number,
files, directory and environment, and can be killed. What is tested about the start itself takes a real one.
"""

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from runpy import run_module
from tempfile import TemporaryDirectory
from typing import NamedTuple

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["kernelmap.report", "kernelmap.training", "kernelmap.posterior", "matplotlib.pyplot", "scipy.io", "pytest"]
)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Started:
    """`python WORDS`, where words are `-c CODE ...` or `-m kernelmap ...`."""

    def __init__(self, *words: object, cwd: Path | None = None, session: bool = False) -> None:
        self._folder = TemporaryDirectory()
        self._out, self._err = (Path(self._folder.name) / name for name in ("out", "err"))
        place, files = str(cwd or Path.cwd()), (str(self._out), str(self._err))
        arguments = ([str(word) for word in words], place, dict(os.environ), files, session)
        self._process = _SERVER.Process(target=_run, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    def done(self, timeout: float = 1200) -> Done:
        """After its end: the exit code, and what it wrote."""
        self._process.join(timeout)
        code = self._process.exitcode
        assert code is not None, "the process does not end"
        return Done(code, self._out.read_text(), self._err.read_text())


def python(*words: object, cwd: Path | None = None) -> Done:
    return Started(*words, cwd=cwd).done()


def _run(words: list[str], place: str, environment: dict[str, str], files: tuple[str, str], session: bool) -> None:
    for number, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    if session:
        os.setsid()
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    kind, what, *rest = words
    sys.argv = [kind, *rest]
    if kind == "-c":
        sys.path.insert(0, place)
        exec(what, {"__name__": "__main__"})
    else:
        run_module(what, run_name="__main__", alter_sys=True)
