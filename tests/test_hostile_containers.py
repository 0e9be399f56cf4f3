"""Well-formed files that mislead: entries twice, chunks too large or missing; results written over inputs."""

import os
import zipfile
import zlib

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from kernelmap.core.errors import InputError
from kernelmap.core.files import existing_file, open_hdf5, parse_json, read_values
from kernelmap.io import load_discovery, read_measurements
from kernelmap.problems.mechanics.parts import part_path, read_part
from mutants_of_measurements import MEASUREMENTS, mesh


@pytest.mark.parametrize("name", ["u.npy", "u"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_stands_twice_in_npz(tmp_path, name):
    np.savez(tmp_path / "mine.npz", **mesh())
    np.save(tmp_path / "other.npy", 7 * mesh()["u"])
    with zipfile.ZipFile(tmp_path / "mine.npz", "a") as archive:
        archive.write(tmp_path / "other.npy", name)
    with pytest.raises(InputError, match="holds u more than once"):
        read_measurements(tmp_path / "mine.npz")


def test_an_entry_that_stands_twice_in_mat(tmp_path):
    savemat(tmp_path / "mine.mat", mesh())
    savemat(tmp_path / "other.mat", {"u": 7 * mesh()["u"]})
    with (tmp_path / "mine.mat").open("ab") as file:
        file.write((tmp_path / "other.mat").read_bytes()[128:])
    with pytest.raises(InputError, match="holds u more than once"):
        read_measurements(tmp_path / "mine.mat")


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 2}}', "[-1e400]"])
def test_json_has_finite_numbers_and_each_key_once(text):
    with pytest.raises(InputError, match="not valid JSON"):
        parse_json(text, "mine.json")


def test_a_chunk_that_is_larger_than_its_data_is_not_unpacked(tmp_path):
    """Three rows of 121 numbers in a chunk of 128 MB, of which the file holds 130 kB."""
    columns = 2**24
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        data = file.create_dataset("u", (1, 121), "f8", maxshape=(1, None), chunks=(1, columns), compression="gzip")
        data.id.write_direct_chunk((0, 0), zlib.compress(bytes(8 * columns), 1))
    with open_hdf5(tmp_path / "mine.h5") as file, pytest.raises(InputError, match="a chunk of u would take 128 MB"):
        read_values(file, "u")


@pytest.mark.parametrize("chunks", [None, (1, 121)])
def test_data_that_were_not_written_to_their_end_are_no_zeros(tmp_path, chunks):
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file.update({name: values for name, values in mesh().items() if name != "u"})
        data = file.create_dataset("u", (3, 121), "f8", chunks=chunks)
        if chunks:
            data[:2] = mesh()["u"][:2]
    with pytest.raises(InputError, match="u was not written to its end"):
        read_measurements(tmp_path / "mine.h5")


def test_a_part_is_not_unpacked_beyond_its_size(tmp_path):
    u = np.zeros((300, 2, 10_000), np.float32)
    np.savez_compressed(part_path(tmp_path, 0), u=u, converged=np.ones(3, bool), identity="x")
    assert part_path(tmp_path, 0).stat().st_size < 4 * 3 * 2 * 10_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda *_: pytest.fail("it was unpacked"))
        assert read_part(tmp_path, 0, "plan", (3, 2, 10_000)) is None


def test_many_names_of_one_array_count_each(tmp_path):
    path = MEASUREMENTS["discovery"].write(tmp_path)
    with h5py.File(path, "a") as file:
        data = file.create_dataset("state/large", data=np.zeros(2**22), compression="gzip")
        for number in range(4):
            file[f"state/{number}"] = data
    with pytest.raises(InputError, match="what predicting needs would take"):
        load_discovery(path)


def test_a_result_is_not_written_over_what_it_is_made_from(kernelmap, tmp_path):
    discovery = MEASUREMENTS["discovery"].write(tmp_path)
    file = MEASUREMENTS["fields"].write(tmp_path)
    before = file.read_bytes()
    os.link(file, tmp_path / "linked.npz")
    for words in (
        ["predict", discovery, file, "--out", file],
        ["predict", discovery, file, "--out", tmp_path / "linked.npz"],
        ["discover", file, "--model", "darcy", "--out", tmp_path / "out", "--json", file],
    ):
        code, _, err = kernelmap(*words)
        assert (code, "would be overwritten" in err) == (2, True)
    assert file.read_bytes() == before


def test_a_pipe_is_not_read_and_said_to_be_one(tmp_path):
    os.mkfifo(tmp_path / "mine.npz")
    with pytest.raises(InputError, match="a device, a pipe or a socket"):
        existing_file(tmp_path / "mine.npz", "a file")


@pytest.mark.parametrize("lines", ["# radius = 3\n# radius = 4\n", "# u_name = rain\n# u_name = snow\n"])
def test_an_entry_that_stands_twice_in_a_table(tmp_path, lines):
    body = "".join(f"{i},{i * i % 7},{i}\n" for i in range(30))
    (tmp_path / "mine.csv").write_text(f"{lines}t,rain,f\n{body}")
    with pytest.raises(InputError, match="more than once"):
        read_measurements(tmp_path / "mine.csv")


def test_names_of_many_inputs_may_be_long_together(tmp_path):
    names = [f"gauge {i} at the river" for i in range(9)]
    body = "".join(f"{i}," + ",".join(str((i + j) ** 2 % 11) for j in range(10)) + "\n" for i in range(9))
    (tmp_path / "mine.csv").write_text("# radius = 2\n" + ",".join(["t", *names, "f"]) + "\n" + body)
    measured = read_measurements(tmp_path / "mine.csv")
    assert measured.labels["u_name"] == ", ".join(names)
