"""Reading and writing files: whole or not at all, one writer at a time, and with errors that say what is wrong."""

from kernelmap.core.files.hdf5 import entry, open_hdf5, read_array, read_attribute, read_text, read_values
from kernelmap.core.files.json import parse_json, read_json, strict, write_json
from kernelmap.core.files.locks import locked
from kernelmap.core.files.reading import existing_file, file_sha256, is_file, reading
from kernelmap.core.files.tensors import read_tensors, write_tensors
from kernelmap.core.files.together import together
from kernelmap.core.files.writing import atomic_path, require_other, writing

__all__ = [
    "atomic_path",
    "entry",
    "existing_file",
    "file_sha256",
    "is_file",
    "locked",
    "open_hdf5",
    "parse_json",
    "read_array",
    "read_attribute",
    "read_json",
    "read_tensors",
    "read_text",
    "read_values",
    "reading",
    "require_other",
    "strict",
    "together",
    "write_json",
    "write_tensors",
    "writing",
]
