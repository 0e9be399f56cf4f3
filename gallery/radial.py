"""
# A radial kernel

The first system of the paper: responses `f(x) = ∫ K(r) [u(x + r) + u(x - r) - 2u(x)] dr` of a kernel that no model has
seen. Fifty of its pairs are enough for the kernel and for all other responses.
"""

# %%
import torch

from kernelmap import discover, load_model
from kernelmap.core.systems import strided_draws
from kernelmap.problems.radial import radial
from kernelmap.report import plot

systems = radial("sine").test.select(["ood1"]).with_noise(0.01, seed=0)
draws = strided_draws(systems.pairs, 50)[:1]
context = systems.batch(draws, torch.tensor([0]))[0, 0]
print(context.d, "of", systems.pairs, "pairs, with 1 % noise")

# %% [markdown]
# The kernel is oscillating, and of a family that is not in the world on which `kernel1d` was trained.

# %%
found = discover(load_model("kernel1d")[0], context)
print(f"expected error of the kernel {found.identifiability.expected_error:.1%}, noise {found.noise:.2%}")
plot(found, "kernel.png", truth=systems.kernels[0])

# %% [markdown]
# All other responses of the system are predicted with an error bar.

# %%
rest = torch.ones(systems.pairs, dtype=torch.bool).index_fill(0, draws[0], False)
mean, std = found.predict(systems.u[0, rest].mT)
f = systems.f[0, rest].mT
inside = float(((mean - f).abs() < 1.96 * std).double().mean())
print(f"error {float((mean - f).norm() / f.norm()):.2%}; inside the 95 % band {inside:.1%}")
