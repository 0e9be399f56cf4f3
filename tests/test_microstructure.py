"""Two phases from a kernel: thresholds against a plain search, maps and masses against kernels made by hand."""

import pytest
import torch

from kernelmap.core.errors import InputError
from kernelmap.core.grids import rectangle
from kernelmap.core.kernel import Kernel
from kernelmap.evaluation.microstructure import far_mass, interior, microstructure, otsu


def test_otsu_is_the_best_of_all_thresholds():
    generator = torch.Generator().manual_seed(0)
    values = torch.cat([torch.randn(30, generator=generator), 4 + 0.5 * torch.randn(12, generator=generator)]).double()

    def between(threshold: float) -> float:
        low, high = values[values <= threshold], values[values > threshold]
        return 0.0 if not len(high) else len(low) * len(high) * float((low.mean() - high.mean()) ** 2)

    assert between(otsu(values)) == pytest.approx(max(between(float(t)) for t in values))


def test_otsu_of_equal_values_says_so():
    with pytest.raises(InputError, match="two phases cannot be distinguished"):
        otsu(torch.ones(5))


def local_kernel(n: int = 7) -> tuple[Kernel, torch.Tensor]:
    """Twice as strong in the right half, acting on the node and the next one."""
    grid = rectangle(n)
    strength = torch.where(grid.points[:, 0] > 0.5, 2.0, 1.0).double()
    values = torch.diag(strength) - 0.5 * torch.diag(strength[1:], 1)
    return Kernel(values / grid.weights, grid, grid), strength > 1.5


def test_phases_of_a_kernel_made_by_hand():
    kernel, truth = local_kernel()
    found = microstructure(kernel)
    assert found.accuracy(truth) == 1
    assert int(found.known.sum()) == 25
    torch.testing.assert_close(found.probability, found.stiff.double())
    std = torch.full_like(kernel.values, 1e-3)
    assert ((microstructure(kernel, std).probability > 0.99) == found.stiff).all()
    wide = microstructure(kernel, 1e6 * std).probability
    assert ((wide > 0.4) & (wide < 0.6)).all()


def test_wrong_phases_count():
    kernel, truth = local_kernel()
    wrong = truth.clone()
    wrong[24] = not wrong[24]
    assert microstructure(kernel).accuracy(wrong) == pytest.approx(24 / 25)


def test_mass_far_away():
    kernel, _ = local_kernel()
    assert far_mass(kernel) == 0
    inside = interior(kernel.x).nonzero()[:, 0]
    values = kernel.values.clone()
    total = float(values[inside][:, inside].abs().sum())
    values[inside[0], inside[-1]] = total
    assert far_mass(Kernel(values, kernel.y, kernel.x)) == pytest.approx(0.5)


def test_only_one_system_on_a_plane_mesh():
    kernel, _ = local_kernel()
    with pytest.raises(InputError, match="plane mesh"):
        microstructure(Kernel(kernel.values[None], kernel.y, kernel.x))
