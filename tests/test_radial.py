"""The radial problem against closed forms, an independent quadrature, and its own limit."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import legendre

from kernelmap.core.errors import InputError
from kernelmap.core.kernel import Kernel
from kernelmap.core.systems import SystemSet, strided_draws
from kernelmap.operators import radial_tokens
from kernelmap.problems import cache
from kernelmap.problems.radial import Inputs, RadialData, RadialKernel, data, radial, radial_systems
from kernelmap.problems.radial.inputs import fourteen_waves, locations, two_waves
from kernelmap.problems.radial.kernels import test_kernels as kernels_for_testing
from kernelmap.problems.radial.kernels import training_kernels
from kernelmap.problems.radial.quadrature import response

PI = np.pi


def truth(systems: SystemSet) -> torch.Tensor:
    assert systems.kernels is not None
    return systems.kernels


def mean_of_waves(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """∫ cos y dy and ∫ sin 2y dy over the part of [low, high] in [-π, π]."""
    a, b = np.clip(low, -PI, PI), np.clip(high, -PI, PI)
    return np.stack([np.sin(b) - np.sin(a), (np.cos(2 * a) - np.cos(2 * b)) / 2])


def waves(x: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(x), np.sin(2 * x)]) * (abs(x) < PI)


@pytest.mark.parametrize("support", [0.3, 2.5, 7.0, 11.0])
def test_a_constant_kernel_has_a_closed_form(support):
    x = np.random.default_rng(0).uniform(-15, 15, size=200)
    kernel = RadialKernel(lambda r: np.full_like(r, 0.7), support)
    exact = 0.7 * (mean_of_waves(x - support, x + support) - 2 * support * waves(x))
    np.testing.assert_allclose(response(kernel, two_waves("paper"), x), exact, rtol=0, atol=1e-9)


def test_a_users_kernel_may_jump_at_a_breakpoint():
    """K = 1 up to r = 2, then -3 up to r = 5."""
    x = np.random.default_rng(1).uniform(-10, 10, size=200)
    kernel = RadialKernel(lambda r: np.where(r <= 2, 1.0, -3.0), 5.0, (2.0,))
    inner, outer = (mean_of_waves(x - s, x + s) - 2 * s * waves(x) for s in (2.0, 5.0))
    exact = inner - 3 * (outer - inner)
    np.testing.assert_allclose(response(kernel, two_waves("paper"), x), exact, rtol=0, atol=1e-9)


def sampled_norm(u: Callable[[float], float]) -> float:
    """The released inputs' norm, on the released locations."""
    return sum(u(-PI - 11.01 + 0.0125 * i) ** 2 * 0.0125 for i in range(2265)) ** 0.5


def released_input(wave: Callable[[float], float]) -> Callable[[float], float]:
    def u(x: float) -> float:
        edge = PI - abs(x)
        return 0.0 if edge < 0 else wave(x) * edge if edge < 0.1 else wave(x)

    norm = sampled_norm(u)
    return lambda x: u(x) / norm


