"""Extension of mkdocstrings: in a docstring, lines `name: what it is` become a list, one below the other."""

import re
from textwrap import dedent
from typing import Any

from griffe import Docstring, Extension, Object

ITEM = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)
NAMED = re.compile(r"^(?:Attributes|Args|Returns):\n((?:    .*\n?)+)", re.MULTILINE)


def listed(text: str) -> str:
    """Parts between empty lines that begin with a name. Their further lines are indented already."""
    parts = NAMED.sub(lambda found: dedent(found[1]), text).split("\n\n")
    return "\n\n".join(ITEM.sub(r"- `\1`: ", part) if ITEM.match(part) else part for part in parts)


class Lists(Extension):
    """For every object with a docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring = Docstring(listed(obj.docstring.value), parent=obj)
