"""
# Opinions that come together

Twenty people hold opinions on two questions, a point in the plane each. Everyone moves towards those who think alike,
and hardly towards the others:

    v_i = 1/n Σ_j K(|x_j - x_i|) (x_j - x_i)

Were opinions asked now and then, what is K: how does trust end with distance? Models of opinion dynamics
([Motsch and Tadmor 2014](https://arxiv.org/abs/1301.4123)) assume it; here it is found, and says what two other
groups will agree on.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from kernelmap import discover, load_model, read_measurements

rng = np.random.default_rng(0)
n, t = 20, np.linspace(0, 4, 10)


def trust(r: np.ndarray) -> np.ndarray:
    return np.exp(-((r / 1.2) ** 4))


def opinions(start: np.ndarray, t: np.ndarray, K) -> np.ndarray:
    """(T, n, 2), by an integrator of scipy."""

    def velocities(_: float, x: np.ndarray) -> np.ndarray:
        towards = x.reshape(n, 2) - x.reshape(n, 1, 2)
        return (K(np.linalg.norm(towards, axis=-1))[..., None] * towards).mean(axis=1).ravel()

    path = solve_ivp(velocities, (0, t[-1]), start.ravel(), t_eval=t, rtol=1e-6, atol=1e-8)
    return path.y.T.reshape(len(t), n, 2)


# %% [markdown]
# One group is asked ten times, and answers with errors of 0.005. Nobody measures a velocity: where a file has times
# instead, the mean velocity from one snapshot to the next is what K has to explain.

# %%
group = opinions(rng.uniform(0, 4, size=(n, 2)), t, trust)
asked = group + 0.005 * rng.normal(size=group.shape)
np.savez("opinions.npz", positions=asked, t=t)
context = read_measurements("opinions.npz").context
found = discover(load_model("kernel1d")[0], context)

# %% [markdown]
# Errors are weighted by how often pairs look at a distance. Beside ours: DARTR, the classical estimate on the same
# tokens, and least squares on 20 hat functions, as in the literature on
# [learning interactions](https://doi.org/10.1073/pnas.1822012116).

# %%
r, rho = found.kernel.y.points[:, 0].numpy(), found.identifiability.rho.numpy()
ours, std = found.kernel.values[0].numpy(), found.std[0].numpy()
dartr = found.classical.kernel.values[0].numpy()
knots = np.linspace(0, r[-1], 20)
hats = np.stack([np.interp(r, knots, one) for one in np.eye(20)])
tokens = (context.y.weights[:, None] * context.U).numpy()
squares = np.linalg.lstsq((hats @ tokens).T, context.F[0].numpy(), rcond=None)[0] @ hats


def error(kernel: np.ndarray) -> float:
    return np.sqrt((rho * (kernel - trust(r)) ** 2).sum() / (rho * trust(r) ** 2).sum())


inside = np.mean((np.abs(ours - trust(r)) <= 1.96 * std)[rho > 0.01 * rho.max()])
print(f"{context.d} mean velocities, {found.noise:.0%} of which is noise; {inside:.0%} of K inside its 95 % band")
print(f"error of K {error(ours):.1%}; of DARTR {error(dartr):.1%}; of least squares {error(squares):.1%}")

# %% [markdown]
# Two groups that nobody asked, followed three times as long by the kernel found: who ends up with whom?

# %%
later, starts = np.linspace(0, 12, 60), rng.uniform(0, 4, size=(2, n, 2))
truth = [opinions(start, later, trust) for start in starts]
told = [opinions(start, later, lambda d: np.interp(d, r, ours)) for start in starts]
for here, there in zip(truth, told, strict=True):
    moved = np.linalg.norm(here[-1] - here[0], axis=-1).mean()
    missed = np.linalg.norm(there[-1] - here[-1], axis=-1).mean()
    print(f"they move by {moved:.2f}; at the end we miss them by {missed:.3f}")
figure, panels = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
panels[0].fill_between(r, ours - 1.96 * std, ours + 1.96 * std, alpha=0.3, label="95 % band")
panels[0].plot(r, ours, label="discovered")
panels[0].plot(r, squares, color="C1", lw=0.8, label="least squares")
panels[0].plot(r, trust(r), "k--", label="truth")
panels[0].set(xlabel="distance r", ylabel="K(r)", ylim=(-0.3, 1.4))
panels[0].legend()
for panel, here, there in zip(panels[1:], truth, told, strict=True):
    panel.plot(*here.transpose(2, 0, 1), color="0.6", lw=3, solid_capstyle="round")
    panel.plot(*there.transpose(2, 0, 1), color="C0", lw=1)
    panel.plot(*here[0].T, "k.", ms=4)
    panel.set(title="another group, grey, and as told, blue", xlabel="question 1", ylabel="question 2", aspect="equal")
