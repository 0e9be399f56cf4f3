"""Many files at once: killed and started again, one of them bad, nothing made twice."""

import contextlib
import csv
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelmap.report import discover_files

FILES, BAD = 6, 4


def write_files(folder: Path, count: int = FILES, bad: int | None = BAD) -> list[Path]:
    """K(r) = exp(-a r) on few radii, with another a in each file; in the bad one u has swapped axes."""
    paths = []
    for i in range(count):
        rng = np.random.default_rng(i)
        y = 0.25 * np.arange(1, 45)
        u = rng.normal(size=(40, 44))
        f = 0.25 * u @ np.exp(-(1 + i / 10) * y)
        paths.append(folder / f"run{i:02d}.npz")
        np.savez(paths[-1], y=y, u=u[:, :-1].T if i == bad else u, f=f)
    return paths


def finished(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("[!.]*/discovery.h5")}  # the others are half written


def start(paths: list[Path], model: str, out: Path) -> subprocess.Popen:
    words = ["discover", *map(str, paths), "--model", model, "--jobs", "2", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "kernelmap", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def running(group: int) -> list[str]:
    """Processes of a group that have not ended; those that nobody has waited for yet have."""
    fields = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields.append(path.read_text(errors="replace").rpartition(")")[2].split())
    return [state for state, _, own, *_ in fields if own == str(group) and state != "Z"]


def test_killed_and_started_again(small_model, tmp_path, kernelmap):
    paths, out = write_files(tmp_path), tmp_path / "out"
    first = start(paths, small_model, out)
    deadline = time.monotonic() + 300
    while len(finished(out)) < 2 and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    first.kill()
    first.communicate(timeout=600)  # its workers hold the pipes too, and end with it
    while running(first.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not running(first.pid)
    before = finished(out)
    assert 2 <= len(before) < FILES - 1
    code, printed, complaints = kernelmap("discover", *paths, "--model", small_model, "--jobs", 1, "--out", out)
    assert code == 2
    after = finished(out)
    assert len(after) == FILES - 1
    assert {path: after[path] for path in before} == before
    assert f"{FILES - 1} of {FILES} kernels found" in printed
    sentences = [line for line in complaints.splitlines() if line.startswith("error:")]
    assert len(sentences) == 1
    assert f"run{BAD:02d}.npz" in sentences[0]
    with (out / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == [path.name for path in paths]
    assert [bool(row["problem"]) for row in rows] == [i == BAD for i in range(FILES)]
    assert all(row["pairs"] == "40" and float(row["check_error"]) < 0.2 for row in rows if not row["problem"])
    assert all((path.parent / "report.html").exists() for path in after)


def test_other_data_under_the_same_name_are_found_anew(small_model, tmp_path):
    paths, out = write_files(tmp_path, count=2, bad=None), tmp_path / "out"
    discover_files(paths, small_model, out)
    before = finished(out)
    write_files(tmp_path, count=1, bad=None)
    np.savez(paths[1], **dict(np.load(paths[1])) | {"f": np.load(paths[0])["f"]})
    discover_files(paths, small_model, out)
    after = finished(out)
    changed = [path.parent.name for path in after if after[path] != before[path]]
    assert changed == ["run01"]


def test_a_cluster_does_the_work(small_model, tmp_path):
    """joblib's dask backend: tasks go to the workers of whoever is connected."""
    import joblib
    from distributed import Client

    paths = write_files(tmp_path, count=2, bad=None)
    with (
        Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client,
        joblib.parallel_config("dask"),
    ):
        rows = discover_files(paths, small_model, tmp_path / "out")
        counts: Any = client.run(lambda dask_worker: dask_worker.state.executed_count)
        executed = sum(counts.values())
    assert [row["problem"] for row in rows] == ["", ""]
    assert executed > 0
    assert len(finished(tmp_path / "out")) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a/run.npz", "b/run.npz"], "several files are named run"),
        (["a.npz", "b.npz", "--jobs", "0"], "--jobs, a number of processes"),
        (["a.npz", "b.npz", "--jobs", "100000"], "--jobs, a number of processes"),
        (["a.npz", "b.npz", "--json", "x.json"], "--json is for one file"),
        (["a.npz", "b.npz", "--model", "no-such"], "neither a model directory"),
        ([], "give one file of measurements or more"),
    ],
)
def test_bad_use(kernelmap, words, sentence):
    code, _, err = kernelmap("discover", *words)
    assert code == 2
    assert sentence in err
