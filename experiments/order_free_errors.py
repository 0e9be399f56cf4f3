"""Errors of a kernel map, and what its error bar covers, on contexts drawn at random from systems it has not seen."""

import torch
from torch import Tensor

from kernelmap.core.kernel import Kernel
from kernelmap.core.metrics import operator_error
from kernelmap.core.systems import SystemSet, random_draws
from kernelmap.evaluation.evaluate import estimate
from kernelmap.maps import KernelMap
from kernelmap.posterior import IntegralPosterior

DRAWS = 4


@torch.no_grad()
def measure(
    model: KernelMap, test: SystemSet, heldout: SystemSet, d: int, rows: Tensor, noiseless: Tensor | None = None
) -> dict[str, float]:
    """Errors over all test systems and `DRAWS` random contexts of each, in percent; kernels where the truth is known.

    `rows` are the nodes between which kernels are compared. Predictions are compared with the measured responses, and
    their error is that against `noiseless` ones, where there are such.
    """
    found: list[dict[str, Tensor]] = []
    for index in range(len(test.names)):
        draws = random_draws(test.pairs, d, DRAWS, torch.Generator().manual_seed(index))
        context = test.batch(draws, torch.tensor([index])).to(torch.float64)
        estimated = estimate(model, context)
        U, F = heldout.u[0 if heldout.shares_inputs else index].mT.double(), heldout.f[index].mT.double()
        target = F if noiseless is None else noiseless[index].mT
        part = {
            "context": operator_error(estimated.kernel.apply(context.U), context.F, test.x).mean(),
            "heldout": operator_error(estimated.kernel.apply(U), target, test.x).mean(),
        }
        if test.kernels is not None:
            part |= _of_kernels(estimated.kernel, estimated.std, test.kernels[index], rows)
        if isinstance(estimated.posterior, IntegralPosterior):
            mean, std = (each[..., rows, :] for each in estimated.posterior.predict(U))
            part["prediction_coverage"] = ((mean - F[rows]).abs() <= 1.96 * std).double().mean()
            part["prediction_std_over_error"] = (std.square().mean() / (mean - F[rows]).square().mean()).sqrt()
        found.append(part)
    return {key: round(float(torch.stack([part[key] for part in found]).mean()) * _percent(key), 3) for key in found[0]}


def _percent(key: str) -> float:
    return 1.0 if key.endswith("over_error") else 100.0


def _of_kernels(kernel: Kernel, std: Tensor | None, truth: Tensor, rows: Tensor) -> dict[str, Tensor]:
    error, truth = (kernel.values - truth)[..., rows, :][..., rows], truth[rows][:, rows]
    found = {"kernel": (error.square().sum(dim=(-2, -1)).sqrt() / truth.norm()).mean()}
    if std is not None:
        std = std[..., rows, :][..., rows]
        found["kernel_coverage"] = (error.abs() <= 1.96 * std).double().mean()
        found["kernel_std_over_error"] = (std.square().mean() / error.square().mean()).sqrt()
    return found
