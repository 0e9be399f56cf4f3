"""Commands say what they do: within a second, how far they are, and how long it will take."""

import os
import pty
import re
import sys
import time

import numpy as np
import pytest

from kernelmap import discover, load_model
from kernelmap.core import progress
from kernelmap.core.progress import listening, part, tracked, working
from made_discoveries import FIELDS, field_discovery


def test_parts_of_parts_are_fractions_of_all():
    heard = []
    with listening(lambda doing, done: heard.append((doing, round(done, 6)))):
        with part("reading", 0.0, 0.2):
            pass
        with part("", 0.2, 1.0), part("fitting", 0.0, 1.0):
            for _ in tracked(range(2)):
                with part("solving", 0.5, 1.0):
                    pass
    assert heard == [
        ("reading", 0.0),
        ("reading", 0.2),
        ("fitting", 0.2),
        ("fitting", 0.2),
        ("solving", 0.4),
        ("fitting", 0.6),
        ("solving", 0.8),
    ]


def test_nobody_needs_to_listen():
    with part("fitting", 0.0, 1.0):
        assert list(tracked([1, 2])) == [1, 2]


def test_a_discovery_tells_how_far_it_is():
    heard = []
    context = field_discovery(FIELDS["square"])[0].context
    with listening(lambda doing, done: heard.append((doing, done))):
        discover(load_model("darcy")[0], context)
    fractions = [done for _, done in heard]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] < 1
    assert len(heard) > 20
    assert {"Finding the kernel", "Checking it on pairs kept back"} <= {doing for doing, _ in heard}


def test_without_a_terminal_lines_come_after_a_second(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.2)
    with working("Reading"):
        pass
    assert capsys.readouterr().err == ""
    with working("Reading"), part("Fitting", 0.0, 1.0):
        for _ in tracked(range(7)):
            time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"Fitting: \d+%", lines[0])
    assert lines[-1] == "Fitting: 86%"


def test_items_tell_how_far_they_are_under_one_name(monkeypatch, capsys):
    """Without a terminal too; work inside them that tracks its own is a part of it, and opens no second one."""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    for _ in progress.progress(iter("ab"), "Solving", total=2):
        for _ in progress.progress(range(2), "Another"):
            time.sleep(0.6)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(", ")[0] for line in lines[:2]] == ["Solving: 25%", "Solving: 50%"]
    assert not any("Another" in line for line in lines)


def test_the_time_left_grows_while_a_step_takes_long():
    assert progress.left(10, 0.4) == pytest.approx(15)
    assert progress.left(100, 0.4) == pytest.approx(150)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal as POSIX systems have it")
def test_on_a_terminal_a_command_shows_a_bar(tmp_path):
    """Within a second it says something, and in the end its bar is wiped away. Starts torch, which takes seconds."""
    x = 0.1 * np.arange(-60, 61)
    u = np.random.default_rng(0).normal(size=x.size).cumsum()
    np.savez(tmp_path / "line.npz", x=x, u=u, f=np.where(np.abs(x) < 3, u, np.nan), radius=2.0)
    said, moments = b"", []
    start = time.monotonic()
    words = [sys.executable, "-m", "kernelmap", "discover", str(tmp_path / "line.npz"), "--out", str(tmp_path / "out")]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, words)
    while True:
        try:
            some = os.read(terminal, 4096)
        except OSError:
            break
        if not some:
            break
        said, moments = said + some, [*moments, time.monotonic() - start]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, said.decode()
    assert said.startswith(b"kernelmap discover: loading ...")
    assert b"left" in said
    assert b"Checking it on pairs kept back" in said
