"""Interactions of particles: tokens against sums over pairs, kernels of moving particles, and files of them."""

import numpy as np
import pytest
import torch
from jaxtyping import config
from scipy.integrate import solve_ivp

from kernelmap import InputError, load_discovery, read_measurements
from kernelmap.core import Context, Kernel, grids
from kernelmap.core.metrics import exploration_measure, kernel_error
from kernelmap.io import load_model, read_candidates, read_inputs
from kernelmap.operators import Interaction
from kernelmap.posterior import Kernel1dMap


def attraction(r: np.ndarray) -> np.ndarray:
    return np.exp(-r)


def velocities(x: np.ndarray, K=attraction) -> np.ndarray:
    """v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i), particle by particle; x (..., n, dim)."""
    v = np.zeros_like(x)
    n = x.shape[-2]
    for i in range(n):
        for j in range(n):
            towards = x[..., j, :] - x[..., i, :]
            v[..., i, :] += K(np.linalg.norm(towards, axis=-1))[..., None] * towards / n
    return v


def snapshots(T: int = 10, n: int = 20, dim: int = 2, noise: float = 0.0, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, size=(T, n, dim))
    v = velocities(x)
    return {"positions": x, "velocities": v + noise * v.std() * rng.normal(size=v.shape)}


def trajectory(T: int = 25, n: int = 8, seed: int = 0) -> dict[str, np.ndarray]:
    """Particles in the plane that come together, by an integrator of scipy."""
    start = np.random.default_rng(seed).uniform(0, 4, size=(n, 2))
    t = np.linspace(0, 3, T)
    path = solve_ivp(
        lambda _, x: velocities(x.reshape(n, 2)).ravel(), (0, 3), start.ravel(), t_eval=t, rtol=1e-9, atol=1e-9
    )
    return {"positions": path.y.T.reshape(T, n, 2), "t": t}


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)

    def write_and_read(**entries):
        np.savez(tmp_path / "mine.npz", **entries)
        return read_measurements(tmp_path / "mine.npz")

    return write_and_read


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_tokens_of_a_cubic_kernel_are_exact(dim):
    """Between the points of its grid K is cubic: for K = 2 - r³ / 16 there is no error."""
    x = np.random.default_rng(0).uniform(0, 2, size=(3, 6, dim))
    operator = Interaction(0.25, 16)
    s, i, c = (index.ravel() for index in np.indices(x.shape))
    tokens = operator.tokens_at(x, s, i, c)
    K = operator.grid.weights * (2 - operator.grid.points[:, 0] ** 3 / 16)
    np.testing.assert_allclose((tokens @ K).numpy(), velocities(x, lambda r: 2 - r**3 / 16).ravel(), atol=1e-13)


def test_the_error_of_other_kernels_is_of_fourth_order():
    x = np.random.default_rng(0).uniform(0, 2, size=(1, 12, 2))
    s, i, c = (index.ravel() for index in np.indices(x.shape))
    errors = []
    for count in (20, 40, 80, 160):
        operator = Interaction(4 / count, count)
        K = operator.grid.weights * torch.exp(-operator.grid.points[:, 0])
        errors.append(np.abs((operator.tokens_at(x, s, i, c) @ K).numpy() - velocities(x).ravel()).max())
    assert np.log2(errors[0] / errors[-1]) / 3 == pytest.approx(4, abs=0.4)


