"""The authors' released data and checkpoints: what this package makes of them, and their formulas written out."""

import numpy as np
import pytest
import torch
from torch.nn.functional import leaky_relu, linear

from kernelmap.core.errors import InputError
from kernelmap.core.systems import strided_draws
from kernelmap.evaluation.evaluate import evaluate
from kernelmap.paper.released import import_released
from kernelmap.problems.radial import RadialData, radial, radial_systems
from kernelmap.problems.radial.inputs import two_waves
from kernelmap.problems.radial.kernels import test_kernels as kernels_for_testing
from kernelmap.problems.radial.kernels import training_kernels

FAMILIES = {"cos": "cosine", "poly": "polynomial", "sine": "sine"}


def test_every_released_response_is_reproduced(reference):
    data = radial("diverse")
    files = sorted((reference / "released").glob("f_*.npy"))
    assert len(files) == 17
    for file in files:
        _, family, eta = file.stem.split("_")
        name = "id" if file.stem == "f_sine_5" else f"{FAMILIES[family]}-{eta}"
        part = data.test if name == "id" else data.train
        ours, theirs = part.f[part.names.index(name)].numpy(), np.load(file)
        assert ours.shape == theirs.shape == (4530, 1)
        assert np.linalg.norm(ours - theirs) < 3e-6 * np.linalg.norm(theirs), name


def test_the_standardised_sample_is_reproduced(reference):
    data = radial("sine")
    model = import_released(reference / "released" / "nao_dk10_sine.ckpt", data)
    system = torch.tensor([data.train.names.index("sine-6")])
    context = data.train.batch(strided_draws(4530, 302)[:1], system)
    u = ((context.U - model.u_mean) / model.u_std)[0, 0].numpy()
    f = ((context.F - model.f_mean) / model.f_std)[0, 0].numpy()
    theirs = np.load(reference / "released" / "normalized_sample_0.npy")
    assert np.linalg.norm(u - theirs[:880]) < 1e-6 * np.linalg.norm(theirs[:880])
    assert np.linalg.norm(f - theirs[880:]) < 1e-6 * np.linalg.norm(theirs[880:])


@pytest.mark.parametrize(
    ("name", "setting", "parameters", "operator", "kernel"),
    [
        ("nao_dk10_sine", "sine", 18843, (1.476, 8.105, 221.045), (12.06, 15.81, 439.91)),
        ("nao_dk20_diverse", "diverse", 30963, (1.640, 3.253, 3.582), (10.89, 18.00, 16.34)),
    ],
)
def test_released_checkpoints_have_the_papers_errors(reference, name, setting, parameters, operator, kernel):
    """In percent. Three untrained scalars are not in the paper's parameter counts."""
    data = radial(setting)
    model = import_released(reference / "released" / f"{name}.ckpt", data)
    report = evaluate(model, data.test, 302)
    assert report["parameters"] == parameters + 3
    for system, context_error, kernel_error in zip(("id", "ood1", "ood2"), operator, kernel, strict=True):
        errors = report["systems"][system]
        assert 100 * errors["operator_error_context"] == pytest.approx(context_error, rel=0, abs=0.01)
        assert 100 * errors["kernel_error"] == pytest.approx(kernel_error, rel=0, abs=0.1)
        assert errors["kernel_error_pooled"] < errors["kernel_error"]


def random_checkpoint(d: int, dk: int, hidden: tuple[int, int] = (32, 64), seed: int = 0) -> dict[str, torch.Tensor]:
    """A state dict of the released form with small random weights."""
    generator = torch.Generator().manual_seed(seed)
    layers = {f"fc{kind}_{layer}_0": (dk, d) for kind in "qk" for layer in (0, 1)}
    sizes = (1, *hidden, 1)
    for mlp in ("kernel", "fnw", "fnb"):
        layers |= {f"{mlp}.layers.{2 * i}": (sizes[i + 1], sizes[i]) for i in range(3)}
    state = {}
    for name, (rows, columns) in layers.items():
        scale = columns**-0.5
        state[f"{name}.weight"] = scale * torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        state[f"{name}.bias"] = scale * torch.randn(rows, generator=generator, dtype=torch.float64)
    return state


@pytest.fixture(scope="module")
def small_data() -> RadialData:
    train = {name: training_kernels("released")[name] for name in ("sine-1", "cosine-2", "polynomial-3")}
    systems = [
        radial_systems(kernels, two_waves("released"), dx=0.1) for kernels in (train, kernels_for_testing("released"))
    ]
    return RadialData(train=systems[0], test=systems[1])


