"""Ctrl-C, full disks, odd terminals and odd names: one line, the right exit code, nothing lost."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from mutants_of_measurements import fields, mesh
from processes import Started, python

KERNELMAP = [sys.executable, "-m", "kernelmap"]
TRAIN = ["train", "radial", "--dx", "0.1", "--d", "20", "--setting", "sine", "--dk", "4", "--every", "1"]

MECHANICS = ["--specimens", "2", "--loads", "4", "--elements", "q1-28", "--jobs", "1"]


def written(directory: Path, **changes) -> Path:
    np.savez(directory / "mine.npz", **mesh() | changes)
    return directory / "mine.npz"


@pytest.mark.parametrize("after", ["threading", "numpy", "torch"])
def test_control_c_while_modules_are_imported(tmp_path, after):
    said = tmp_path / "said"
    with said.open("w") as file:
        command = [sys.executable, "-X", "importtime", *KERNELMAP[1:], "models"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
    # Before the program has begun nobody can answer for it: these come after its first module.
    begun = re.compile(rf"(?s)kernelmap\.cli\.main\n.*\b{after}\b.*?\n.*?\n")
    while not begun.search(said.read_text()) and started.poll() is None:
        time.sleep(0.001)
    started.send_signal(signal.SIGINT)
    started.wait(timeout=600)
    answer = [line for line in said.read_text().splitlines() if not line.startswith("import time:")]
    assert (started.returncode, answer) == (130, ["interrupted"])


def test_control_c_in_a_training_and_going_on(tmp_path):
    out = tmp_path / "model"
    command = ["-m", "kernelmap", *TRAIN, "--epochs", "5000", "--out", out]
    started = Started(*command)
    deadline = time.time() + 100
    while not (out / "config.json").exists() and time.time() < deadline:
        time.sleep(0.05)
    second = python(*command)
    assert second.returncode == 2
    assert f"process {started.pid} on" in " ".join(second.stderr.split())
    started.interrupt()
    done = started.done(timeout=600)
    said = [line for line in done.stderr.splitlines() if not re.match(r"Training: \d+%", line)]
    assert (done.returncode, said) == (130, ["interrupted"])
    assert not (tmp_path / "model.lock").exists()
    assert not [name for name in os.listdir(out) if name.startswith(".")]


def full_disk(directory: Path) -> str | None:
    """A disk of 3 MB at this place, or why there is none."""
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(directory)], capture_output=True, text=True
    )
    return None if done.returncode == 0 else done.stderr.strip()


def test_a_full_disk_ends_every_command_with_a_sentence(kernelmap, tmp_path):
    disk = tmp_path / "disk"
    if (why := full_disk(disk)) is not None:
        pytest.skip(f"no disk can be mounted here: {why}")
    try:
        with (disk / "filler").open("wb", buffering=0) as filler:
            _fill(filler)
        file = written(tmp_path)
        commands = [
            ["generate", "radial", "--dx", "0.1", "--out", disk / "radial.h5"],
            ["generate", "darcy", "--n", "5", "--out", disk / "darcy.h5"],
            ["generate", "mechanics", *MECHANICS, "--out", disk / "mechanics.h5"],
            [*TRAIN, "--epochs", "2", "--out", disk / "model"],
            ["discover", file, "--out", disk / "discovery"],
            ["discover", file, "--out", tmp_path / "fine", "--json", disk / "numbers.json"],
            ["evaluate", "nao-diverse", "radial", "--json", disk / "full" / "errors.json"],
            ["demo", "--out", disk / "demo"],
        ]
        for words in commands:
            code, _, err = kernelmap(*words)
            assert code == 2, (words, code, err)
            assert err.count("error: ") == 1, (words, err)
            assert "Traceback" not in err
        assert not list(disk.rglob("*.h5"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _fill(file) -> None:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass


def test_numbers_on_standard_output_are_strict_json(tmp_path):
    """--json /dev/stdout writes through; what is printed beside it goes on."""
    command = [*KERNELMAP, "discover", str(written(tmp_path)), "--out", str(tmp_path / "out"), "--json", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = done.stdout[: done.stdout.index("\n}\n") + 3]
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert Path("/dev/stdout").is_symlink()


def test_a_reader_that_has_gone_is_no_mistake(tmp_path):
    """As in `kernelmap discover FILE --json /dev/stdout | head -c 100`."""
    np.savez(tmp_path / "fields.npz", **fields())
    words = ["--model", "darcy", "--out", str(tmp_path / "out"), "--json", "/dev/stdout"]
    read, write = os.pipe()
    os.close(read)
    command = [*KERNELMAP, "discover", str(tmp_path / "fields.npz"), *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 1
    # Beside what it is doing, nothing is said.
    assert all(re.match(r"\w+ .*: \d+%", line) for line in done.stderr.splitlines())


def test_names_that_are_no_utf8_and_a_terminal_that_knows_ascii_only(tmp_path):
    odd = os.fsencode(tmp_path) + b"/m\xff\x1b[31m:smile:.npz"
    os.rename(written(tmp_path), odd)
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    out = os.fsencode(tmp_path) + b"/out:heart:\xfe"
    for words in ([b"check", odd], [b"discover", odd, b"--out", out]):
        command = [os.fsencode(word) for word in KERNELMAP] + words
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout
        assert b":smile:" in done.stdout or words[0] == b"discover"
        assert b"\xe2\x9d\xa4" not in done.stdout
    assert os.path.exists(out + b"/report.html")


def test_control_characters_of_entries_are_shown_escaped(kernelmap, tmp_path):
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["\x1b[2J:bomb:"] = 1
    code, _, err = kernelmap("check", tmp_path / "mine.h5")
    assert code == 2
    assert "\\x1b[2J:bomb:" in err
    assert "\x1b" not in err


def test_a_command_says_which_option_is_wrong(kernelmap, tmp_path):
    assert "number of gigabytes" in kernelmap("check", written(tmp_path), "--max-memory", "much")[2]
    assert kernelmap("check", written(tmp_path), "--max-memory=1")[0] == 0
    code, _, err = kernelmap("check", written(tmp_path), "--max-memory", "0.000001")
    assert (code, "give --max-memory" in " ".join(err.split())) == (2, True)
    os.environ.pop("KERNELMAP_MAX_MEMORY")
    code, _, err = kernelmap(*TRAIN, "--out", tmp_path / "x", "--threads", "100000")
    assert (code, "at most" in err) == (2, True)
    code, _, err = kernelmap("generate", "radial", "--dx", "0.1", "--out", tmp_path / ("x" * 300 + ".h5"))
    assert (code, "File name too long" in err) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words", ["--help > /dev/full", "--version > /dev/full", "nonsense 2> /dev/full", "nonsense 2>&-"]
)
def test_streams_that_are_full_or_closed(words):
    command = f"{sys.executable} -m kernelmap {words}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
