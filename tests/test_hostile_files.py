"""Files made to mislead: links to other files, bombs, values that overflow, sizes that cannot be."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import safetensors
import torch
from scipy.io import savemat

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.files import file_sha256, read_json, write_json
from kernelmap.core.files.limits import VARIABLE, check_count, check_seed, parse_gigabytes
from kernelmap.core.files.tensors import CHECKSUM
from kernelmap.core.systems import SystemSet
from kernelmap.discovery import discover
from kernelmap.io import find_model, load_model, read_measurements, save_model
from kernelmap.io.models import shipped_models
from kernelmap.paper.released import import_released
from kernelmap.problems.cache import cached
from kernelmap.problems.radial import RadialData
from kernelmap.training import Recipe
from mutation import KINDS, _mesh, _released, _systems, _train


def peak(path: Path) -> int:
    """Megabytes that reading a file adds in a process of its own; its sentence must be no traceback."""
    code = (
        "import resource, sys\nfrom kernelmap.io import read_measurements\nfrom kernelmap.core import InputError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_measurements(sys.argv[1])\nexcept InputError as error: print(error, file=sys.stderr)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


class TestHDF5OfOtherFiles:
    @pytest.fixture
    def file(self, tmp_path):
        with h5py.File(tmp_path / "other.h5", "w") as other:
            other["u"] = _mesh()["u"]
        with h5py.File(tmp_path / "mine.h5", "w") as file:
            file.update({name: values for name, values in _mesh().items() if name != "u"})
            yield file

    def refused(self, file: h5py.File, word: str) -> None:
        path = file.filename
        file.close()
        with pytest.raises(InputError, match=rf"u (is|lies in) .*{word}.*copy the data into this file"):
            read_measurements(path)

    def test_external_link(self, file):
        file["u"] = h5py.ExternalLink("other.h5", "u")
        self.refused(file, "link")

    def test_soft_link(self, file):
        file["u"] = h5py.SoftLink("/f")
        self.refused(file, "link")

    @pytest.mark.parametrize(("source", "name"), [("missing.h5", "u"), (".", "u"), ("mine.h5", "u"), ("other.h5", "u")])
    def test_virtual_data(self, file, source, name):
        layout = h5py.VirtualLayout((3, 121), "f8")
        layout[:] = h5py.VirtualSource(source, name, (3, 121))
        file.create_virtual_dataset("u", layout)
        self.refused(file, "virtual")

    def test_external_storage(self, file, tmp_path):
        (tmp_path / "raw").write_bytes(bytes(3 * 121 * 8))
        file.create_dataset("u", (3, 121), "f8", external=[(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)])
        self.refused(file, "external storage")

    def test_the_same_in_files_of_our_own(self, tmp_path):
        _systems().save(tmp_path / "systems.h5")
        with h5py.File(tmp_path / "systems.h5", "a") as file:
            del file["y"]
            file["y"] = h5py.SoftLink("/x")
        with pytest.raises(InputError, match="y is a link"):
            SystemSet.load(tmp_path / "systems.h5")

    def test_names_that_are_no_text(self, file):
        file["u"], path = _mesh()["u"], file.filename
        h5py.h5d.create(file.id, b"\xff\xfe", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((1,)))
        file.close()
        found = read_measurements(path)
        assert found.context.d > 2


class TestBombs:
    """A small file that would unpack to gigabytes."""

    def test_an_entry_that_is_not_needed_is_not_read(self, tmp_path):
        zeros = np.zeros((10_000, 10_000), np.uint8)
        savemat(tmp_path / "mine.mat", _mesh() | {"bomb": zeros}, do_compression=True)
        np.savez_compressed(tmp_path / "mine.npz", **_mesh(), bomb=zeros)
        for name in ("mine.mat", "mine.npz"):
            assert (tmp_path / name).stat().st_size < 5e6
            assert read_measurements(tmp_path / name).context.d > 2
        assert peak(tmp_path / "mine.mat") < 50

    def test_one_that_is_needed_is_refused_before_it_is_read(self, tmp_path):
        zeros = np.zeros((10_000, 10_000), np.uint8)
        savemat(tmp_path / "mine.mat", _mesh() | {"u": zeros}, do_compression=True)
        np.savez_compressed(tmp_path / "mine.npz", **_mesh() | {"u": zeros})  # pyright: ignore
        with h5py.File(tmp_path / "mine.h5", "w") as file:
            file.update({name: values for name, values in _mesh().items() if name != "u"})
            file.create_dataset("u", (10**6, 10**6), "f8", chunks=(1000, 1000))
        for name in ("mine.mat", "mine.npz", "mine.h5"):
            with pytest.raises(InputError, match="--max-memory"):
                read_measurements(tmp_path / name)
        assert peak(tmp_path / "mine.mat") < 50

    def test_headers_that_declare_more_than_there_is(self, tmp_path):
        np.savez(tmp_path / "mine.npz", **_mesh())
        with zipfile.ZipFile(tmp_path / "mine.npz", "a") as archive, archive.open("outside.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
        with pytest.raises(InputError, match="cut short or damaged"):
            read_measurements(tmp_path / "mine.npz")

    def test_the_user_decides(self, tmp_path, monkeypatch):
        np.savez(tmp_path / "mine.npz", **_mesh())
        monkeypatch.setenv(VARIABLE, "0.000001")
        with pytest.raises(InputError, match="give --max-memory"):
            read_measurements(tmp_path / "mine.npz")
        for word in ("0", "-1", "nan", "much"):
            with pytest.raises(InputError, match="number of gigabytes"):
                parse_gigabytes(word)

    def test_a_file_is_hashed_in_chunks(self, tmp_path):
        with (tmp_path / "large").open("wb") as file:
            file.truncate(2**28)
        code = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)\n"
            "from kernelmap.core.files import file_sha256; import kernelmap.core\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nfile_sha256(sys.argv[1])\n"
            "assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "large")], check=True)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e150])
@pytest.mark.parametrize("name", ["u", "f"])
def test_values_whose_squares_overflow_are_refused(tmp_path, name, scale):
    entries = _mesh()
    np.savez(tmp_path / "mine.npz", **entries | {name: entries[name] * scale})
    with pytest.raises(InputError, match=f"largest value of {name}.*another unit"):
        read_measurements(tmp_path / "mine.npz")
    good = read_measurements_of(tmp_path, entries)
    letter = name.upper()
    odd = Context(**{"U": good.U, "F": good.F, "y": good.y, "x": good.x} | {letter: getattr(good, letter) * scale})
    with pytest.raises(InputError, match="another unit"):
        discover(load_model("radial")[0], odd)


def read_measurements_of(directory: Path, entries: dict) -> Context:
    np.savez(directory / "good.npz", **entries)
    return read_measurements(directory / "good.npz").context


@pytest.mark.parametrize("radius", [1e308, 1e20, np.inf, np.nan, -1.0])
def test_radii_without_bound_are_refused(tmp_path, radius):
    np.savez(tmp_path / "mine.npz", **_mesh() | {"radius": np.array(radius), "outside": "zero"})
    with pytest.raises(InputError, match="radius"):
        read_measurements(tmp_path / "mine.npz")


@pytest.mark.parametrize("dtype", [">f8", "f16", ">i4"])
def test_contexts_of_other_machines_and_precisions(tmp_path, dtype):
    path = KINDS["context"].write(tmp_path)
    with h5py.File(path, "a") as file:
        values = file["U"][()]  # pyright: ignore
        del file["U"]
        file["U"] = np.round(values).astype(dtype)  # pyright: ignore
        values = file["F"][()]  # pyright: ignore
        del file["F"]
        file["F"] = np.round(values).astype(dtype)  # pyright: ignore
    if dtype == ">i4":
        with pytest.raises(InputError, match=r"floating-point|i32"):
            read_measurements(path)
    else:
        assert read_measurements(path).context.U.dtype == torch.float64


def test_an_empty_context_file_is_refused(tmp_path):
    with h5py.File(tmp_path / "context.h5", "w") as file:
        file.attrs["kernelmap"] = "context"
        for name in ("U", "F"):
            file[name] = h5py.Empty("f8")
    with pytest.raises(InputError, match="empty"):
        read_measurements(tmp_path / "context.h5")


class TestModels:
    def test_a_shipped_name_is_not_shadowed(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        save_model("radial", load_model("nao-diverse")[0], {"problem": "mine"})
        assert find_model("radial").is_absolute()
        assert "write ./radial" in " ".join(capsys.readouterr().err.split())
        assert load_model("./radial")[1] == load_model(Path("radial"))[1] == {"problem": "mine"}

    @pytest.mark.parametrize("change", [{"layers": 10**9}, {"dk": 10**15}, {"hidden": [32, 10**12]}, {"d": 10**12}])
    def test_sizes_are_checked_before_anything_is_built(self, tmp_path, change):
        path = KINDS["config"].write(tmp_path)
        config = read_json(path)
        config["options"] |= {key: v for key, v in change.items() if key != "d"}
        config["shape"] |= {key: v for key, v in change.items() if key == "d"}
        write_json(path, config)
        with pytest.raises(InputError, match=r"config\.json says"):
            load_model(path.parent)

    def test_a_kill_between_two_files_leaves_one_model(self, tmp_path, capsys):
        """The weights are new and config.json is old: the new configuration comes with the weights."""
        model = load_model("nao-diverse")[0]
        save_model(tmp_path, model, {"epoch": 1})
        old = (tmp_path / "config.json").read_text()
        save_model(tmp_path, model, {"epoch": 2})
        (tmp_path / "config.json").write_text(old)
        assert load_model(tmp_path)[1] == {"epoch": 2}
        assert "theirs is used" in " ".join(capsys.readouterr().err.split())

    @pytest.mark.parametrize("key", ["fcq_999999999_0.weight", "fcq_3_0.weight", "fcq_²_0.weight"])
    def test_layers_of_a_checkpoint_are_counted(self, tmp_path, key):
        torch.save(_released() | {key: torch.ones(2, 4)}, tmp_path / "odd.ckpt")
        systems = _systems()
        if "²" in key:
            assert import_released(tmp_path / "odd.ckpt", RadialData(systems, systems)).options.layers == 2
            return
        with pytest.raises(InputError, match="without gaps"):
            import_released(tmp_path / "odd.ckpt", RadialData(systems, systems))

    def test_a_tensor_that_is_larger_than_its_file(self, tmp_path):
        torch.save(_released() | {"fck_0_0.bias": torch.zeros(1).expand(10**11)}, tmp_path / "odd.ckpt")
        with pytest.raises(InputError, match="--max-memory"):
            import_released(tmp_path / "odd.ckpt", RadialData(_systems(), _systems()))


class TestTraining:
    def test_a_model_is_not_overwritten(self, tmp_path):
        _train(tmp_path, resume=False)
        before = file_sha256(tmp_path / "weights.safetensors")
        with pytest.raises(InputError, match=r"--resume, begin anew with --overwrite"):
            _train(tmp_path, resume=False)
        (tmp_path / "state.safetensors").unlink()
        for resume in (False, True):
            with pytest.raises(InputError, match="holds a model already; begin anew with --overwrite"):
                _train(tmp_path, resume)
        assert file_sha256(tmp_path / "weights.safetensors") == before

    def test_the_state_of_a_run_is_there_before_its_model(self, tmp_path, monkeypatch):
        """A run killed at its first checkpoint goes on."""
        from kernelmap.training import loop

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(loop, "save_model", killed)
        with pytest.raises(KeyboardInterrupt):
            _train(tmp_path / "a", resume=False)
        monkeypatch.undo()
        _train(tmp_path / "a", resume=True)
        _train(tmp_path / "b", resume=False)
        hashes = [load_model(tmp_path / name)[0].state_dict() for name in "ab"]
        assert all(torch.equal(hashes[0][key], hashes[1][key]) for key in hashes[0])

    @pytest.mark.parametrize("seed", [-1, 2**63, 2**70])
    def test_seeds_are_bounded(self, seed):
        with pytest.raises(InputError, match="2\\^63"):
            Recipe(seed=seed)
        with pytest.raises(InputError, match="2\\^63"):
            _systems().with_noise(0.1, seed)
        check_seed(2**63 - 1)

    @pytest.mark.parametrize("count", [0, -3, 100_000])
    def test_threads_and_processes_are_bounded(self, count):
        with pytest.raises(InputError, match="at least 1 and at most"):
            check_count(count, "--threads")


def test_swapped_labels_are_found(tmp_path, monkeypatch):
    """Names, and what systems are, belong to the checksum."""
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    path = KINDS["cache"].write(tmp_path)
    for key, value in (("names", '["b", "a"]'), ("about", '{"problem": "other"}')):
        with h5py.File(path, "a") as file:
            file.attrs[key] = value
        with pytest.raises(InputError, match="does not match its checksum"):
            SystemSet.load(path)
        with pytest.warns(UserWarning, match="generated again"):
            assert cached("systems.h5", tmp_path / "code", _systems).names == ("a", "b")


@pytest.mark.skipif(os.getuid() != 0, reason="another user's rights can only be taken by root")
def test_a_place_without_permission(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    code = (
        "import os, sys\nfrom kernelmap.core import InputError\n"
        "from kernelmap.io import load_model, read_measurements\n"
        "load_model('radial')\n"
        "from kernelmap.core.files import write_json\nos.setuid(65534)\n"
        "for job in (lambda: read_measurements(sys.argv[1]), lambda: load_model(sys.argv[1]), "
        "lambda: write_json(sys.argv[1], 1)):\n"
        "    try: job()\n    except InputError as error: print(error)"
    )
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "closed" / "file.npz")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_weights_have_a_checksum(name):
    with safetensors.safe_open(find_model(name) / "weights.safetensors", framework="pt") as file:
        assert CHECKSUM in (file.metadata() or {})
