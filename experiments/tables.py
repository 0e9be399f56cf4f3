"""The tables of README and docs, made from committed results.

    python experiments/tables.py

Each stands between the marks <!-- NAME --> and <!-- /NAME --> of a page; `tests/test_docs.py` checks that they agree.
"""

import re

import measurement_tables
import named_tables as named
import newcomer
import order_free_tables as order_free
import paper_tables as paper
import plane_tables as plane
import radial_tables as radial
import reliability_tables as reliability
from measured import ROOT

TABLES = {
    "newcomer": ("docs/install.md", newcomer.table),
    "kernels": ("docs/what-to-expect.md", radial.kernels),
    "fields": ("docs/what-to-expect.md", plane.fields),
    "shipped": ("docs/what-to-expect.md", radial.shipped),
    "bench": ("docs/what-to-expect.md", radial.bench),
    "recipes": ("docs/training.md", radial.recipes),
    "test": ("docs/radial.md", lambda: radial.test_systems("test")),
    "noise": ("docs/radial.md", lambda: radial.test_systems("noise")),
    "own-use": ("docs/kernel1d.md", radial.own_use),
    "calibration": ("docs/kernel1d.md", radial.calibration),
    "kernel1d-bars": ("docs/kernel1d.md", radial.bars),
    "laws": ("docs/after-discovery.md", named.laws),
    "no-law": ("docs/after-discovery.md", named.no_law),
    "responses-prior": ("docs/measurements.md", measurement_tables.responses_prior),
    "suggestions": ("docs/after-discovery.md", named.suggestions),
    "measurements": ("docs/measurements.md", measurement_tables.measurements),
    "gallery-groundwater": ("docs/gallery/groundwater.md", measurement_tables.groundwater_page),
    "gallery-green": ("docs/gallery/green.md", measurement_tables.green_page),
    "noise-on-u": ("docs/measurements.md", measurement_tables.noise_on_u),
    "darcy": ("docs/darcy.md", lambda: plane.darcy("test")),
    "darcy-noise": ("docs/darcy.md", lambda: plane.darcy("noise")),
    "darcy-pressure": ("docs/darcy.md", plane.noisy_pressure),
    "darcy-mesh": ("docs/darcy.md", lambda: plane.darcy("mesh")),
    "table3": ("docs/darcy.md", lambda: paper.paper_table("table3")),
    "table3-curves": ("docs/darcy.md", lambda: paper.learning_curves("table3")),
    "far": ("docs/darcy.md", paper.far_mass),
    "nao-mesh": ("docs/darcy.md", plane.nao_mesh),
    "nao-microstructure": ("docs/darcy.md", plane.nao_microstructure),
    "darcy-released": ("docs/darcy.md", plane.released),
    "darcy-bench": ("docs/darcy.md", plane.darcy_bench),
    "darcy-b": ("docs/darcy.md", plane.darcy_tokens),
    "table1": ("docs/paper.md", lambda: paper.paper_table("table1")),
    "table2": ("docs/paper.md", lambda: paper.paper_table("table2")),
    "epochs": ("docs/paper.md", paper.epochs),
    "resolution": ("docs/paper.md", paper.resolution),
    "claims": ("docs/paper.md", paper.claims),
    "order-free-darcy": ("docs/order-free.md", lambda: order_free.table("darcy")),
    "order-free-meshes": ("docs/order-free.md", lambda: order_free.table("meshes", "splines")),
    "order-free-line": ("docs/order-free.md", lambda: order_free.table("line")),
    "order-free-specimens": ("docs/order-free.md", lambda: order_free.table("specimens", "own-loads")),
    "order-free-depth": ("docs/order-free.md", order_free.depth),
    "order-free-cost": ("docs/order-free.md", order_free.cost),
    "mechanics": ("docs/mechanics.md", plane.mechanics),
    "mechanics-errors": ("docs/mechanics.md", plane.mechanics_errors),
    "mechanics-noise": ("docs/mechanics.md", plane.mechanics_noise),
    "mechanics-floor": ("docs/mechanics.md", plane.mechanics_floor),
    "table4": ("docs/mechanics.md", lambda: paper.paper_table("table4")),
    "kills": ("docs/reliability.md", reliability.kills),
    "fuzz": ("docs/reliability.md", reliability.fuzz),
    "table4-curves": ("docs/mechanics.md", lambda: paper.learning_curves("table4")),
}


def filled(page: str) -> str:
    """The text of a page with its tables made anew."""
    text = (ROOT / page).read_text()
    for name, (where, make) in TABLES.items():
        if where == page:
            mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            if not mark.search(text):
                raise ValueError(f"{page} has no place for the table {name}")
            text = mark.sub(lambda found, make=make: found[1] + make() + "\n" + found[2], text)
    return text


if __name__ == "__main__":
    for page in {where for where, _ in TABLES.values()}:
        (ROOT / page).write_text(filled(page))
