"""`kernelmap import-released`: the authors' checkpoints as models of this package."""

from pathlib import Path
from typing import Annotated

import tyro
from rich import print
from rich.markup import escape

from kernelmap.model import save_model
from kernelmap.problems.radial import Setting, radial
from kernelmap.provenance import provenance
from kernelmap.released import import_released as load


def import_released(ckpt: Annotated[Path, tyro.conf.Positional], setting: Setting, out: Path) -> None:
    """Turn a checkpoint released by the paper's authors into a model directory.

    Args:
        ckpt: the checkpoint, a state dict of a radial NAO; it is read without running any code in it.
        setting: the data it was trained on, which its tokens were standardised with.
        out: directory for the model.
    """
    model = load(ckpt, radial(setting, "released"))
    about = {
        "problem": "radial",
        "setting": setting,
        "variant": "released",
        "dx": 0.0125,
        "source": ckpt.name,
    }
    save_model(out, model, about | provenance())
    print(f"NAO with d = {model.shape.d}, dk = {model.options.dk} in {escape(str(out))}")
