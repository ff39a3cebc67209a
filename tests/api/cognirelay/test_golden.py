"""Does CogniRelay's dialect answer as the recorded system did?  (tests/golden/cognirelay)"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SYSTEM = "cognirelay"
NAMES = sorted(path.stem for path in (Path(__file__).parents[2] / "golden" / SYSTEM).glob("*.json"))


@pytest.fixture(scope="module")
def differences(
    request: pytest.FixtureRequest, served: Any, play_all: Callable[..., Any]
) -> dict[str, Any]:
    """Where the answers differ, of every scenario that was asked for."""
    asked = {item.callspec.params.get("name") for item in request.session.items if _is_here(item)}
    names = [name for name in NAMES if name in asked]
    found: dict[str, Any] = play_all(served.server.url, SYSTEM, names, served.tenants)
    return found


def _is_here(item: pytest.Item) -> bool:
    return getattr(item, "path", None) == Path(__file__) and hasattr(item, "callspec")


@pytest.mark.parametrize("name", NAMES)
def test_scenario(name: str, differences: dict[str, Any]):
    """Statuses are equal, every recorded field is there and equal; further fields are ours."""
    assert [] == [str(one) for one in differences[name]]
