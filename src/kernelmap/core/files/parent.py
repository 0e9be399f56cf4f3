"""The end of a process whose parent has ended. A worker runs this file before it imports torch, which takes seconds."""

import os
import threading
import time

RUN_NAME = "end_with_parent"
"""The `__name__` of this file in a worker, where `PARENT` is a number given to it."""

LOOK = 0.5
"""Seconds between two looks at the parent."""


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent has ended, however that happened: nobody waits for its work."""
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()


if __name__ == RUN_NAME:
    end_with_parent(globals()["PARENT"])
