"""`kernelmap app`: the same in the browser."""

import os
import socket
import sys

import tyro

from kernelmap.app import command
from kernelmap.core.errors import InputError
from kernelmap.core.terminal import say

SPARE = 8502


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
    require_free(port)
    say(f"The page is at http://localhost:{port}; Ctrl-C ends it.")
    sys.stdout.flush()
    os.execv(words[0], words)  # whoever ends this process ends the page


def require_free(port: int) -> None:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("localhost", port))
        except (OSError, OverflowError) as error:
            raise InputError(f"expected a free port, got {port}: {error}. Try --port {SPARE}.") from error
