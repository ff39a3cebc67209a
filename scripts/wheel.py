"""What does a wheel hold beside the sources?  With STRATA_COMPILE=1, the compiled modules.

Without it a wheel is plain Python and runs everywhere; with it, it is made for one platform, as in
the image (ADR 0040). An editable install is never compiled: scripts/compile makes a copy for that.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Beside this file, which is not on the path of who builds.
sys.path.insert(0, str(Path(__file__).parent))
import compiling

_TYPED = ("msgspec", "starlette", "numpy<3", "cryptography")
"""Libraries whose types the compiler looks at."""


class Compiled(BuildHookInterface):  # type: ignore[misc, type-arg]
    """Compiles what is asked for, and puts it beside its sources."""

    _place: tempfile.TemporaryDirectory[str] | None = None

    @property
    def _is_wanted(self) -> bool:
        return os.environ.get("STRATA_COMPILE") == "1"

    def dependencies(self) -> list[str]:
        """What the environment of the build needs besides hatchling."""
        asked: list[str] = self.metadata.core.optional_dependencies["compile"]
        return [*asked, *_TYPED] if self._is_wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the files."""
        if not self._is_wanted or version == "editable":
            return
        self._place = tempfile.TemporaryDirectory(prefix="strata-wheel-")
        folder = Path(self._place.name)
        compiling.compile_into(folder)
        for library in sorted(folder.rglob("*.so")):
            build_data["force_include"][str(library)] = str(library.relative_to(folder))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """What was compiled is in the wheel."""
        if self._place is not None:
            self._place.cleanup()
