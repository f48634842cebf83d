"""Hook of mkdocs: files of the repository that pages link to are part of the site, as text, so that no link is dead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"\]\(\.\./([^)#]+)(?:#[^)]*)?\)")
FOLDER = "repository"


def on_files(files: Any, config: Any) -> Any:
    """Add what the pages link to outside of their folder."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    pages = list(files.documentation_pages())
    for name in sorted({each for page in pages for each in LINK.findall(page.content_string)}):
        files.append(File.generated(config, f"{FOLDER}/{name}.txt", abs_src_path=str(root / name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead the links there."""
    return LINK.sub(rf"]({FOLDER}/\1.txt)", markdown)
