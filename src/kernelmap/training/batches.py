"""Which contexts a step sees. All randomness comes from the seed and the epoch, so nothing needs to be stored."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from kernelmap.core.errors import InputError
from kernelmap.core.systems import SystemSet, random_draws, strided_draws
from kernelmap.training.recipe import Recipe


class Tile(NamedTuple):
    """A batch: every system with every draw. Systems that share their inputs share the work on them."""

    draws: Int[Tensor, "G d"]
    systems: Int[Tensor, " B"]
    seed: int = 0

    @property
    def size(self) -> int:
        return len(self.draws) * len(self.systems)

    def shard(self, rank: int, processes: int) -> "Tile":
        """One process's part: systems are dealt out, or draws where there are too few systems."""
        if len(self.systems) >= processes:
            return self._replace(systems=self.systems.tensor_split(processes)[rank])
        if len(self.draws) >= processes:
            return self._replace(draws=self.draws.tensor_split(processes)[rank])
        raise InputError(f"a batch of {self.size} contexts cannot be dealt out to {processes} processes.")


class Contexts:
    """The training and validation contexts of a system set, for one value of d.

    `seen` are the systems trained on, `unseen` those validated on: the same ones, unless the recipe keeps some apart.
    It may keep inputs apart, too: the last `targets` pairs of a validation draw are then of these.
    """

    def __init__(self, systems: SystemSet, d: int, recipe: Recipe, limit: int | None, targets: int = 0) -> None:
        self.recipe, self.d, self.pairs, self.targets = recipe, d, systems.pairs, targets
        if targets and d > systems.pairs:
            raise InputError(
                f"{systems.pairs} pairs of a system are too few for contexts of d = {d - targets} and the {targets} "
                "others that this map is trained to predict from them. Use a smaller d, or measure more pairs."
            )
        draws = strided_draws(systems.pairs, d)
        if limit is not None and limit < len(draws):
            # From end to end: a map that sees the pairs in their order does not extrapolate to later ones.
            draws = draws[torch.linspace(0, len(draws) - 1, limit).round().long()]
        if recipe.random_draws:
            draws = random_draws(systems.pairs, d, max(len(draws), 2), _generator(recipe.seed, -2))
        count, apart = len(systems.names), recipe.validation_systems
        if count <= apart:
            raise InputError(f"{count} systems are too few to keep {apart} for validation.")
        order = torch.randperm(count, generator=_generator(recipe.seed, -3))
        self.seen = order[apart:].sort().values
        self.unseen = order[:apart].sort().values if apart else self.seen
        self.validation, self.training = (draws, draws) if apart else self._split(draws)
        if recipe.validation_inputs:
            self._keep_inputs(recipe.validation_inputs, targets)

    def _keep_inputs(self, kept: int, targets: int) -> None:
        """Pairs up to `self.pairs` are for training; validation draws take their targets from the others."""
        if not 0 < targets <= kept or self.pairs - kept < self.d:
            raise InputError(
                f"{self.pairs} pairs, {kept} of them kept for validation, do not give draws of {self.d} for training "
                f"and {targets} targets for validation. Keep other numbers, or use a smaller d."
            )
        self.pairs -= kept
        generator = _generator(self.recipe.seed, -4)
        seen = random_draws(self.pairs, self.d - targets, len(self.validation), generator)
        unseen = self.pairs + random_draws(kept, targets, len(self.validation), generator)
        self.validation = torch.cat([seen, unseen], dim=1)

    def _split(self, draws: Int[Tensor, "n d"]) -> tuple[Int[Tensor, "v d"], Int[Tensor, "t d"]]:
        """Contexts for validation and for training, of the same systems."""
        kept = max(1, round(self.recipe.validation * len(draws)))
        if len(draws) <= kept:
            others = f" and {self.targets} pairs to predict" if self.targets else ""
            raise InputError(
                f"{self.pairs} pairs give {len(draws)} context(s) of d = {self.d - self.targets}{others}: too few to "
                "keep one for validation. Use --random-draws, which draws them anew in every epoch, or a smaller d."
            )
        order = torch.randperm(len(draws), generator=_generator(self.recipe.seed, -1))
        return draws[order[:kept]], draws[order[kept:]]

    def epoch(self, epoch: int) -> Iterator[Tile]:
        """All training contexts in random order; where there are several groups of draws, they take turns.

        A map that is shown one set of inputs for many steps forgets the others.
        """
        generator = _generator(self.recipe.seed, epoch)
        draws = self.training[torch.randperm(len(self.training), generator=generator)]
        if self.recipe.random_draws:
            draws = random_draws(self.pairs, self.d, len(draws), generator)
        size = min(len(self.seen), self.recipe.batch)
        groups = [list(self._tiles(group, size, generator)) for group in draws.split(max(1, self.recipe.batch // size))]
        for tiles in zip(*groups, strict=True):
            yield from tiles

    def _tiles(self, draws: Int[Tensor, "G d"], size: int, generator: torch.Generator) -> Iterator[Tile]:
        """The same draws with all systems, `size` of them at a time."""
        for systems in torch.randperm(len(self.seen), generator=generator).split(size):
            yield Tile(draws, self.seen[systems], int(torch.randint(2**31, (), generator=generator)))

    def validation_tiles(self, variants: int) -> Iterator[Tile]:
        """All validation contexts, once for each variant of the objective."""
        for draw in self.validation.split(1):
            for seed in range(variants):
                yield Tile(draw, self.unseen, seed)


def _generator(seed: int, epoch: int) -> torch.Generator:
    return torch.Generator().manual_seed((seed * 1_000_003 + epoch) % 2**63)
