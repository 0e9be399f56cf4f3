"""Whitening the d features of the tokens: training sees well-conditioned features, the trained model does not know."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from kernelmap.errors import InputError
from kernelmap.maps import NAO, KernelMap
from kernelmap.systems import SystemSet

FLOOR = 1e-6


class Whitened(nn.Module):
    """weight = V C^(-1/2) with the trained V."""

    root: Tensor

    def __init__(self, root: Float[Tensor, "d d"]) -> None:
        super().__init__()
        self.register_buffer("root", root, persistent=False)

    def forward(self, V: Float[Tensor, "R d"]) -> Float[Tensor, "R d"]:
        return V @ self.root


def precondition(model: KernelMap, systems: SystemSet, draws: Tensor) -> None:
    """Reparametrise queries and keys by the covariance C of the standardised u-tokens' d features."""
    if not isinstance(model, NAO):
        raise InputError("only maps with queries and keys can be preconditioned.")
    context = systems.batch(draws, torch.arange(len(systems.names)))
    tokens = ((context.U.double() - model.u_mean) / model.u_std).flatten(0, -2)
    covariance = tokens.mT @ tokens / len(tokens)
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors @ torch.diag((values + FLOOR * values.max()).rsqrt()) @ vectors.mT
    for projection in model.projections:
        parametrize.register_parametrization(projection, "weight", Whitened(root.to(projection.weight)))


def plain_weights(model: KernelMap) -> dict[str, Tensor]:
    """The weights of the model without its reparametrisation."""
    weights = model.state_dict()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            del weights[f"{name}.parametrizations.weight.original"]
            weights[f"{name}.weight"] = module.weight.detach()
    return weights
