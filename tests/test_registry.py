"""Registries: names are unique, and what is not there is named beside what is."""

import pytest

from kernelmap.core.errors import InputError
from kernelmap.core.registry import Registry
from kernelmap.maps import MAPS, NAO


def test_a_class_joins_under_its_name():
    registry: Registry[type] = Registry("kernelmap.nothing", "thing")

    @registry.register("first")
    class First:
        name: str

    assert First.name == "first"
    assert registry["first"] is First
    assert registry.names == ["first"]
    assert registry.register("first")(First) is First
    with pytest.raises(InputError, match="two things named 'first'"):
        registry.register("first")(int)
    assert registry["first"] is First


def test_what_is_not_there_is_named_beside_what_is():
    with pytest.raises(InputError, match=r"no map named 'NAO'; there are afno, .*nao"):
        _ = MAPS["NAO"]
    assert MAPS["nao"] is NAO
