"""
# A stiff inclusion

The third system of the paper: a specimen of hyperelastic material, known by forces and displacements alone. Here it
has a stiff bar in a soft square; it is solved by finite elements, and found again.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from kernelmap import Context, discover, load_model
from kernelmap.problems.mechanics import bitmaps
from kernelmap.problems.mechanics.errors import solved
from kernelmap.report import plot

image = np.zeros((1, 8, 8), np.uint8)
image[0, 3:5, 1:7] = 60
systems, _ = solved(bitmaps(image), loads=40, elements="q1-8")
context = Context(systems.u[0].T.double(), systems.f[0].T.double(), systems.y, systems.x)
print(context.d, "loads; forces and displacements at", len(context.y.points), "nodes")

# %%
found = discover(load_model("mechanics")[0], context)
print(f"held-out error {found.check.error:.2%}, noise {found.noise:.2%}")
plot(found, "kernel.png")

# %% [markdown]
# The modulus of each element, in decades, and how well it is known.

# %%
hidden = found.hidden
figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
side = round(len(hidden.values) ** 0.5)
order = np.lexsort(hidden.points.T.numpy()[::-1])
for panel, values, title in zip(axes, (hidden.values, hidden.std), (hidden.name, "its std"), strict=True):
    drawn = panel.imshow(values.numpy()[order].reshape(side, side).T, origin="lower")
    panel.set_title(title)
    panel.axis("off")
    figure.colorbar(drawn, ax=panel)
