"""A user's own systems: three lines of numpy, then train, evaluate, discover and predict, in every format of files."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from jaxtyping import config
from scipy.io import savemat

from kernelmap import InputError, Recipe, SystemSet, discover, evaluate, load_model, read_measurements, train
from kernelmap.io import read_systems
from kernelmap.maps import NAOOptions

Y, X = np.linspace(0, 1, 21), np.linspace(0, 1, 11)
WEIGHTS = np.gradient(Y) * np.where((Y == 0) | (Y == 1), 0.5, 1)


@pytest.fixture(autouse=True)
def as_installed(monkeypatch):
    """Without the type checks of the test run, which would come before the sentences users see."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


def family(S: int, P: int = 100, seed: int = 0) -> dict[str, np.ndarray]:
    """K(x, y) = exp(-|x - y| / l), with another l in every system."""
    rng = np.random.default_rng(seed)
    kernels = np.exp(-np.abs(X[:, None] - Y) / rng.uniform(0.1, 0.5, (S, 1, 1)))
    u = rng.normal(size=(S, P, 5)) @ np.cos(np.pi * np.arange(5)[:, None] * Y)
    return {"y": Y, "x": X, "u": u, "f": np.einsum("smn,n,spn->spm", kernels, WEIGHTS, u), "kernels": kernels}


def write(path: Path, **entries) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **entries)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, values in entries.items():
                file[name] = values
    else:
        savemat(path, entries)
    return path


@pytest.mark.parametrize(("suffix", "epochs"), [(".npz", 60), (".h5", 1), (".mat", 1)])
def test_the_commands(kernelmap, tmp_path, suffix, epochs):
    """On 30 systems with 100 pairs each; the map that is trained for long knows more of a new one than nothing."""
    data, more, new = (tmp_path / f"{name}{suffix}" for name in ("systems", "more", "new"))
    write(data, **{k: v for k, v in family(30).items() if k != "kernels"})
    write(more, **family(4, seed=1))
    one = family(1, seed=2)
    write(new, y=Y, x=X, u=one["u"][0], f=one["f"][0])
    model, out = tmp_path / "model", tmp_path / "out"
    words = ["--map", "nao", "--d", 25, "--epochs", epochs, "--out", model]
    code, printed, err = kernelmap("train", "own", "--data", data, *words)
    assert code == 0, err
    assert f"{epochs} epochs" in printed or epochs == 1
    code, _, err = kernelmap("evaluate", model, "own", "--data", more, "--json", tmp_path / "errors.json")
    assert code == 0, err
    errors = json.loads((tmp_path / "errors.json").read_text())
    assert set(errors["systems"]) == {f"system {i}" for i in range(4)}
    assert epochs == 1 or np.mean([one["operator_error_heldout"] for one in errors["systems"].values()]) < 0.8
    assert all(one["kernel_error"] is not None for one in errors["systems"].values())
    code, _, err = kernelmap("discover", new, "--model", model, "--out", out, "--json", tmp_path / "found.json")
    assert code == 0, err
    found = json.loads((tmp_path / "found.json").read_text())
    assert (np.shape(found["kernel"]), found["std"]) == ((11, 21), None)
    assert found["check"]["pairs"] == 75
    assert found["check"]["coverage"] > 0.85
    code, _, err = kernelmap("predict", out / "discovery.h5", new, "--out", tmp_path / "pred.npz")
    assert code == 0, err
    with np.load(tmp_path / "pred.npz") as predicted:
        assert predicted["mean"].shape == predicted["std"].shape == (100, 11)


def test_the_same_from_python(tmp_path):
    entries = family(6, P=40)
    write(tmp_path / "systems.npz", **entries)
    systems = read_systems(tmp_path / "systems.npz")
    assert isinstance(systems, SystemSet)
    np.testing.assert_allclose(systems.y.weights.numpy(), WEIGHTS)
    recipe = Recipe(epochs=2, every=1)
    progress = train("nao", NAOOptions(dk=2), systems, 10, recipe, tmp_path / "model")
    assert progress.epoch == 2
    model, about = load_model(tmp_path / "model")
    assert about["d"] == 10
    assert set(evaluate(model, systems, 10)["systems"]) == set(systems.names)
    write(tmp_path / "one.npz", y=Y, x=X, u=entries["u"][0], f=entries["f"][0])
    found = discover(model, read_measurements(tmp_path / "one.npz").context)
    assert found.kernel.values.shape == (11, 21)


