"""`kernelmap import-released`: the authors' checkpoints as models of this package."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from kernelmap.core.provenance import provenance
from kernelmap.core.terminal import encodable, say
from kernelmap.io.models import save_model
from kernelmap.paper.released import Moments, import_released_darcy
from kernelmap.paper.released import import_released as load
from kernelmap.problems.darcy import darcy
from kernelmap.problems.radial import Setting, radial


def run(words: list[str]) -> None:
    tyro.cli(import_released, prog="kernelmap import-released", args=words)


def import_released(
    ckpt: Annotated[Path, tyro.conf.Positional], setting: Setting | Literal["darcy"], out: Path
) -> None:
    """Turn a checkpoint released by the paper's authors into a model directory.

    Args:
        ckpt: the checkpoint, a state dict of a NAO; it is read without running any code in it.
        setting: the radial data it was trained on, which its tokens were standardised with; or darcy, whose tokens are
            standardised with our own systems, since the authors' are not public.
        out: directory for the model.
    """
    if setting == "darcy":
        train = darcy("g-to-p", truth=False).train
        model, about = import_released_darcy(ckpt, train.y, Moments.of(train)), {"problem": "darcy", "task": "g-to-p"}
    else:
        model = load(ckpt, radial(setting, "released"))
        about = {"problem": "radial", "setting": setting, "variant": "released", "dx": 0.0125}
    save_model(out, model, about | {"source": encodable(ckpt.name)} | provenance())
    say(f"NAO with d = {model.shape.d}, dk = {model.options.dk} in {out}")