def test_particles_beyond_the_last_radius_do_not_act():
    x = np.array([[[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]])
    tokens = Interaction(0.5, 4).tokens_at(x, np.array([0, 0]), np.array([0, 0]), np.array([0, 1]))
    assert (tokens[0].abs() > 1e-12).nonzero()[:, 0].tolist() == [2]
    assert not tokens[1].any()


def model() -> Kernel1dMap:
    loaded, _ = load_model("kernel1d")
    assert isinstance(loaded, Kernel1dMap)
    return loaded


def check_kernel(context: Context, most: float) -> None:
    """Where pairs look, in L²(ρ)."""
    found = model().posterior(context)
    truth = torch.from_numpy(attraction(context.y.points[:, 0].numpy()))[None]
    rho = exploration_measure(context.U.mT, context.y)
    seen = rho > 1e-2 * rho.max()
    assert float(kernel_error(found.mean, truth, rho, context.y)) < most
    assert float(((found.mean - truth).abs() <= 1.96 * found.std)[0, seen].double().mean()) > 0.8


def test_the_kernel_of_twenty_particles_from_ten_snapshots(read):
    check_kernel(read(**snapshots(noise=0.01)).context, 0.05)


def test_the_kernel_of_trajectories_from_their_times_alone(read):
    """Two runs; velocities are means from one snapshot to the next."""
    runs = [trajectory(seed=seed) for seed in range(2)]
    positions = np.stack([run["positions"] for run in runs])
    context = read(positions=positions, t=runs[0]["t"]).context
    assert context.d == 2 * 24 * 8 * 2
    assert context.name(0) == "pair 0 (run = 0, particle = 0, component = 0, t = 0.0625)"
    np.testing.assert_allclose(context.F[0].numpy(), (np.diff(positions, axis=1) / 0.125).ravel(), rtol=1e-12)
    check_kernel(context, 0.005)


def test_particles_that_come_together_are_predicted_from_their_own_file(read, tmp_path):
    """They are furthest apart in the first snapshot, before any mean velocity."""
    context = read(**trajectory(6, 3)).context
    kernel = Kernel(torch.zeros(1, context.y.size), context.y, context.x)
    assert read_inputs(tmp_path / "mine.npz", kernel).U.shape[0] == context.y.size


def test_tokens_of_ways_are_exact_but_for_splines(read):
    """A derivative of the splines, which was taken before, misses velocities by 0.4 % of their size in ten snapshots.

    Ways may be longer than what was seen in snapshots: no distance on them is left out.
    """
    context = read(**trajectory(10)).context
    r = context.y.points[:, 0]
    responses = context.U.mT @ (context.y.weights * torch.exp(-r))
    assert float((responses - context.F[0]).norm() / context.F.norm()) < 3e-4


def test_particles_that_meet_between_two_snapshots(read):
    """Two on a line that swing about each other are furthest apart halfway: that distance belongs to K too."""
    t = np.arange(6.0) + 0.5
    x = np.stack([np.sin(np.pi * t / 2), -np.sin(np.pi * t / 2)], axis=1)
    y = read(positions=x[..., None], t=t).context.y
    assert float(y.points[-1, 0]) > 1.2 * np.abs(2 * x[:, 0]).max()


def test_pairs_are_named(read):
    entries = snapshots(3, 4)
    entries["velocities"][0] = np.nan
    found = read(**entries, t=np.array([0.0, 0.5, 2.0]))
    assert found.context.d == 16
    assert found.found["dropped"] == "8 where velocities is NaN"
    assert found.context.name(3) == "pair 3 (particle = 1, component = 1, t = 0.5)"
    runs = {name: np.stack([values, values]) for name, values in entries.items()}
    assert read(**runs).context.name(31) == "pair 31 (run = 1, particle = 3, component = 1, snapshot = 2)"


def test_particles_on_a_line_may_be_a_matrix(read):
    entries = trajectory(5, 3)
    x, t = entries["positions"][..., 0], entries["t"]
    assert torch.equal(read(positions=x, t=t).context.U, read(positions=x[..., None], t=t).context.U)


def test_from_a_file_to_predictions_and_to_the_next_measurement(tmp_path, kernelmap, monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    entries = snapshots(12, noise=0.01)
    entries["velocities"][10:] = np.nan
    np.savez(tmp_path / "mine.npz", **(entries | {"x_unit": "m", "f_unit": "m/s"}))  # pyright: ignore
    code, out, _ = kernelmap("discover", tmp_path / "mine.npz", "--out", tmp_path / "found")
    assert code == 0
    assert "exponential" in out
    assert "K(r) (m/s / m)" in (tmp_path / "found" / "report.html").read_text()
    np.savez(tmp_path / "new.npz", positions=entries["positions"][10:])
    target = tmp_path / "p.npz"
    assert kernelmap("predict", tmp_path / "found" / "discovery.h5", tmp_path / "new.npz", "--out", target)[0] == 0
    truth, predicted = velocities(entries["positions"][10:]), np.load(target)
    assert np.linalg.norm(predicted["mean"] - truth) < 0.01 * np.linalg.norm(truth)
    assert np.mean(np.abs(predicted["mean"] - truth) < 1.96 * predicted["std"]) > 0.9
    possible = read_candidates(tmp_path / "mine.npz", load_discovery(tmp_path / "found" / "discovery.h5").kernel)
    assert possible.U.shape == (201, 80)
    assert possible.places.name(0) == "particle = 0, component = 0, snapshot = 10"


def test_distances_that_were_not_seen_are_refused(read, tmp_path):
    y = read(**snapshots()).context.y
    kernel = Kernel(torch.ones(1, y.size).double(), y, grids.point())
    far = 3 * snapshots(1)["positions"]
    np.savez(tmp_path / "far.npz", positions=far)
    with pytest.raises(InputError, match=r"far.npz: .* apart, but the kernel was seen up to 5\.\d+ only"):
        read_inputs(tmp_path / "far.npz", kernel)
    np.savez(tmp_path / "far.npz", positions=far, radius=float(y.points[-1, 0]))
    assert read_inputs(tmp_path / "far.npz", kernel).U.shape == (201, 40)


MOVING = trajectory(6, 3)
STILL = snapshots(5, 4)
BAD = {
    "neither velocities nor times": ({"positions": STILL["positions"]}, "without velocities and without times"),
    "one snapshot": ({"positions": STILL["positions"][0]}, r"shape \(T, n, dim\).*One snapshot is positions\[None\]"),
    "one particle": (MOVING | {"positions": MOVING["positions"][:, :1]}, "one particle; an interaction takes two"),
    "NaN in positions": (MOVING | {"positions": np.full((6, 3, 2), np.nan)}, r"of 3 particle\(s\): where a particle"),
    "text": (MOVING | {"positions": np.array(["a"])}, "positions must be an array of real numbers"),
    "times of fewer snapshots": (MOVING | {"t": np.arange(5.0)}, r"t must have shape \(6,\).*got \(5,\)"),
    "unsorted times": (MOVING | {"t": MOVING["t"][::-1]}, "t must increase; sort the snapshots"),
    "NaN in t": (MOVING | {"t": np.full(6, np.nan)}, "t holds 6 value"),
    "few snapshots": ({name: v[:3] for name, v in MOVING.items()}, r"3 snapshot\(s\); velocities are found from 4"),
    "velocities of fewer snapshots": (STILL | {"velocities": STILL["velocities"][1:]}, "Give t instead of differences"),
    "velocities turned": (STILL | {"velocities": STILL["velocities"].T}, "shape of positions.* axes seem swapped"),
    "infinite velocities": (STILL | {"velocities": np.full((5, 4, 2), np.inf)}, "velocities holds 40 infinite"),
    "all NaN": (STILL | {"velocities": np.full((5, 4, 2), np.nan)}, "at least 2 pairs, got 0.*40 where velocities is"),
    "errors of no velocities": (MOVING | {"f_std": np.ones((6, 3, 2))}, "of the velocities, which are not given"),
    "a radius below 0": (STILL | {"radius": -1.0}, "radius must be one positive number"),
    "all in one place": (STILL | {"positions": np.ones((5, 4, 2))}, "at the same place in every snapshot"),
    "a trend of u": (STILL | {"unknown": "drift"}, 'unknown must be the text "offset"'),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(read, case):
    entries, sentence = BAD[case]
    with pytest.raises(InputError, match=rf"mine\.npz: .*{sentence}"):
        read(**entries)
