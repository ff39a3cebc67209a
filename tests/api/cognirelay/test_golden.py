"""Does CogniRelay's dialect answer as the recorded system did?  (tests/golden/cognirelay)"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from api.cognirelay import ENDPOINTS
from schemas.surfaces.cognirelay.catalogue import TOOLS

SYSTEM = "cognirelay"
NAMES = sorted(path.stem for path in (Path(__file__).parents[2] / "golden" / SYSTEM).glob("*.json"))
CATALOGUES = ("/v1/discovery/tools", "/v1/manifest", "/v1/mcp")


@pytest.fixture(scope="module")
def missing(replay: ModuleType, unserved: Callable[..., list[str]]) -> dict[str, list[str]]:
    """The routes that scenarios need and that are not there."""
    there = {f"{one.method} {one.path}" for one in ENDPOINTS}
    unlisted = [route for route in TOOLS if route not in there]
    found = {}
    for name in NAMES:
        scenario = replay.load(SYSTEM, name)
        # A catalogue is only as it was recorded when every tool has its route.
        is_catalogue = any(step["request"]["path"] in CATALOGUES for step in scenario["steps"])
        found[name] = unserved(ENDPOINTS, scenario) + (unlisted if is_catalogue else [])
    return found


@pytest.fixture(scope="module")
def differences(
    request: pytest.FixtureRequest,
    served: Any,
    play_all: Callable[..., Any],
    missing: dict[str, list[str]],
) -> dict[str, Any]:
    """Where the answers differ, of every scenario that was asked for and has its routes."""
    asked = {item.callspec.params.get("name") for item in request.session.items if _is_here(item)}
    names = [name for name in NAMES if name in asked and not missing[name]]
    found: dict[str, Any] = play_all(served.server.url, SYSTEM, names, served.tenants)
    return found


def _is_here(item: pytest.Item) -> bool:
    return getattr(item, "path", None) == Path(__file__) and hasattr(item, "callspec")


@pytest.mark.parametrize("name", NAMES)
def test_scenario(name: str, differences: dict[str, Any], missing: dict[str, list[str]]):
    """Statuses are equal, every recorded field is there and equal; further fields are ours."""
    if missing[name]:
        pytest.skip(f"no route yet: {', '.join(missing[name])}")

    assert [] == [str(one) for one in differences[name]]
