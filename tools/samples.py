"""Files as this version writes them, kept in tests/data, so that later versions still read them.

    python tools/samples.py

Run once for every release. `tests/test_released_files.py` reads those of every version.
"""

import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import torch

from kernelmap import Context, Recipe, SystemSet, discover, grids, load_discovery, load_model, train
from kernelmap.core.files import write_json
from kernelmap.maps import NAOOptions
from kernelmap.training import loop

DATA = Path(__file__).parents[1] / "tests" / "data"
N, D, EPOCHS, STOPPED = 20, 30, 4, 2
RECIPE = Recipe(epochs=EPOCHS, every=1, precision="float64")
OPTIONS = NAOOptions(dk=2)


class Stopped(Exception):
    """In place of a kill."""


def systems() -> SystemSet:
    """K(y) = exp(-y / l) with l = 0.2, 0.3, 0.4, and random inputs."""
    y = grids.radii(0.05, N)
    u = torch.randn(1, 3 * D, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lengths = torch.tensor([0.2, 0.3, 0.4], dtype=torch.float64)
    kernels = torch.exp(-y.points[:, 0] / lengths[:, None])[:, None]
    return SystemSet(("short", "middle", "long"), u, u @ (y.weights * kernels).mT, y, grids.point(), kernels)


def half_trained(out: Path, data: SystemSet) -> None:
    """A model and the state of its run, stopped after half of its epochs."""
    save = loop.save_state

    def save_and_stop(path: Path, module, optimizers, progress, run) -> None:
        save(path, module, optimizers, progress, run)
        if progress.epoch == STOPPED:
            raise Stopped

    loop.save_state = save_and_stop
    try:
        train("nao", OPTIONS, data, D, RECIPE, out)
    except Stopped:
        pass
    finally:
        loop.save_state = save


def write(out: Path) -> None:
    data = systems()
    data.save(out / "systems.h5")
    context = Context(data.u[0, :D].mT.contiguous(), data.f[0, :D].mT.contiguous(), data.y, data.x)
    context.save(out / "context.h5")
    discover(load_model("kernel1d")[0], context, {"model": "kernel1d"}).save(out / "discovery.h5")
    half_trained(out / "model", data)
    found, model = load_discovery(out / "discovery.h5"), load_model(out / "model")[0]
    mean, std = found.predict(context.U[:, :3])
    with torch.no_grad():
        kernel = model.kernel(context).values
    expected = {"kernel": found.kernel.values, "std": found.std, "mean": mean, "std_of_f": std, "model": kernel}
    write_json(out / "expected.json", {name: values.flatten().tolist() for name, values in expected.items()})


if __name__ == "__main__":
    place = DATA / version("kernelmap")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        shutil.copytree(folder, place, dirs_exist_ok=True)
    print(place)
