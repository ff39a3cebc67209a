"""Which pages of the site are no files of this folder?  The reference, and pages from the root."""

import logging
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files, InclusionLevel

from api.reference import pages

ROOT: Final = Path(__file__).resolve().parent.parent
FROM_ROOT: Final = {
    "benchmarks/index.md": "bench/RESULTS.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/architecture.md": "ARCHITECTURE.md",
}

# The theme asks for attention to its own future; a build says what is wrong with our pages only.
logging.getLogger("material.templates").setLevel(logging.CRITICAL)


def on_files(files: Files, *, config: Any) -> Files:
    """Add what is made from the code, and what lies beside it."""
    for uri, text in pages().items():
        listed = uri.count("/") == 1 or uri.endswith("index.md")
        level = InclusionLevel.INCLUDED if listed else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, content=text, inclusion=level))
    for uri, source in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=text))
    for plot in sorted((ROOT / "bench" / "plots").glob("*.png")):
        uri = f"benchmarks/plots/{plot.name}"
        files.append(File.generated(config, uri, abs_src_path=str(plot)))
    for file in files:
        if re.match(r"adr/\d{4}-", file.src_uri):
            file.inclusion = InclusionLevel.NOT_IN_NAV  # its index leads to it
    return files