def test_training_never_reads_the_kernels(kernelmap, tmp_path):
    entries = family(3, P=20)
    weights = []
    for name, kernels in (("true", entries["kernels"]), ("false", 0 * entries["kernels"])):
        data = write(tmp_path / f"{name}.npz", **entries | {"kernels": kernels})
        out = tmp_path / name
        words = ["--map", "nao", "--d", 5, "--epochs", 2, "--out", out]
        assert kernelmap("train", "own", "--data", data, *words)[0] == 0
        weights.append(load_model(out)[0].state_dict())
    for tensors in zip(*(state.values() for state in weights), strict=True):
        assert torch.equal(*tensors)


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".mat"])
class TestShapes:
    def read(self, tmp_path: Path, suffix: str, **entries) -> SystemSet:
        return read_systems(write(tmp_path / f"systems{suffix}", **entries))

    def test_shared_inputs(self, tmp_path, suffix):
        entries = family(3, P=8)
        systems = self.read(tmp_path, suffix, **entries | {"u": entries["u"][0]})
        assert systems.shares_inputs
        assert (systems.u.shape, systems.f.shape) == ((1, 8, 21), (3, 8, 11))

    def test_one_output_point(self, tmp_path, suffix):
        entries = family(3, P=8)
        systems = self.read(tmp_path, suffix, y=Y, u=entries["u"], f=entries["f"][..., 0])
        assert systems.f.shape == (3, 8, 1)
        assert systems.x.is_point
        again = self.read(tmp_path, suffix, y=Y, u=entries["u"], f=entries["f"][..., :1])
        assert torch.equal(systems.f, again.f)

    def test_names_and_kernels(self, tmp_path, suffix):
        entries = family(3, P=8)
        systems = self.read(tmp_path, suffix, **entries, names=["a", "bc", "d"])
        assert systems.names == ("a", "bc", "d")
        assert systems.kernels is not None
        np.testing.assert_allclose(systems.kernels.numpy(), entries["kernels"])

    def test_points_of_a_plane(self, tmp_path, suffix):
        """A uniform mesh has the weights of its cells; other points need weights."""
        axis = np.linspace(0, 1, 4)
        plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        u = np.random.default_rng(0).normal(size=(2, 5, 16))
        systems = self.read(tmp_path, suffix, y=plane, x=plane, u=u, f=u)
        np.testing.assert_allclose(systems.y.weights.numpy(), 1 / 9)
        assert systems.x.dim == 2
        weights = np.arange(1.0, 17)
        systems = self.read(tmp_path, suffix, y=plane**2, x=plane**2, u=u, f=u, weights=weights)
        np.testing.assert_allclose(systems.x.weights.numpy(), weights)

    def test_one_system_with_one_output_is_a_context(self, tmp_path, suffix):
        entries = family(1, P=8)
        path = write(tmp_path / f"one{suffix}", y=Y, u=entries["u"][0], f=entries["f"][0, :, 0])
        context = read_measurements(path).context
        assert (context.U.shape, context.F.shape) == ((21, 8), (1, 8))
        np.testing.assert_allclose(context.U.numpy(), entries["u"][0].T)


def test_files_of_systemset_save_are_read(tmp_path):
    systems = read_systems(write(tmp_path / "systems.npz", **family(2, P=4)))
    systems.save(tmp_path / "systems.h5")
    assert read_systems(tmp_path / "systems.h5").checksum() == systems.checksum()


def few(**changes) -> dict:
    entries = family(3, P=8) | changes
    return {name: values for name, values in entries.items() if values is not None}


def bad(name: str, value: float = np.nan) -> np.ndarray:
    values = few()[name].copy()
    values.flat[0] = value
    return values


