"""Files that are written whole or not at all, and read with helpful errors."""

import os

import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.files import atomic_path, read_json, read_tensors, write_json, write_tensors


def test_a_write_that_succeeds_replaces_the_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, failure):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half of")
            raise failure

    with pytest.raises(failure):
        write()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    with atomic_path(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_missing_directories_are_made(tmp_path):
    write_json(tmp_path / "a" / "b" / "c.json", [1])
    assert read_json(tmp_path / "a" / "b" / "c.json") == [1]


@pytest.mark.parametrize("below", ["file.h5", "deeper/file.h5"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("not a directory")
    with (
        pytest.raises(InputError, match=r"cannot write .*Choose another place"),
        atomic_path(tmp_path / "file" / below),
    ):
        pytest.fail("nothing should be written")
    assert os.listdir(tmp_path) == ["file"]


def test_json_comes_back(tmp_path):
    value = {"a": [1, 2.5, None], "b": {"c": "π"}}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json") == value


@pytest.mark.parametrize("content", [b'{"format": 1, "map"', b"", b"\xff\xfe\x00"])
def test_broken_json_is_refused(tmp_path, content):
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(InputError, match=r"file\.json is not valid JSON"):
        read_json(tmp_path / "file.json")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"expected a JSON file at .*absent\.json, but there is nothing"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(InputError, match=r"expected a safetensors file.*there is a directory"):
        read_tensors(tmp_path)


def test_tensors_come_back(tmp_path):
    tensors = {
        "w": torch.randn(3, 4).mT,
        "scalar": torch.tensor(2.0, dtype=torch.float64),
        "grad": torch.ones(2, requires_grad=True),
    }
    write_tensors(tmp_path / "file.safetensors", tensors, {"step": "7"})
    loaded, metadata = read_tensors(tmp_path / "file.safetensors")
    assert metadata == {"step": "7"}
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(loaded[name], tensor)
        assert loaded[name].dtype == tensor.dtype


def test_a_text_file_holds_no_tensors(tmp_path):
    (tmp_path / "file.safetensors").write_text("these are not the weights\n" * 10)
    with pytest.raises(InputError, match="not a readable safetensors file"):
        read_tensors(tmp_path / "file.safetensors")


@pytest.mark.parametrize("kept", [0.0, 0.05, 0.5, 0.99])
def test_tensors_that_were_cut_short_are_refused(tmp_path, kept):
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"w": torch.randn(40, 40)})
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(InputError, match="cut short"):
        read_tensors(path)
