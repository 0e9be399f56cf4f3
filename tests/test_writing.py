"""Targets that are no plain files, modes, what killed writers leave, and results that appear together."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, read_json, read_tensors, together, write_json, write_tensors
from kernelmap.core.files.together import MANIFEST, is_whole
from kernelmap.core.files.writing import temporary_name
from processes import python


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_json(pipe, {"a": 1})
    reader.join(10)
    assert json.loads(got[0]) == {"a": 1}
    assert pipe.is_fifo()


def test_standard_output_is_written_through(tmp_path):
    """Also where it is a file: what is printed before and after stays."""
    code = (
        "from kernelmap.core.files import write_json; print('before', flush=True); "
        "write_json('/dev/stdout', 7); print('after')"
    )
    assert python("-c", code).stdout.split() == ["before", "7", "after"]


def test_a_device_stays_a_device():
    write_json("/dev/null", {"a": 1})
    assert Path("/dev/null").is_char_device()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "file.json")
    write_json(tmp_path / "link.json", 1)
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "file.json") == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_an_existing_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file.safetensors"
    path.touch()
    path.chmod(mode)
    write_tensors(path, {"w": torch.ones(2)})
    assert path.stat().st_mode & 0o777 == mode


def test_the_umask_is_respected_and_never_changed(tmp_path, monkeypatch):
    old = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask of the process was changed"))
        write_tensors(tmp_path / "file.safetensors", {"w": torch.ones(2)})
    finally:
        monkeypatch.undo()
        os.umask(old)
    assert (tmp_path / "file.safetensors").stat().st_mode & 0o777 == 0o640


def test_file_and_directory_are_flushed_in_this_order(tmp_path, monkeypatch):
    done = []
    module = sys.modules["kernelmap.core.files.writing"]
    flush, replace = module.flush_to_disk, os.replace
    monkeypatch.setattr(module, "flush_to_disk", lambda path: (done.append(Path(path)), flush(path)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("renamed"), replace(a, b)))
    write_json(tmp_path / "file.json", 1)
    assert done[0].name.startswith(".kernelmap-")
    assert done[1:] == ["renamed", tmp_path]


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
    code = (
        "import os, sys; from kernelmap.core.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as path: path.write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert python("-c", code, tmp_path / "file.txt").returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    alive = tmp_path / temporary_name(".txt")
    alive.touch()
    with atomic_path(tmp_path / "file.txt") as path:
        path.write_text("whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([alive.name, "file.txt"])


def test_the_longest_name_can_be_written_and_longer_ones_are_refused(tmp_path):
    write_json(tmp_path / ("x" * 250 + ".json"), 1)
    with pytest.raises(InputError, match="File name too long"):
        write_json(tmp_path / ("x" * 300 + ".json"), 1)
    with pytest.raises(InputError, match="File name too long"):
        write_json(tmp_path / ("x" * 300) / "a.json", 1)


def test_json_is_strict(tmp_path):
    nan, inf = float("nan"), float("inf")
    write_json(tmp_path / "file.json", {"a": nan, "b": [1.5, inf, {"c": (-inf,)}]})
    assert read_json(tmp_path / "file.json") == {"a": None, "b": [1.5, None, {"c": [None]}]}
    (tmp_path / "file.json").write_text('{"a": NaN}')
    with pytest.raises(InputError, match="NaN is no number of JSON"):
        read_json(tmp_path / "file.json")


def test_equal_tensors_are_equal_files(tmp_path):
    """safetensors alone puts the metadata in any order."""
    words = {name: f'{name} "\\ \n é' for name in ("config", "run", "progress", "map")}
    for number in range(8):
        write_tensors(tmp_path / f"{number}", {"b": torch.ones(3), "a": torch.zeros(2, 2)}, words)
    assert len({(tmp_path / f"{number}").read_bytes() for number in range(8)}) == 1
    assert read_tensors(tmp_path / "0")[1] == words


def test_tensors_are_covered_by_a_checksum(tmp_path):
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"w": torch.arange(100.0)}, {"step": "7"})
    whole = path.read_bytes()
    for old, new in ((whole[-1:], b"\x01"), (b'"step":"7"', b'"step":"8"')):
        place = whole.rindex(old)
        path.write_bytes(whole[:place] + new + whole[place + len(old) :])
        with pytest.raises(InputError, match="does not match its checksum"):
            read_tensors(path)


def test_results_appear_together_or_not_at_all(tmp_path):
    out = tmp_path / "out"

    def fail() -> None:
        with together(out) as staging:
            write_json(staging / "a.json", 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
    with together(out) as staging:
        write_json(staging / "a.json", 1)
        assert not out.exists()
    assert is_whole(out)
    assert sorted(p.name for p in out.iterdir()) == ["a.json", MANIFEST]


def test_a_result_that_is_there_is_replaced_and_other_files_are_kept(tmp_path):
    for value in (1, 2):
        with together(tmp_path) as staging:
            write_json(staging / "a.json", value)
        (tmp_path / "mine.txt").write_text("mine")
    assert is_whole(tmp_path)
    assert read_json(tmp_path / "a.json") == 2
    write_json(tmp_path / "a.json", 3)
    assert not is_whole(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