def written_out(state: dict[str, torch.Tensor], data: RadialData, draw: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
    """K(r) by the released model's formulas, with its tokens dx g[u] and the attention matrices built."""
    N, dx = 110, 0.1
    stored = dx * data.train.u[0]
    # Every training system repeats the inputs; one mean and one standard deviation over all samples.
    repeated = torch.cat([stored.flatten()] * len(data.train.names))
    u_scale, f_scale = repeated.std() + 1e-5, data.train.f.std() + 1e-5
    tokens = torch.cat(
        [(stored[draw].T - repeated.mean()) / u_scale, ((f[draw] - data.train.f.mean()) / f_scale)[None]]
    )
    z, h = torch.linspace(-1, 1, N, dtype=torch.float64)[:, None], 2 / (N - 1)

    def mlp(name: str) -> torch.Tensor:
        values = z
        for layer in (0, 2, 4):
            values = linear(values, state[f"{name}.layers.{layer}.weight"], state[f"{name}.layers.{layer}.bias"])
            values = leaky_relu(values) if layer < 4 else values
        return values

    def attention(layer: int, tokens: torch.Tensor) -> torch.Tensor:
        q, k = (linear(tokens, state[f"fc{c}_{layer}_0.weight"], state[f"fc{c}_{layer}_0.bias"]) for c in "qk")
        return q @ k.T / q.shape[1] ** 0.5

    w = torch.cat([mlp("fnw"), torch.tensor([[-0.6915232539176941]], dtype=torch.float64)])
    b = torch.cat([mlp("fnb"), torch.tensor([[-0.3062370717525482]], dtype=torch.float64)])
    update = h * attention(0, tokens) @ tokens
    tokens = tokens + b + w * (update - update.mean(dim=0))
    A = attention(1, tokens)
    kernel = h**2 * mlp("kernel").T @ A[:N, :N] + h * 0.2942022979259491 * A[N:, :N]
    return kernel[0] * f_scale / u_scale


@pytest.mark.parametrize(("d", "dk"), [(14, 3), (30, 8)])
def test_an_imported_checkpoint_is_the_released_formulas(tmp_path, small_data, d, dk):
    state = random_checkpoint(d, dk)
    torch.save(state, tmp_path / "random.ckpt")
    model = import_released(tmp_path / "random.ckpt", small_data)
    assert (model.shape.d, model.options.dk, model.options.layers) == (d, dk, 2)
    test = small_data.test
    draw = strided_draws(test.pairs, d)[3]
    with torch.no_grad():
        ours = model(test.batch(draw[None], torch.tensor([1]))).values[0, 0, 0]
    theirs = written_out(state, small_data, draw, test.f[1, :, 0])
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-9


def test_a_checkpoint_of_another_width_is_imported(tmp_path):
    torch.save(random_checkpoint(302, 5), tmp_path / "narrow.ckpt")
    data = radial("sine")
    model = import_released(tmp_path / "narrow.ckpt", data)
    assert model.parameter_count == 12783 + 3
    context = data.test.batch(strided_draws(4530, 302)[:2], torch.tensor([0]))
    with torch.no_grad():
        values = model(context).values
    assert values.shape == (2, 1, 1, 880)
    assert torch.isfinite(values).all()


def test_single_precision_checkpoints_are_imported_in_double(tmp_path, small_data):
    state = random_checkpoint(14, 3)
    torch.save({name: value.float() for name, value in state.items()}, tmp_path / "single.ckpt")
    model = import_released(tmp_path / "single.ckpt", small_data)
    assert {value.dtype for value in model.state_dict().values()} == {torch.float64}


def test_entries_that_are_no_weights_are_ignored(tmp_path, small_data):
    state = random_checkpoint(14, 3)
    torch.save(state | {"epoch": 3}, tmp_path / "more.ckpt")
    model = import_released(tmp_path / "more.ckpt", small_data)
    assert torch.equal(model.state_dict()["w_u.parts.0.4.weight"], state["kernel.layers.4.weight"])


def test_a_text_file_is_no_checkpoint(tmp_path, small_data):
    (tmp_path / "notes.ckpt").write_text("weights: see the other file")
    with pytest.raises(InputError, match=r"notes\.ckpt .* checkpoint that can be read safely"):
        import_released(tmp_path / "notes.ckpt", small_data)


def test_a_missing_checkpoint_is_named(tmp_path, small_data):
    with pytest.raises(InputError, match=r"expected a released checkpoint at .*absent\.ckpt"):
        import_released(tmp_path / "absent.ckpt", small_data)


class Dangerous:
    """Pickles to a call."""

    def __reduce__(self):
        return print, ("this must not run",)


def test_no_code_in_a_checkpoint_is_run(tmp_path, small_data, capfd):
    torch.save({"fcq_0_0.weight": Dangerous()}, tmp_path / "bad.ckpt")
    with pytest.raises(InputError, match="can be read safely"):
        import_released(tmp_path / "bad.ckpt", small_data)
    assert "this must not run" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "foreign",
    [torch.nn.Linear(3, 4).state_dict(), torch.ones(3), {"state_dict": random_checkpoint(14, 3)}],
    ids=["state dict", "tensor", "nested"],
)
def test_other_contents_are_refused(tmp_path, small_data, foreign):
    torch.save(foreign, tmp_path / "foreign.ckpt")
    with pytest.raises(InputError, match=r"foreign\.ckpt does not hold a released NAO"):
        import_released(tmp_path / "foreign.ckpt", small_data)


def test_checkpoints_of_another_form_are_refused(tmp_path, small_data):
    torch.save(random_checkpoint(14, 3, hidden=(16, 64)), tmp_path / "hidden.ckpt")
    with pytest.raises(InputError, match=r"hidden\.ckpt is not a released NAO"):
        import_released(tmp_path / "hidden.ckpt", small_data)


@pytest.mark.parametrize("lacking", ["fnb.layers.4.bias", "fck_1_0.weight", "kernel.layers.2.weight"])
def test_an_incomplete_checkpoint_is_refused(tmp_path, small_data, lacking):
    state = random_checkpoint(14, 3)
    del state[lacking]
    torch.save(state, tmp_path / "part.ckpt")
    with pytest.raises(InputError, match=rf"part\.ckpt.*{lacking}"):
        import_released(tmp_path / "part.ckpt", small_data)


def test_a_context_larger_than_the_data_is_refused(tmp_path, small_data):
    torch.save(random_checkpoint(1000, 3), tmp_path / "wide.ckpt")
    with pytest.raises(InputError, match="got d = 1000"):
        import_released(tmp_path / "wide.ckpt", small_data)
