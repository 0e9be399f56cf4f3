"""Mutants that the tests must kill: each switches one thing off, and some test must fail.

    python tools/mutants.py [NAME ...]

A mutant is made in a copy of the source tree, never in the tree itself. What survives is named, and the exit code is 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A replacement in a file of src/kernelmap, and the tests that are to notice it."""

    file: str
    old: str
    new: str
    tests: str


MUTANTS = {
    "std of a stencil without its variance": Mutant(
        "posterior/stencil/posterior.py",
        "return self.variance.sqrt()",
        "return 0 * self.variance",
        "test_contract.py::test_samples_have_the_posterior_moments",
    ),
    "noise never found by the stencil": Mutant(
        "posterior/stencil/local.py",
        "NOISE_LEVELS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)",
        "NOISE_LEVELS = (0.0,)",
        "test_local.py",
    ),
    "systematic errors of solutions left out": Mutant(
        "posterior/stencil/solution.py", "theta * (G.abs() @ v.sqrt()).square()", "0 * theta", "test_local.py"
    ),
    "f never averaged over cells": Mutant(
        "posterior/stencil/averaging.py", "GAMMAS = (0.0, 1 / 12, 1 / 6)", "GAMMAS = (0.0,)", "test_stencil_meshes.py"
    ),
    "errors of a mesh never add up": Mutant(
        "posterior/stencil/solution.py",
        "return found.with_systematic_errors()",
        "return found",
        "test_stencil_meshes.py",
    ),
    "smooth media have two phases": Mutant(
        "report/figures.py", "two = found.log_odds > 0", "two = True", "test_stencil_meshes.py"
    ),
    "Poisson's ratio is always the learned one": Mutant(
        "posterior/elastic/map.py", "better = said.next(ratio, TOLERANCE)", "better = ratio", "test_material.py"
    ),
    "the inverse never selected": Mutant(
        "posterior/stencil/map.py", "return solution if", "return self if", "test_darcy_discovery.py"
    ),
    "what no pair sees has no variance": Mutant(
        "posterior/kernel1d/evidence.py",
        " + (self.kappa * self.gamma)[:, None] * unseen",
        "",
        "test_kernel1d_algebra.py::test_conditioning_is_that_of_a_dense_gaussian",
    ),
    "noise below its least level": Mutant(
        "posterior/kernel1d/evidence.py",
        ".clamp(min=math.log(shape.least_kappa(floor)))",
        "",
        "test_kernel1d_algebra.py::test_floor_bounds_the_noise",
    ),
    "jumps of tokens make no error": Mutant(
        "posterior/kernel1d/errors.py",
        "UNIFORM_VARIANCE = 1 / 12",
        "UNIFORM_VARIANCE = 0.0",
        "test_kernel1d_algebra.py::test_jumps_have_the_variance_of_a_random_place",
    ),
    "repeated pairs count as different ones": Mutant(
        "posterior/kernel1d/fit.py",
        "group = distinct_inputs(U)",
        "group = torch.arange(U.shape[1])",
        "test_kernel1d_invariances.py::test_repeated_pairs_are_averaged",
    ),
    "a mixture as wide as its parts": Mutant(
        "posterior/kernel1d/mixture.py",
        "weights @ (variances + (means - mean).square())",
        "weights @ variances",
        "test_kernel1d.py::test_samples_have_the_posterior_moments",
    ),
    "no second order": Mutant(
        "posterior/elastic/second_order.py",
        "return -G @ quadratic",
        "return -0 * G @ quadratic",
        "test_second_order.py",
    ),
    "errors do not grow with the load": Mutant(
        "posterior/elastic/posterior.py", ".square().clamp(min=1)", ".square().clamp(1, 1)", "test_second_order.py"
    ),
    "samples without spread": Mutant(
        "core/algebra/linear_gaussian.py",
        "return self.mean + self.omega *",
        "return self.mean + 0 *",
        "test_contract.py::test_samples_have_the_posterior_moments",
    ),
    "intervals of one standard deviation": Mutant(
        "core/posterior.py",
        "NormalDist().inv_cdf((1 + level) / 2)",
        "1.0",
        "test_contract.py::test_intervals_hold_what_they_say",
    ),
    "log_prob without its norm": Mutant(
        "core/posterior.py", " - std.log()", "", "test_contract.py::test_log_prob_is_a_density"
    ),
    "the check sees the pairs it keeps back": Mutant(
        "discovery/check.py",
        "context.select((~kept).nonzero()[:, 0])",
        "context",
        "test_discovery.py::test_the_check_does_not_see_the_pairs_it_keeps_back",
    ),
    "half as many pairs kept back": Mutant("discovery/check.py", "HELDOUT = 0.2", "HELDOUT = 0.1", "test_discovery.py"),
    "the order of pairs forgotten in places": Mutant(
        "core/places.py", "Places(self.values[pairs], self.names)", "self", "test_context.py"
    ),
    "a second map of one name replaces the first": Mutant(
        "core/registry.py", "if other is not cls:", "if False:", "test_registry.py"
    ),
    "constrained values take noise": Mutant(
        "core/context.py",
        "return (F != 0).any(dim=-1).reshape(-1, F.shape[-2]).any(dim=0)",
        "return (F == F)[..., 0].reshape(-1, F.shape[-2])[0]",
        "test_systems.py test_material.py",
    ),
    "a convolution that reads forwards": Mutant(
        "operators/convolution.py",
        "return windows.flip(-1)",
        "return windows",
        "test_convolution.py::test_step_response_of_an_exponential",
    ),
    "no pair is an outlier": Mutant(
        "posterior/kernel1d/measured/outliers.py",
        "OUTLIER = 7.0",
        "OUTLIER = 1e9",
        "test_outliers.py::test_outliers_are_named_and_do_not_touch_the_kernel",
    ),
    "errors in time never found": Mutant(
        "posterior/kernel1d/measured/correlation.py",
        "{WHITE_NOISE: math.log(0.5)} | dict.fromkeys(tried, math.log(0.5 / len(tried)))",
        "{WHITE_NOISE: 0.0}",
        "test_errors_in_time.py::test_errors_in_time_are_found_and_white_ones_are_not",
    ),
    "tails that are known to be zero": Mutant(
        "posterior/kernel1d/measured/responses.py",
        "TAIL = 1e-3",
        "TAIL = 0.0",
        "test_responses_prior.py::test_no_tail_is_known_to_be_zero",
    ),
    "corners of u taken for noise": Mutant(
        "discovery/noisy_inputs.py",
        "EVERYWHERE = 0.5",
        "EVERYWHERE = 0.0",
        "test_noise_on_u.py::test_corners_of_u_are_not_noise",
    ),
    "no offset of data in time": Mutant(
        "posterior/kernel1d/measured/nuisance.py",
        "return (OFFSET,) if in_time(context) else ()",
        "return ()",
        "test_measurements.py::test_an_offset_is_found_and_does_not_touch_the_kernel",
    ),
    "K(x, y): pairs that tell nothing": Mutant(
        "posterior/integral/generic/component.py",
        "(prior - cross.square() @ self._gain)",
        "(prior - 0 * cross.square() @ self._gain)",
        "test_generic_integral.py::test_mean_and_band_are_those_of_the_dense_gaussian",
    ),
    "K(x, y): a mixture as wide as its parts": Mutant(
        "posterior/integral/generic/mixture.py",
        "* within + between",
        "* within",
        "test_generic_integral.py::test_a_mixture_has_the_moments_of_its_parts_together",
    ),
    "K(x, y): evidence without its determinant": Mutant(
        "posterior/integral/generic/evidence.py",
        "(misfit + rows[:, None, None] * log_det)",
        "misfit",
        "test_generic_integral.py::test_evidence_is_that_of_the_dense_gaussian",
    ),
    "K(x, y): predictions without noise": Mutant(
        "posterior/integral/generic/posterior.py",
        "variance + mixture.s2",
        "variance",
        "test_generic_integral.py::test_predictions_are_those_of_the_kernels_drawn",
    ),
    "K(x, y): every response is linear": Mutant(
        "posterior/integral/generic/nonlinearity.py",
        "GAMMA = (0.01, 0.03, 0.1, 0.3, 1.0)",
        "GAMMA = (0.0,)",
        "test_generic_integral.py::test_responses_that_are_not_linear_are_named",
    ),
    "what was suggested counts for nothing": Mutant(
        "discovery/suggest.py",
        "return (1 - (noise / (variance + noise)) ** 0.5) / variance",
        "return 0.0",
        "test_suggest.py::test_bands_are_those_of_the_closed_form",
    ),
    "half an interval holds twice as much": Mutant(
        "evaluation/calibration.py",
        "<= level / 2",
        "<= level",
        "test_kernel1d_learning.py::test_calibrated_on_draws_from_its_own_prior",
    ),
}


def killed(mutant: Mutant) -> bool:
    """Whether a test fails on a copy of the tree with the mutant in it."""
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place)
        for part in ("src", "tests", "experiments", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, tree / part)
        path = tree / "src" / "kernelmap" / mutant.file
        text = path.read_text()
        if mutant.old not in text:
            raise SystemExit(f"{mutant.file} does not hold {mutant.old!r}; bring the list up to date.")
        path.write_text(text.replace(mutant.old, mutant.new, 1))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        tests = [f"tests/{name}" for name in mutant.tests.split()]
        done = subprocess.run([*command, *tests], cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"the tests could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.returncode == 1


def main() -> None:
    names = sys.argv[1:] or list(MUTANTS)
    table, survivors = Table("mutant", "file", "killed"), []
    for name in names:
        dead = killed(MUTANTS[name])
        print(f"{'killed' if dead else 'SURVIVED'}: {name}", flush=True)
        table.add_row(name, MUTANTS[name].file, "yes" if dead else "[bold red]no[/]")
        survivors += [] if dead else [name]
    Console().print(table)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