def paper_input(wave: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: wave(x) if abs(x) <= PI else 0.0


FORMULAS = {
    "paper": {
        "sine-1": (lambda r: np.exp(-r) * np.sin(6 * r), 11),
        "cosine-6": (lambda r: (10 - r) / 20 * np.cos(6 * r) * (10 - r), 10),
        "polynomial-7": (lambda r: np.exp(-0.1 * r) * legendre(7)((r - 10) / 10), 10),
    },
    "released": {
        "sine-1": (lambda r: np.exp(-r) * np.sin(6 * r), 10),
        "cosine-5": (lambda r: 0.1 * (10 - r) / 20 * np.cos(5 * r), 10),
        "polynomial-4": (lambda r: 0.1 * np.exp(-0.1 * r) * legendre(4)((r - 10) / 10), 10),
        "id": (lambda r: np.exp(-5 * r) * np.sin(6 * r), 10),
        "ood1": (lambda r: r * (11 - r) * np.exp(-5 * r) * np.sin(6 * r), 11),
        "ood2": (lambda r: np.exp(-(r**2) / 2) / np.sqrt(2 * PI), 11),
    },
}


@pytest.mark.parametrize(("variant", "name"), [(variant, name) for variant in FORMULAS for name in FORMULAS[variant]])
def test_responses_agree_with_an_independent_quadrature(variant, name):
    """∫_0^s K(r) [u(x+r) + u(x-r) - 2u(x)] dr from the definition, for both inputs at random x."""
    formula, support = FORMULAS[variant][name]
    make, breaks = (paper_input, [PI]) if variant == "paper" else (released_input, [PI - 0.1, PI])
    x = np.random.default_rng(len(name)).uniform(-13, 13, size=4)
    kernels = training_kernels(variant) | kernels_for_testing(variant)
    ours = response(kernels[name], two_waves(variant), x)
    for row, wave in enumerate((np.cos, lambda y: np.sin(2 * y))):
        u = make(wave)
        for column, at in enumerate(x):
            points = sorted({abs(sign * b - at) for b in breaks for sign in (-1, 1)} | set(range(1, support)))
            exact, _ = quad(
                lambda r, at=at, u=u: formula(r) * (u(at + r) + u(at - r) - 2 * u(at)),
                0,
                support,
                points=[p for p in points if p < support],
                epsabs=1e-12,
                epsrel=1e-12,
                limit=500,
            )
            assert ours[row, column] == pytest.approx(exact, rel=0, abs=1e-9)


def test_tokens_are_second_differences():
    systems = radial_systems({"k": kernels_for_testing("paper")["ood2"]}, two_waves("paper"), "paper", 0.5)
    x, r = locations("paper", 0.5)[:, None], 0.5 * np.arange(1, 23)
    direct = waves(x + r) + waves(x - r) - 2 * waves(x)
    np.testing.assert_allclose(systems.u[0].numpy(), direct.reshape(-1, 22), rtol=0, atol=1e-12)
    np.testing.assert_allclose(systems.y.points[:, 0].numpy(), r)


def test_tokens_of_any_samples():
    u = torch.randn(2, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tokens = radial_tokens(u, 7)
    assert tokens.shape == (2, 16, 7)
    for j in range(16):
        for k in range(1, 8):
            torch.testing.assert_close(tokens[:, j, k - 1], u[:, 7 + j + k] + u[:, 7 + j - k] - 2 * u[:, 7 + j])


def quadrature_error(inputs: Inputs, dx: float) -> float:
    """Of the Riemann sum K diag(w) U, relative to f, for the Gaussian kernel."""
    systems = radial_systems({"k": kernels_for_testing("released")["ood2"]}, inputs, "released", dx)
    f = Kernel(truth(systems)[0], systems.y, systems.x).apply(systems.u[0].mT)
    exact = systems.f[0].mT
    return float((f - exact).norm() / exact.norm())


def test_the_riemann_sum_converges_to_the_response():
    """At first order for the released inputs, which jump; at second for a smooth input and a smooth kernel."""
    smooth = Inputs(lambda y: ((1 + np.cos(y)) ** 2 * (abs(y) < PI))[None], (-PI, PI))
    for inputs, rate in ((two_waves("released"), 1), (smooth, 2)):
        errors = [quadrature_error(inputs, dx) for dx in (0.2, 0.1, 0.05, 0.025)]
        assert errors[-1] < 0.02
        assert errors[-1] < 1.25 * errors[0] / 8**rate


@pytest.mark.parametrize("function", [lambda r: 1 / r, lambda r: 1 / (r + 1e-300), lambda r: r**-1.5])
def test_a_kernel_that_is_not_integrable_is_refused(function):
    with np.errstate(all="ignore"), pytest.raises(InputError, match="check that it is integrable"):
        radial_systems({"k": RadialKernel(function, 5.0)}, two_waves("paper"), "paper", 0.5)


def test_a_kernel_need_not_be_defined_at_zero():
    """sin(r)/r as it is written and as numpy's sinc."""
    x = np.linspace(-9, 9, 50)
    with np.errstate(invalid="ignore"):
        plain = response(RadialKernel(lambda r: np.sin(r) / r, 5.0), two_waves("paper"), x)
    defined = response(RadialKernel(lambda r: np.sinc(r / PI), 5.0), two_waves("paper"), x)
    np.testing.assert_allclose(plain, defined, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dx", [0.3, 0.0, -0.0125, 22.0, float("nan")])
def test_a_mesh_that_does_not_divide_the_radius_is_refused(dx):
    with pytest.raises(InputError, match=f"dx must divide the radius 11, .* got {dx}"):
        radial_systems(kernels_for_testing("paper"), two_waves("paper"), "paper", dx)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_there_are_2265_locations(variant):
    x = locations(variant, 0.0125)
    assert len(x) == 2265
    np.testing.assert_allclose(np.diff(x), 0.0125)
    assert abs(x[0] + PI + 11.01) < 0.0125
    systems = radial("sine", variant).train
    assert systems.pairs == 2 * 2265
    assert systems.y.size == 880
    assert systems.about == {"problem": "radial", "variant": variant, "dx": 0.0125}


@pytest.mark.parametrize(("setting", "count", "draws"), [("sine", 7, None), ("diverse", 21, None), ("fewer", 21, 5)])
def test_settings_have_the_papers_numbers(setting, count, draws):
    chosen = radial(setting)
    assert len(chosen.train.names) == count
    assert chosen.train.f.shape == (count, 4530, 1)
    assert chosen.draws == draws
    assert chosen.test.names == ("id", "ood1", "ood2")
    assert len(strided_draws(chosen.train.pairs, 302)) == 15
    families = {name.split("-")[0] for name in chosen.train.names}
    assert families == ({"sine"} if setting == "sine" else {"sine", "cosine", "polynomial"})


def test_the_single_setting_has_one_kernel_and_fourteen_inputs():
    """At a coarse mesh: cos kx for k = 1..7 and sin kx for k = 8..14."""
    inputs = fourteen_waves("paper")
    y = np.linspace(-2.9, 2.9, 40)
    expected = [np.cos(k * y) for k in range(1, 8)] + [np.sin(k * y) for k in range(8, 15)]
    np.testing.assert_allclose(inputs.functions(y), expected)
    assert not inputs.functions(np.array([-3.2, 3.2])).any()
    systems = radial_systems({"sine-1": training_kernels("released")["sine-1"]}, fourteen_waves("released"), dx=0.1)
    assert systems.pairs == 14 * len(locations("released", 0.1))
    norms = systems.u[0, :, 0].unflatten(0, (14, -1)).norm(dim=1)
    assert (norms > 0).all()


def test_the_single_setting_trains_on_one_system(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    chosen = radial("single", dx=0.5)
    assert chosen.train.names == ("sine-1",)
    assert chosen.train.pairs == 14 * len(locations("released", 0.5))
    assert chosen.test.names == ("id", "ood1", "ood2")


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_no_test_system_is_among_the_training_systems(variant):
    chosen = radial("diverse", variant)
    assert not set(chosen.train.names) & set(chosen.test.names)
    for kernel in truth(chosen.test):
        distances = (truth(chosen.train) - kernel).flatten(1).norm(dim=1) / kernel.norm()
        assert distances.min() > 0.1


def test_kernel_values_are_those_of_the_formulas():
    chosen = radial("diverse", "paper")
    r = 0.0125 * np.arange(1, 881)
    for name, (formula, support) in FORMULAS["paper"].items():
        values = truth(chosen.train)[chosen.train.names.index(name), 0].numpy()
        np.testing.assert_allclose(values, np.where(r <= support, formula(r), 0.0), rtol=1e-9, atol=1e-12)


def test_a_coarser_mesh_holds_the_same_functions():
    fine, coarse = radial("sine").train, radial("sine", dx=0.025).train
    assert coarse.f.shape[1] == 2 * 1133
    f, u = (values.unflatten(1, (2, 2265))[:, :, ::2] for values in (fine.f, fine.u))
    torch.testing.assert_close(coarse.f, f.flatten(1, 2), rtol=0, atol=1e-9)
    torch.testing.assert_close(coarse.u, u[..., 1::2].flatten(1, 2), rtol=0, atol=1e-10)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAP_CACHE", str(tmp_path))
    return tmp_path


def test_data_are_generated_once(own_cache, monkeypatch):
    first = radial("sine", "paper", 0.5)
    (file,) = own_cache.rglob("*.h5")

    def fail(*args, **kwargs):
        pytest.fail("the data were generated again")

    monkeypatch.setattr(data, "radial_systems", fail)
    again = radial("diverse", "paper", 0.5)
    assert torch.equal(again.test.f, first.test.f)
    assert list(own_cache.rglob("*.h5")) == [file]


def test_a_damaged_cache_is_generated_again(own_cache):
    kernels, inputs = {"k": kernels_for_testing("paper")["ood2"]}, two_waves("paper")

    def generate() -> SystemSet:
        return radial_systems(kernels, inputs, "paper", 0.5)

    good = cache.cached("systems.h5", Path(__file__).parent, generate)
    (file,) = own_cache.rglob("*.h5")
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.warns(UserWarning, match=r"systems\.h5 is damaged and is generated again"):
        again = cache.cached("systems.h5", Path(__file__).parent, generate)
    assert torch.equal(again.f, good.f)
    assert torch.equal(SystemSet.load(file).f, good.f)


@pytest.mark.parametrize("draws", [None, 5])
def test_saved_radial_data_come_back(tmp_path, draws):
    train = radial_systems({"a": kernels_for_testing("paper")["id"]}, two_waves("paper"), "paper", 0.5)
    test = radial_systems({"b": kernels_for_testing("paper")["ood2"]}, two_waves("paper"), "paper", 0.5)
    RadialData(train, test, draws).save(tmp_path / "radial.h5")
    loaded = RadialData.load(tmp_path / "radial.h5")
    assert loaded.draws == draws
    assert loaded.train.names == ("a",)
    assert loaded.test.checksum() == test.checksum()
    assert loaded.train.checksum() == train.checksum()


def test_radial_data_without_test_systems_are_refused(tmp_path):
    systems = radial_systems({"a": kernels_for_testing("paper")["id"]}, two_waves("paper"), "paper", 0.5)
    systems.save(tmp_path / "systems.h5")
    with pytest.raises(InputError, match="lacks an entry that was expected"):
        RadialData.load(tmp_path / "systems.h5")
