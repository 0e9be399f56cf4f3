"""Fields of several components, each by a map of its own."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import Grid
from kernelmap.core.kernel import Kernel
from kernelmap.maps.base import KernelMap


class Componentwise(KernelMap):
    """K = [K_1; K_2; ...]: one map of a kind for each component of the output, all of which see the whole input."""

    def __init__(self, kind: type[KernelMap], shape: ContextShape, options: Any) -> None:
        super().__init__(shape, options)
        self.name = kind.name
        self.kind, self.components = kind, shape.x.components
        part = replace(shape, M=shape.M // self.components, x=replace(shape.x, components=1))
        self.parts = nn.ModuleList(kind(part, options) for _ in range(self.components))

    @property
    def maps(self) -> list[KernelMap]:
        return [part for part in self.parts if isinstance(part, KernelMap)]

    def standardise(self, u: Tensor, f: Tensor) -> None:
        super().standardise(u, f)
        for part, values in zip(self.maps, f.chunk(self.components, dim=-1), strict=True):
            part.standardise(u, values)

    def begin(self, contexts: Callable[[], Iterable[Context]]) -> None:
        for i, part in enumerate(self.maps):
            part.begin(lambda i=i: (self.contexts(context)[i] for context in contexts()))

    def kernel(self, context: Context) -> Kernel:
        return self.kernel_at(context, context.x)

    def kernel_at(self, context: Context, x: Grid) -> Kernel:
        places = x.with_components(1)
        contexts = self.contexts(context)
        return self.joined([part.kernel_at(each, places) for part, each in zip(self.maps, contexts, strict=True)], x)

    def contexts(self, context: Context) -> list[Context]:
        """What each part sees: all of the input, its own component of the output."""
        x = context.x.with_components(1)
        return [Context.unchecked(context.U, F, context.y, x) for F in context.F.chunk(self.components, dim=-2)]

    def joined(self, kernels: list[Kernel], x: Grid) -> Kernel:
        lefts = [kernel.left for kernel in kernels if kernel.left is not None]
        if len(lefts) < self.components:
            return Kernel(torch.cat([kernel.values for kernel in kernels], dim=-2), kernels[0].y, x)
        ranks = [left.shape[-1] for left in lefts]
        blocks = [nnf.pad(left, (sum(ranks[:i]), sum(ranks[i + 1 :]))) for i, left in enumerate(lefts)]
        right = torch.cat([kernel.right for kernel in kernels], dim=-2)
        return Kernel(right, kernels[0].y, x, torch.cat(blocks, dim=-2))
