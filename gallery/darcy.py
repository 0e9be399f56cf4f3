"""
# A porous medium

The second system of the paper: pressures `p` in a medium of two permeabilities, and the sources
`g = -div(b grad p)`. The kernel from p to g is a stencil at every node; where it is large, the medium is permeable.
"""

# %%
from kernelmap import Context, discover, grids, load_model
from kernelmap.problems.darcy import darcy
from kernelmap.report import plot

test = darcy("p-to-g", 21).test
pressures, sources = (values[0, :30].T.contiguous() for values in (test.u, test.f))
context = Context(pressures, sources, grids.rectangle(21), grids.rectangle(21))
print(context.d, "pairs of fields on", len(context.y.points), "nodes")

# %%
found = discover(load_model("darcy")[0], context)
print(f"held-out error {100 * found.check.error:.2g} %, inside the 95 % band {found.check.coverage:.0%}")
plot(found, "kernel.png")

# %% [markdown]
# Each line of maps is one row K(x, ·), x being the white dot.
