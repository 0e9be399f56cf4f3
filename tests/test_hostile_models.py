"""Models, checkpoints, runs and caches made to mislead, and places that cannot be written to."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import safetensors
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.files import file_sha256, read_json, write_json
from kernelmap.core.files.limits import check_count, check_seed
from kernelmap.core.files.tensors import CHECKSUM
from kernelmap.core.systems import SystemSet
from kernelmap.discovery import discover
from kernelmap.io import find_model, load_model, read_measurements, save_model
from kernelmap.io.models import shipped_models
from kernelmap.maps import NAOOptions
from kernelmap.paper.released import import_released
from kernelmap.problems.cache import cached
from kernelmap.problems.radial import RadialData
from kernelmap.training import Recipe
from mutants_of_measurements import mesh
from mutants_of_models import MODELS, released, train_short, two_systems
from processes import python


class TestModels:
    def test_a_shipped_name_is_not_shadowed(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        save_model("radial", load_model("nao-diverse")[0], {"problem": "mine"})
        assert find_model("radial").is_absolute()
        assert "write ./radial" in " ".join(capsys.readouterr().err.split())
        assert load_model("./radial")[1] == load_model(Path("radial"))[1] == {"problem": "mine"}

    @pytest.mark.parametrize("change", [{"layers": 10**9}, {"dk": 10**15}, {"hidden": [32, 10**12]}, {"d": 10**12}])
    def test_sizes_are_checked_before_anything_is_built(self, tmp_path, change):
        path = MODELS["config"].write(tmp_path)
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

    def test_weights_with_which_no_evidence_is_a_number(self, tmp_path):
        np.savez(tmp_path / "mine.npz", **mesh())
        model = load_model("kernel1d")[0]
        for name, weights in model.state_dict().items():
            weights.fill_(1.0 if name.endswith(("_std", "_mean")) else 1e30)
        with pytest.raises(InputError, match="evidence of these pairs is no number"):
            discover(model, read_measurements(tmp_path / "mine.npz").context)

    def test_layers_are_bounded(self):
        with pytest.raises(InputError, match="layers must be at most 1000"):
            NAOOptions(layers=999_999_999)

    @pytest.mark.parametrize("key", ["fcq_999999999_0.weight", "fcq_3_0.weight", "fcq_²_0.weight"])
    def test_layers_of_a_checkpoint_are_counted(self, tmp_path, key):
        torch.save(released() | {key: torch.ones(2, 4)}, tmp_path / "odd.ckpt")
        systems = two_systems()
        if "²" in key:
            assert import_released(tmp_path / "odd.ckpt", RadialData(systems, systems)).options.layers == 2
            return
        with pytest.raises(InputError, match="without gaps"):
            import_released(tmp_path / "odd.ckpt", RadialData(systems, systems))

    def test_a_tensor_that_is_larger_than_its_file(self, tmp_path):
        torch.save(released() | {"fck_0_0.bias": torch.zeros(1).expand(10**11)}, tmp_path / "odd.ckpt")
        with pytest.raises(InputError, match="--max-memory"):
            import_released(tmp_path / "odd.ckpt", RadialData(two_systems(), two_systems()))


class TestTraining:
    def test_a_model_is_not_overwritten(self, tmp_path):
        train_short(tmp_path, resume=False)
        before = file_sha256(tmp_path / "weights.safetensors")
        with pytest.raises(InputError, match=r"--resume, begin anew with --overwrite"):
            train_short(tmp_path, resume=False)
        (tmp_path / "state.safetensors").unlink()
        for resume in (False, True):
            with pytest.raises(InputError, match="holds a model already; begin anew with --overwrite"):
                train_short(tmp_path, resume)
        assert file_sha256(tmp_path / "weights.safetensors") == before

    def test_the_state_of_a_run_is_there_before_its_model(self, tmp_path, monkeypatch):
        """A run killed at its first checkpoint goes on."""
        from kernelmap.training import loop

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(loop, "save_model", killed)
        with pytest.raises(KeyboardInterrupt):
            train_short(tmp_path / "a", resume=False)
        monkeypatch.undo()
        train_short(tmp_path / "a", resume=True)
        train_short(tmp_path / "b", resume=False)
        hashes = [load_model(tmp_path / name)[0].state_dict() for name in "ab"]
        assert all(torch.equal(hashes[0][key], hashes[1][key]) for key in hashes[0])

    @pytest.mark.parametrize("seed", [-1, 2**63, 2**70])
    def test_seeds_are_bounded(self, seed):
        with pytest.raises(InputError, match="2\\^63"):
            Recipe(seed=seed)
        with pytest.raises(InputError, match="2\\^63"):
            two_systems().with_noise(0.1, seed)
        check_seed(2**63 - 1)

    @pytest.mark.parametrize("count", [0, -3, 100_000])
    def test_threads_and_processes_are_bounded(self, count):
        with pytest.raises(InputError, match="at least 1 and at most"):
            check_count(count, "--threads")


def test_swapped_labels_are_found(tmp_path, monkeypatch):
    """Names, and what systems are, belong to the checksum."""
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    path = MODELS["cache"].write(tmp_path)
    for key, value in (("names", '["b", "a"]'), ("about", '{"problem": "other"}')):
        with h5py.File(path, "a") as file:
            file.attrs[key] = value
        with pytest.raises(InputError, match="does not match its checksum"):
            SystemSet.load(path)
        with pytest.warns(UserWarning, match="generated again"):
            assert cached("systems.h5", tmp_path / "code", two_systems).names == ("a", "b")


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
    done = python("-c", code, tmp_path / "closed" / "file.npz")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_weights_have_a_checksum(name):
    with safetensors.safe_open(find_model(name) / "weights.safetensors", framework="pt") as file:
        assert CHECKSUM in (file.metadata() or {})
