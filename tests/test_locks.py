"""One writer at a time: of training directories, data sets, tables and discoveries."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelmap.core.errors import InputError
from kernelmap.core.files import locked
from kernelmap.core.files.parent import end_with_parent
from kernelmap.core.files.processes import Process, ending_with_us
from kernelmap.problems.mechanics import ForceField, Plan, bitmaps, generate
from kernelmap.problems.mechanics.parts import part_path
from processes import python

HOLD = (
    "import sys; from kernelmap.core.files import locked\nwith locked(sys.argv[1]): print('held', flush=True); input()"
)


def test_a_second_writer_is_told_who_holds_the_lock(tmp_path):
    target = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(InputError, match=rf"being written by process {holder.pid} on .*out\.lock"), locked(target):
            pytest.fail("two writers")
        holder.kill()
        holder.wait()
        assert (tmp_path / "out.lock").exists()
        with locked(target):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_broken_lock_is_taken_over_with_a_notice(tmp_path, capsys):
    here = Process.here()
    (tmp_path / "out.lock").write_text(json.dumps({"host": here.host, "pid": here.pid, "started": "1"}))
    with locked(tmp_path / "out"):
        assert json.loads((tmp_path / "out.lock").read_text()) == here.to_json()
    assert "which has ended, is taken over" in " ".join(capsys.readouterr().err.split())


def test_a_lock_of_another_machine_is_not_taken_over(tmp_path):
    (tmp_path / "out.lock").write_text(json.dumps({"host": "elsewhere/", "pid": 7, "started": "1"}))
    with pytest.raises(InputError, match="process 7 on elsewhere"), locked(tmp_path / "out"):
        pytest.fail("two writers")
    assert (tmp_path / "out.lock").exists()


def test_a_lock_that_says_nothing_is_free(tmp_path):
    (tmp_path / "out.lock").write_bytes(b"\xff[")
    with locked(tmp_path / "out"):
        pass


def test_the_lock_is_exclusive_within_a_process(tmp_path):
    with locked(tmp_path / "out"), pytest.raises(InputError, match="being written"), locked(tmp_path / "out"):
        pytest.fail("two writers")


def plan(amplitude: float) -> Plan:
    image = np.zeros((2, 4, 4), np.uint8)
    image[:, 1:3, 1:3] = 255
    return Plan(bitmaps(image), ForceField(amplitude=amplitude), 2, "q1-4")


def test_parts_of_another_plan_are_never_adopted(tmp_path, capsys):
    """As after a kill while parts were removed: the plan has gone and a part is left."""
    import h5py

    for name, amplitude in (("small", 0.01), ("large", 1.0)):
        generate(plan(amplitude), tmp_path / f"{name}.h5", jobs=1)
    from kernelmap.problems.mechanics import generation

    parts = tmp_path / "mixed.h5.parts"
    stop = generation._collect
    try:
        generation._collect = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            generate(plan(1.0), tmp_path / "mixed.h5", jobs=1)
    finally:
        generation._collect = stop
    (parts / "plan.json").unlink()
    part_path(parts, 1).write_bytes(b"damaged")
    generate(plan(0.01), tmp_path / "mixed.h5", jobs=1)
    with h5py.File(tmp_path / "small.h5") as good, h5py.File(tmp_path / "mixed.h5") as mixed:
        assert np.array_equal(good["displacement"][()], mixed["displacement"][()], equal_nan=True)  # pyright: ignore
    said = " ".join(capsys.readouterr().err.split())
    assert "belongs to another plan or is damaged" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["large.h5", "mixed.h5", "small.h5"]


def test_a_data_set_has_one_writer(tmp_path):
    with locked(tmp_path / "data.h5"), pytest.raises(InputError, match="being written by process"):
        generate(plan(1.0), tmp_path / "data.h5", jobs=1)


@pytest.mark.parametrize("count", [1, 2])
def test_a_discovery_holds_its_lock_from_start_to_end(tmp_path, monkeypatch, small_model, count):
    """A second one that starts while the first is still looking for the kernel is refused, and loses nothing."""
    from kernelmap.report import discover_file, discover_files, results

    files = [tmp_path / f"run{i}.npz" for i in range(count)]
    for file in files:
        np.savez(file, y=0.5 * np.arange(1, 23), u=np.eye(22), f=np.ones(22))
    refusals = []

    def run() -> None:
        out = tmp_path / "out"
        discover_file(files[0], small_model, out) if count == 1 else discover_files(files, small_model, out, jobs=1)

    def looking(*words):
        with pytest.raises(InputError, match=rf"being written by process {os.getpid()} on") as refusal:
            run()
        refusals.append(refusal)
        return discover(*words)

    discover = results.discover
    monkeypatch.setattr(results, "discover", looking)
    run()
    assert len(refusals) == count
    assert len(list((tmp_path / "out").rglob("discovery.h5"))) == count
    assert not list(tmp_path.rglob("*.lock"))


def test_a_helper_ends_with_its_parent(tmp_path):
    """The parent is killed; its helper, busy in a loop, is gone soon after."""
    code = (
        "import os, sys, time\nfrom kernelmap.core.files.parent import end_with_parent\n"
        "parent = os.getpid()\nchild = os.fork()\n"
        "if child == 0:\n    end_with_parent(parent)\n    while True: time.sleep(0.01)\n"
        "print(child, flush=True)\ntime.sleep(1)\nos.kill(parent, 9)"
    )
    child = int(python("-c", code).stdout)
    for _ in range(50):
        if not Path(f"/proc/{child}").exists():
            break
        import time

        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


def test_a_worker_watches_its_parent_before_it_imports_torch():
    """A worker whose parent is killed while it imports, for seconds, is left behind no longer than any other."""
    begin = pickle.dumps(ending_with_us())
    code = "import pickle, sys, threading; begin = pickle.load(sys.stdin.buffer)\n"
    code += "begin['initializer'](*begin['initargs']); print(*sys.modules, *[t.name for t in threading.enumerate()])"
    done = subprocess.run([sys.executable, "-c", code], input=begin, capture_output=True, check=True)
    assert b"end-with-parent" in done.stdout.split()
    assert not {b"torch", b"kernelmap"} & set(done.stdout.split())


def test_a_helper_that_is_an_orphan_already_ends_at_once():
    child = os.fork()
    if child == 0:
        end_with_parent(os.getppid() + 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_the_root_of_all_files_is_no_place_for_results():
    with pytest.raises(InputError, match="cannot write /: all files"), locked("/"):
        pass