BAD = {
    "no u": (few(u=None), "Add u; capitals matter"),
    "capitals": ({"U": Y, "F": Y, "y": Y}, "got F, U, y. Add u, f"),
    "NaN in u": (few(u=bad("u")), r"u holds 1 value\(s\) that are NaN"),
    "NaN in f": (few(f=bad("f", np.inf)), r"f holds 1 value\(s\) that are NaN or infinite"),
    "NaN in y": (few(y=bad("y")), r"y holds 1 value\(s\) that are NaN"),
    "NaN in kernels": (few(kernels=bad("kernels")), r"kernels holds 1 value\(s\)"),
    "u by columns": (few(u=few()["u"].swapaxes(1, 2)), r"u must have shape.*got \(3, 21, 8\).*rows are pairs here"),
    "f by columns": (few(f=few()["f"].swapaxes(1, 2)), r"f must have shape.*got \(3, 11, 8\).*rows are pairs here"),
    "a vector for u": (few(u=Y), r"u must have shape \(P, 21\) or \(S, P, 21\).*got \(21,\)"),
    "pairs disagree": (few(f=few()["f"][:, :7]), "u holds 8 pairs: every u needs its f"),
    "systems disagree": (few(f=few()["f"][:2]), r"u holds 3 systems but f holds 2; give u as \(S, P, N\)"),
    "x is missing": (few(x=None), "For several output points give x, the M points of f"),
    "x is of another size": (few(x=X[:-1]), r"f must have shape \(P, M\) = \(8, 10\)"),
    "y is of another size": (few(y=Y[:-1]), r"u must have shape \(P, 20\)"),
    "y decreases": (few(y=-Y), "neither increasing on a line nor a uniform mesh; give weights"),
    "axes of y": (few(y=np.stack([Y, Y])), r"y has shape \(2, 21\). Its axes seem swapped: points go first"),
    "y is a cube": (few(y=np.ones((2, 3, 4))), r"y must have shape \(n,\) or \(n, dim\)"),
    "weights disagree": (few(weights=np.ones(20)), "y holds 21 points but weights holds 20"),
    "weights below 0": (few(weights=-np.ones(21)), "weights must be positive"),
    "too few names": (few(names=["a", "b"]), r"names must be 3 different texts.*got \['a', 'b'\]"),
    "a name twice": (few(names=["a", "b", "a"]), "names must be 3 different texts"),
    "kernels transposed": (few(kernels=few()["kernels"].swapaxes(1, 2)), r"\(3, 11, 21\), got .*axes seem swapped"),
    "kernels of other size": (
        few(kernels=np.ones((3, 11, 20))),
        r"kernels must have shape .* = \(3, 11, 21\)",
    ),
    "text": (few(f=np.full((3, 8, 11), "a")), "f must be an array of real numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(kernelmap, tmp_path, case):
    entries, sentence = BAD[case]
    path = write(tmp_path / "mine.npz", **entries)
    with pytest.raises(InputError, match=rf"mine\.npz: .*{sentence}"):
        read_systems(path)
    code, _, err = kernelmap("train", "own", "--data", path, "--out", tmp_path / "model")
    assert code == 2
    assert err.startswith("error: ")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("case", [case for case in BAD if case != "text"])
@pytest.mark.parametrize("suffix", [".h5", ".mat"])
def test_what_is_wrong_is_said_in_every_format(tmp_path, suffix, case):
    with pytest.raises(InputError, match=r"mine\.\w+: .{20}"):
        read_systems(write(tmp_path / f"mine{suffix}", **BAD[case][0]))


def test_what_own_refuses(kernelmap, tmp_path):
    assert "expected a file of systems" in kernelmap("train", "own", "--data", tmp_path / "no.npz", "--out", "x")[2]
    path = write(tmp_path / "systems.npz", **family(2, P=8))
    code, _, err = kernelmap("generate", "own", "--data", path, "--out", tmp_path / "out.h5")
    assert (code, "not generated" in err) == (2, True)
    assert "too few to keep one for validation" in kernelmap("train", "own", "--data", path, "--d", 8, "--out", "x")[2]
    code, _, err = kernelmap("discover", path)
    assert (code, "which is 2 systems; here one is expected" in err) == (2, True)


def test_pairs_that_are_too_few_for_an_order_free_map(kernelmap, tmp_path):
    """The message has the d that was asked for, and the pairs that are predicted besides."""
    path = write(tmp_path / "systems.npz", **family(2, P=40))
    command = ("train", "own", "--data", path, "--map", "set-nao", "--out", tmp_path / "x", "--d")
    assert "40 pairs give 1 context(s) of d = 15 and 20 pairs to predict" in kernelmap(*command, 15)[2]
    assert "too few for contexts of d = 30 and the 20 others" in kernelmap(*command, 30, "--random-draws")[2]
