"""Hook of mkdocs: README, CONTRIBUTING, CHANGELOG and the gallery, which lie beside `docs/`, as pages of the site."""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import gallery_pages as gallery

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
GALLERY = "Each page is a Python file that was run when the site was built; its figures are what it drew then.\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The gallery's pages stand in the navigation by their titles."""
    for section in config.nav or []:
        if isinstance(section, dict) and "Gallery" in section:
            section["Gallery"] += [{gallery.title(name): f"gallery/{name}.md"} for name in gallery.names()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=as_page((ROOT / name).read_text())))
    pages = [gallery.page(name) for name in gallery.names()]
    listed = "\n".join(f"- [{page.title}]({page.name}.md)" for page in pages)
    files.append(File.generated(config, "gallery/index.md", content=f"# Gallery\n\n{GALLERY}\n{listed}\n"))
    for page in pages:
        told = files.get_file_from_path(f"gallery/{page.name}.md")
        if told is not None:  # what was written about it comes first
            files.remove(told)
        content = page.markdown if told is None else f"{told.content_string}\n\n## As it was run\n\n{page.markdown}"
        files.append(File.generated(config, f"gallery/{page.name}.md", content=content))
        files.append(File.generated(config, f"gallery/{page.name}.ipynb", content=page.notebook))
        for name, figure in page.figures.items():
            files.append(File.generated(config, f"gallery/{name}", content=figure))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return as_page(markdown)


def as_page(text: str) -> str:
    """Links within the repository as links within the site; files that are no page of it are named only."""
    for name, page in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)?{name}", f"]({page}", text)
    text = text.replace("](docs/", "](")
    kept = r"(?<!\.md)(?<!\.png)(?<!\.ipynb)"
    return re.sub(rf"\[([^\]]*)\]\((?!https?:|#)(?=[^)]*[./])[^)#]*{kept}(?:#[^)]*)?\)", r"\1", text)
