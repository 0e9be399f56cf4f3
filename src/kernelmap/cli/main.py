"""The `kernelmap` command. A command's module is imported when it is called: help must not wait for torch."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from types import FrameType, ModuleType

COMMANDS = {
    "demo": "the main job, on shipped weights",
    "check": "what is in a file of measurements, or what is wrong with it",
    "discover": "the hidden kernel behind measured pairs, with error bar and report",
    "predict": "responses to new inputs, with error bar, from a saved discovery",
    "suggest": "what to measure next, of the places in a file without f",
    "app": "the same on a page in the browser, on this machine alone",
    "models": "what is shipped, with size, data and known errors",
    "generate": "a problem's data sets, with true kernels",
    "train": "a kernel map on a problem's systems",
    "evaluate": "errors of a model on systems it has never seen",
    "calibrate": "whether a model's intervals cover what they say, on systems of a simulated world",
    "reproduce": "the paper's tables and figures, its values beside ours",
    "import-released": "the authors' checkpoints, as models",
    "bench": "speed, as ratios in one run, and errors on systems unlike those of training",
    "completion": "the script with which bash or zsh completes all this",
}

OF_THE_PAPER = {"reproduce", "import-released", "bench"}

EXTRAS = {"mlxtend": "mechanics", "streamlit": "app", "plotly": "app"}
"""Packages that are not always installed, and the extra that brings each."""

OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "can't start new thread")
"""What torch and Python say of it in a RuntimeError."""

MAX_MEMORY = "--max-memory"
INTERRUPTED = 130


def main() -> None:
    """Run a command; a mistake in its input ends with one clear sentence and exit code 2, Ctrl-C with code 130."""
    words = sys.argv[1:]
    before = signal.signal(signal.SIGINT, _leave) if _is_main_thread() else None
    _open_streams()
    try:
        if not words or words[0] in ("--help", "-h"):
            return show_help()
        sys.exit(run(words))
    except OSError as error:
        sys.exit(refused(error))
    except KeyboardInterrupt:
        _leave()
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _open_streams() -> None:
    """A stream that was closed before we began (`2>&-`) leads nowhere, and its number is no file of ours."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show_help() -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name, purpose in COMMANDS.items():
        table.add_row(f"  kernelmap {name}", purpose)
    console = Console()
    console.print("usage: kernelmap COMMAND ...", markup=False)
    console.print("\nFrom a few measured pairs (u, f) of a system to its hidden kernel.\n")
    console.print(table)
    console.print(
        "\n`kernelmap COMMAND --help` lists its options. Any command takes --max-memory GIGABYTES: how much of"
    )
    console.print("a file may be read; by default a quarter of the free memory, and at most 20 times the file's size.")
    console.print("`kernelmap --version` prints the version.")


def run(words: list[str]) -> int:
    """The exit code of a command."""
    name = words[0]
    if name == "--version":
        from importlib.metadata import version

        print(f"kernelmap {version('kernelmap')}")
        return 0
    if name not in COMMANDS:
        return fail(f"there is no command {name!r}; there are {', '.join(COMMANDS)}.")
    try:
        from kernelmap.core.errors import InputError
        from kernelmap.core.files.processes import end_with_named_parent

        end_with_named_parent()
        with loading(name):
            command = module_of(name)
    except ModuleNotFoundError as error:
        return missing(error)
    if _is_main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command.run(_limited(words[1:]))
    except InputError as error:
        return fail(str(error))
    except ModuleNotFoundError as error:
        return missing(error)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        return fail("there is not enough memory for this. Give fewer or smaller data, or free memory.")
    except OSError as error:
        return refused(error)
    return 0


def refused(error: OSError) -> int:
    """What the system does not allow, such as a full disk behind the output."""
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    where = f"{error.filename}: " if error.filename else ""
    return fail(f"{where}{error.strerror or error}. Nothing was half written; look at the place and try again.")


@contextmanager
def loading(name: str) -> Iterator[None]:
    """A line on a terminal while torch is imported, which may take seconds."""
    on_terminal = sys.stderr.isatty()
    if on_terminal:
        print(f"kernelmap {name}: loading ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if on_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def module_of(name: str) -> ModuleType:
    """The module of a command."""
    return import_module(f"kernelmap.cli.{'paper.' if name in OF_THE_PAPER else ''}{name.replace('-', '_')}")


def missing(error: ModuleNotFoundError) -> int:
    """A package that is not installed, and how to get it."""
    name = (error.name or "").partition(".")[0]
    if name in ("", "kernelmap"):
        raise error
    return fail(
        f"this needs the package {name}: pip install '{f'kernelmap[{EXTRAS[name]}]' if name in EXTRAS else name}'."
    )


def fail(sentence: str) -> int:
    """The sentence on standard error; where nobody can read it, the exit code remains."""
    from rich.console import Console
    from rich.text import Text

    from kernelmap.core.terminal import shown

    with suppress(OSError):
        Console(stderr=True, emoji=False).print(Text("error: ", "bold red") + Text(shown(sentence)), soft_wrap=True)
    return 2


def _limited(words: list[str]) -> list[str]:
    """Without --max-memory, which is kept for all that reads files, here and in processes that we start."""
    from kernelmap.cli.options import option
    from kernelmap.core.files.limits import VARIABLE, parse_gigabytes

    given = option(words, MAX_MEMORY)
    if given is None:
        return words
    parse_gigabytes(given)
    os.environ[VARIABLE] = given
    rest = [word for word in words if not word.startswith(f"{MAX_MEMORY}=")]
    if MAX_MEMORY in rest:
        place = rest.index(MAX_MEMORY)
        del rest[place : place + 2]
    return rest


def _is_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()


def _leave(signal_number: int = 0, frame: FrameType | None = None) -> None:
    """Ctrl-C, also while modules are being imported: one line. A helper leaves the line to its parent."""
    if "KERNELMAP_HELPER" not in os.environ:
        os.write(2, b"interrupted\n")
    if signal_number:
        os._exit(INTERRUPTED)
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
