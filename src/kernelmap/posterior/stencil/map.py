"""The stencil map: a local operator or, where the pairs favour it, the solution operator of one."""

from kernelmap.core.context import Context
from kernelmap.core.errors import InputError
from kernelmap.core.progress import tracked
from kernelmap.maps.registry import register
from kernelmap.posterior.stencil.local import LocalPosteriorMap
from kernelmap.posterior.stencil.solution import SolutionPosteriorMap


@register("local-posterior")
class StencilMap(LocalPosteriorMap):
    """A local posterior map that knows when its inverse explains the pairs better."""

    def select_model(self, context: Context) -> LocalPosteriorMap:
        """This map, or the solution operator with its weights where that leaves less of the pairs unexplained."""
        solution = SolutionPosteriorMap.of(self)
        try:
            residuals = [model.posterior(context).relative_residual for model in tracked((solution, self))]
        except InputError:
            return self
        return solution if bool((residuals[0] < residuals[1]).all()) else self
