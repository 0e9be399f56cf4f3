"""Errors on hyperelastic specimens: over all test specimens, for loads of the context and loads nobody has seen."""

from typing import Any

import numpy as np
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.grids import rectangle
from kernelmap.core.progress import progress
from kernelmap.core.systems import SystemSet
from kernelmap.evaluation.evaluate import errors, estimate
from kernelmap.maps import KernelMap
from kernelmap.problems.mechanics.forces import HELDOUT, TRAINING, ForceField, evaluate
from kernelmap.problems.mechanics.images import Specimens, Split, mnist
from kernelmap.problems.mechanics.plan import ELEMENTS, LOADS
from kernelmap.problems.mechanics.specimen import respond

KEYS = ("operator_error_context", "operator_error_heldout")


def errors_on_mechanics(model: KernelMap, test: SystemSet, heldout: SystemSet, d: int) -> dict[str, Any]:
    """The operator errors of `evaluate`, averaged over the specimens, under the name `test`; each one's under its own.

    Held-out loads are those that no training specimen has seen. There is no true kernel: the material is not linear.
    """
    model.check_pairs(d)
    found = errors(lambda context: estimate(model, context, band=False), test, d, heldout)
    means = {key: sum(each[key] or 0 for each in found.values()) / len(found) for key in KEYS}
    nothing = {"kernel_error": None, "kernel_error_pooled": None}
    specimens = {name: {key: each[key] for key in KEYS} for name, each in found.items()}
    return {"parameters": model.parameter_count, "systems": {"test": means | nothing}, "specimens": specimens}


def specimens_of(split: Split, count: int | None = None) -> Specimens:
    """The first `count` specimens that a split keeps for testing; all by default."""
    everyone = mnist()
    chosen = np.flatnonzero(everyone.for_testing(split))
    if count is not None and not 1 <= count <= len(chosen):
        raise InputError(
            f"the split {split} has {len(chosen)} test specimens; ask for 1 to {len(chosen)}, not {count}."
        )
    chosen = chosen[:count]
    names = tuple(everyone.names[index] for index in chosen)
    return Specimens(names, everyone.images[chosen], None if everyone.digits is None else everyone.digits[chosen])


def solved(
    specimens: Specimens, loads: int = LOADS, forces: ForceField | None = None, elements: str = ELEMENTS
) -> tuple[SystemSet, SystemSet]:
    """Specimens under the data set's loads, and under a quarter as many that no training specimen has seen."""
    forces = forces or ForceField()
    coefficients = np.concatenate([forces.draw(loads, TRAINING), forces.draw(max(1, loads // 4), HELDOUT)])
    responses = []
    for name, image in zip(specimens.names, progress(specimens.images, "Solving"), strict=True):
        u, converged = respond(image, elements, coefficients)
        if not converged.all():
            raise InputError(f"load {int((~converged).argmax())} of {name} did not converge; take a smaller amplitude.")
        responses.append(torch.from_numpy(u.reshape(len(u), -1)))
    f = evaluate(coefficients, np.linspace(0, 1, specimens.pixels + 1)).swapaxes(0, 1).reshape(1, len(coefficients), -1)
    grid = rectangle(specimens.pixels + 1).with_components(2)
    about = {"problem": "mechanics", "elements": elements, "loads": loads, "seed": forces.seed}
    inputs, outputs = torch.from_numpy(np.ascontiguousarray(f)), torch.stack(responses)
    parts = (slice(loads), slice(loads, None))
    test, heldout = (SystemSet(specimens.names, inputs[:, p], outputs[:, p], grid, grid, about=about) for p in parts)
    return test, heldout
