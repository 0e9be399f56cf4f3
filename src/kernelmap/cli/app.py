"""`kernelmap app`: the same in the browser."""

import subprocess

import tyro

from kernelmap.app import command
from kernelmap.core.terminal import say


def run(words: list[str]) -> None:
    tyro.cli(app, prog="kernelmap app", args=words)


def app(port: int = 8501, browser: bool = True) -> None:
    """Open a page on this machine: drop a file, look at what is in it, discover its kernel, take the report away.

    It listens on localhost alone; what is dropped stays in memory. Ctrl-C ends it.

    Args:
        port: where to listen.
        browser: open a browser; --no-browser prints the address alone.
    """
    words = command(port, browser)
    say(f"The page is at http://localhost:{port}; Ctrl-C ends it.")
    subprocess.run(words, check=False)
