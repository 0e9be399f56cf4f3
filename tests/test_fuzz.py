"""A damaged or odd file of any kind ends in a sentence or in a value, never in a traceback."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mutants_of_measurements import MEASUREMENTS
from mutants_of_models import MODELS
from mutation import mutant, outcome

KINDS = MEASUREMENTS | MODELS
MUTANTS = 15
"""Of each kind; `python tools/fuzz.py` makes thousands."""


@pytest.mark.parametrize("name", KINDS)
def test_a_good_file_is_accepted(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    assert outcome(KINDS[name], KINDS[name].write(tmp_path)) == "accepted"


@pytest.mark.parametrize("name", KINDS)
def test_mutants_end_in_a_sentence(name, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", "")

    @settings(max_examples=MUTANTS, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            assert outcome(KINDS[name], mutant(KINDS[name], Path(directory), seed)) in ("accepted", "refused")

    run()
