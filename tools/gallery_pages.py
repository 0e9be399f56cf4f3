"""Python files with text, as pages with their output and figures, and as notebooks without.

A file of `gallery/` begins with a docstring in Markdown; its cells begin with `# %%`, those of text with
`# %% [markdown]`. What a cell prints and the figures it draws, with pyplot or to a PNG, stand below it.
"""

import ast
import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jupytext

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "gallery"


class Page(NamedTuple):
    """Markdown with links to figures, the figures by name, and the notebook."""

    name: str
    title: str
    markdown: str
    figures: dict[str, bytes]
    notebook: str


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def title(name: str) -> str:
    return _story(FOLDER / f"{name}.py")[0].lstrip().partition("\n")[0].lstrip("# ")


def page(name: str) -> Page:
    """The file is run from top to bottom, in an empty directory."""
    story, code = _story(FOLDER / f"{name}.py")
    text = "\n".join(["# %% [markdown]", *(f"# {line}".rstrip() for line in story.strip().splitlines()), "", code])
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    parts, figures = [], {}
    with _somewhere() as folder:
        namespace: dict[str, object] = {"__name__": name}
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                parts.append(cell.source)
                continue
            printed, drawn = _run(cell.source, namespace, folder)
            parts.append(f"```python\n{cell.source}\n```")
            if printed:
                parts.append(f"```text\n{printed.rstrip()}\n```")
            for index, content in enumerate(drawn):
                figure = f"{name}-{number}-{index}.png"
                figures[figure] = content
                parts.append(f"![What the lines above draw]({figure})")
    parts.append(f"[The same as a notebook]({name}.ipynb), or `gallery/{name}.py`.")
    return Page(name, title(name), "\n\n".join(parts), figures, jupytext.writes(notebook, fmt="ipynb"))


def _story(path: Path) -> tuple[str, str]:
    """The docstring, and what comes after it."""
    source = path.read_text()
    module = ast.parse(source)
    if (docstring := ast.get_docstring(module)) is None:
        raise SystemExit(f"{path} must begin with a docstring that tells its story.")
    return docstring, "\n".join(source.splitlines()[module.body[0].end_lineno :])


@contextlib.contextmanager
def _somewhere() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def _run(source: str, namespace: dict[str, object], folder: Path) -> tuple[str, list[bytes]]:
    """What a cell prints, and its figures as PNG."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, f"{namespace['__name__']}.py", "exec"), namespace)
    for number in pyplot.get_fignums():
        pyplot.figure(number).savefig(folder / f"figure-{number}.png", dpi=120)
    pyplot.close("all")
    drawn = sorted(folder.glob("*.png"))
    contents = [path.read_bytes() for path in drawn]
    for path in drawn:
        path.unlink()
    return printed.getvalue(), contents
