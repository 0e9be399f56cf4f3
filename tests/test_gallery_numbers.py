"""The gallery's files run, and what they say is so. Each runs as a user runs it: faster than with our checks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "gallery"


@pytest.fixture
def printed(tmp_path):
    def run(name: str) -> str:
        command = [sys.executable, "-W", "ignore", str(GALLERY / f"{name}.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    return run


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(group) for group in found.groups()]


def test_the_brain_responds_after_six_seconds_and_nitime_predicts_no_better(printed):
    said = printed("hemodynamic")
    lag, height, band = numbers(r"largest (\d+) s after an event: ([\d.]+) ± ([\d.]+)", said)
    assert 4 <= lag <= 8
    assert height > band > 0
    ours, theirs, inside = numbers(r"kernelmap ([\d.]+), nitime's FIR ([\d.]+); inside our 95 % band ([\d.]+)%", said)
    assert ours >= theirs > 0.2
    assert inside > 90


def test_a_nonlocal_bar_from_noisy_displacements(printed):
    said = printed("waves")
    (inside,) = numbers(r"; (\d+)% of K inside", said)
    error, _ = numbers(r"error of K ([\d.]+)%; of the classical estimate \(DARTR\) ([\d.]+)%", said)
    assert inside > 90
    assert error < 10


def test_opinions_of_a_group_asked_ten_times_say_what_others_will_agree_on(printed):
    said = printed("particles")
    (inside,) = numbers(r"; (\d+)% of K inside", said)
    ours, _, squares = numbers(r"error of K ([\d.]+)%; of DARTR ([\d.]+)%; of least squares ([\d.]+)%", said)
    assert inside > 90
    assert ours < min(5, squares)
    for moved, missed in re.findall(r"move by ([\d.]+); at the end we miss them by ([\d.]+)", said):
        assert float(missed) < 0.05 * float(moved)
