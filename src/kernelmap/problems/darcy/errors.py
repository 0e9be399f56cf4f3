"""Errors on Darcy flow: over all test systems, between interior nodes, and how well the microstructure is found."""

from typing import Any

import torch

from kernelmap.core.context import Context
from kernelmap.core.kernel import Kernel
from kernelmap.core.systems import strided_draws
from kernelmap.evaluation.evaluate import Estimated, Focus, errors, estimate, evaluate
from kernelmap.evaluation.microstructure import far_mass, interior, microstructure
from kernelmap.maps import KernelMap, ProbabilisticMap
from kernelmap.posterior import LocalPosteriorMap, pointwise
from kernelmap.problems.darcy.data import DarcyData
from kernelmap.problems.darcy.tokens import smoothness, with_tokens


def errors_on_darcy(model: KernelMap, data: DarcyData, d: int) -> dict[str, Any]:
    """The fields of `evaluate`, averaged over the test systems, under the name `test`.

    Held-out pairs have sources that no training system has seen. Kernels are compared between interior nodes: on the
    boundary ring the pairs do not determine them. From pressure to source (p-to-g), the share of interior nodes whose
    phase is found, and the mass of |K| beyond two steps of the mesh, come too. A local posterior map, which knows
    stiffnesses, gives Green's functions (g-to-p) by their inverse; from b to p, which is not linear, its place is taken
    by a pointwise kernel on tokens g[b], which has no learned weights.
    """
    task = data.test.about["task"]
    inside = interior(data.test.x)
    focus = Focus(inside, inside.double())
    if task == "b-to-p" and isinstance(model, LocalPosteriorMap):
        tokens = with_tokens(data)
        found = {"parameters": 0, "systems": errors(_of_tokens, tokens.test, d, tokens.heldout, focus)}
    else:
        found = evaluate(_selected(model, data, d), data.test, d, data.heldout, focus)
    systems = list(found["systems"].values())
    test = {key: _mean([each[key] for each in systems]) for key in systems[0]}
    if task == "p-to-g":
        test |= _phases(model, data, d)
    return {"parameters": found["parameters"], "systems": {"test": test}}


def _selected(model: KernelMap, data: DarcyData, d: int) -> KernelMap:
    """The map itself or, of a probabilistic one, the relative that the first context favours."""
    if not isinstance(model, ProbabilisticMap):
        return model
    with torch.no_grad():
        return model.select_model(data.test.batch(strided_draws(data.test.pairs, d)[:1], torch.arange(1))[0, 0])


def _of_tokens(context: Context) -> Estimated:
    found = pointwise(context.to(torch.float64), smoothness().tolist())
    return Estimated(found.kernel, found.std)


def _phases(model: KernelMap, data: DarcyData, d: int) -> dict[str, float | None]:
    assert data.b is not None
    draws = strided_draws(data.test.pairs, d)
    accuracies, masses = [], []
    for index, b in enumerate(data.b):
        batch = estimate(model, data.test.batch(draws, torch.tensor([index]))).kernel
        for values in batch.values[:, 0]:
            kernel = Kernel(values, batch.y, batch.x)
            accuracies.append(microstructure(kernel).accuracy((b > b.mean()).flatten()))
            masses.append(far_mass(kernel))
    return {"microstructure_accuracy": _mean(accuracies), "far_mass": _mean(masses)}


def _mean(values: list[Any]) -> float | None:
    return None if None in values else sum(values) / len(values)
