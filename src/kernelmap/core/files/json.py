"""JSON as the standard has it: no NaN, no Infinity."""

import json
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from kernelmap.core.errors import InputError
from kernelmap.core.files.limits import require_memory
from kernelmap.core.files.reading import existing_file, reading
from kernelmap.core.files.writing import atomic_path

PER_CHARACTER = 40
"""Bytes of Python objects that a character of JSON can become."""


def strict(value: Any) -> Any:
    """With None for what is not a number."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: strict(each) for key, each in value.items()}
    return [strict(each) for each in value] if isinstance(value, (list, tuple)) else value


def write_json(path: Path | str, value: Any) -> None:
    text = json.dumps(strict(value), indent=2, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path | str) -> Any:
    path = existing_file(path, "a JSON file")
    with reading(path, "JSON file", "write it again"):
        require_memory(path, PER_CHARACTER * path.stat().st_size, "this JSON file")
        return parse_json(path.read_bytes(), path)


def parse_json(text: str | bytes, path: Path | str) -> Any:
    """The value of a text that was found in the file `path`."""
    try:
        decoded = text if isinstance(text, str) else text.decode()
        return json.loads(decoded, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON ({error}). Was it cut short?") from error


def _finite(word: str) -> float:
    return value if isfinite(value := float(word)) else _refuse(word)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values under one key, nobody knows which is meant."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError(f"a key stands twice among {', '.join(list(found)[:5])}")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
