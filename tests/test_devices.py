"""No tensor is made on the CPU by accident: every one is created on the device of its inputs, or says that it is not.

No GPU is here. Under `Watch`, every call in this package that creates a tensor must name a device, draw from a
generator (random numbers are drawn on the CPU, so that they are the same everywhere, and moved) or hold one number,
which goes to any device.
"""

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

import kernelmap
from contract import EXAMPLES, FACTS, build
from kernelmap import InputError, Recipe, SystemSet, discover, evaluate, load_discovery, train
from kernelmap.io import load_model
from kernelmap.maps import MAPS
from kernelmap.training import Machine

SOURCE = str(Path(kernelmap.__file__).parent)
CREATE = {
    torch.zeros,
    torch.ones,
    torch.empty,
    torch.full,
    torch.eye,
    torch.arange,
    torch.linspace,
    torch.randn,
    torch.rand,
    torch.randint,
    torch.randperm,
    torch.tensor,
    torch.as_tensor,
}
ELSEWHERE = ("core/grids.py", "core/systems.py", "training/batches.py")
"""Grids are made on the CPU, in float64, and moved by `to`. Which pairs and systems are taken is decided on the CPU: an
index may lie there. Modules are built on the CPU too, in `__init__`, and moved."""


class Watch(TorchFunctionMode):
    """Collects the places where a tensor is created without a device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        named = kwargs.get("device") is not None or kwargs.get("generator") is not None
        if func in CREATE and not named and result.numel() > 1:
            given = args[0] if args else None
            if not isinstance(given, torch.Tensor):
                self._note()
        return result

    def _note(self) -> None:
        frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(SOURCE)]
        if not frames or any(frame.name == "__init__" for frame in frames):
            return
        place = f"{frames[-1].filename.removeprefix(SOURCE)[1:]}:{frames[-1].lineno} {frames[-1].line}"
        if not place.startswith(ELSEWHERE):
            self.found.add(place)


def watched(work: Callable[[], object]) -> list[str]:
    with Watch() as watch:
        work()
    return sorted(watch.found)


def example(name: str, d: int = 24):
    return EXAMPLES[min(FACTS[name].takes)](d, 1)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_discovery(name, tmp_path):
    context = example(name)[0]
    model = build(name, context)
    assert watched(lambda: discover(model, context).save(tmp_path / "found.h5")) == []
    assert watched(lambda: load_discovery(tmp_path / "found.h5").predict(context.U)) == []


@pytest.mark.parametrize("name", sorted(name for name in FACTS if MAPS[name].Loss is not None))
def test_training_and_evaluation(name, tmp_path):
    context = example(name, 200 if name == "posterior" else 40)
    names = tuple(f"system {i}" for i in range(3))
    systems = SystemSet(names, context.U.mT.contiguous(), context.F.mT.contiguous(), context.y, context.x)
    recipe = Recipe(epochs=1, precision="float64", random_draws=True)
    options = MAPS[name].Options(**FACTS[name].options)

    def work() -> None:
        train(name, options, systems, 8, recipe, tmp_path / "model", device="cpu")
        evaluate(build(name, context.select(torch.arange(8))), systems, 8, device="cpu")

    assert watched(work) == []


def test_the_watch_sees():
    """A line of this package that forgets the device, one that names it, and one that takes it from another tensor."""
    lines = {
        "torch.zeros(3)": 1,
        "torch.zeros(3, device=None)": 1,
        "torch.zeros(3, device='cpu')": 0,
        "x.new_zeros(3)": 0,
    }
    for line, count in lines.items():
        code = compile(line, f"{SOURCE}/made_up.py", "exec")
        assert len(watched(lambda: exec(code, {"torch": torch, "x": torch.zeros(1)}))) == count, line  # noqa: B023


def test_an_unknown_device_is_refused():
    context = example("nao")[0]
    with pytest.raises(InputError, match="abacus"):
        discover(build("nao", context), context, device="abacus")
    with pytest.raises(InputError, match="cannot be used as asked"):
        Machine(device="abacus").fabric(Recipe())


def test_a_device_that_holds_no_numbers_is_refused():
    with pytest.raises(InputError, match="the device 'meta' cannot be used"):
        load_model("kernel1d")[0].on("meta")
