"""States as flat dictionaries of arrays: the arrays of a part `group` are named `group.name`."""

from collections.abc import Mapping

from torch import Tensor

State = dict[str, Tensor]


def prefixed(group: str, state: Mapping[str, Tensor]) -> State:
    """The state of a part, to stand in the state of the whole."""
    return {f"{group}.{name}": value for name, value in state.items()}


def under(state: Mapping[str, Tensor], group: str) -> State:
    """The state of a part; of the whole without its parts for the empty name."""
    if not group:
        return {name: value for name, value in state.items() if "." not in name}
    return {name.removeprefix(f"{group}."): v for name, v in state.items() if name.startswith(f"{group}.")}
