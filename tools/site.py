"""Hook of mkdocs: README, CONTRIBUTING and CHANGELOG, which lie beside `docs/`, as pages of the site."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=as_page((ROOT / name).read_text())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return as_page(markdown)


def as_page(text: str) -> str:
    """Links within the repository as links within the site; files that are no page of it are named only."""
    for name, page in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)?{name}", f"]({page}", text)
    text = text.replace("](docs/", "](")
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)(?=[^)]*[./])[^)#]*(?<!\.md)(?<!\.png)(?:#[^)]*)?\)", r"\1", text)
