"""Does CogniRelay's dialect answer as the recorded system did?  (tests/golden/cognirelay)"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from api.cognirelay import ENDPOINTS

SYSTEM = "cognirelay"
NAMES = sorted(path.stem for path in (Path(__file__).parents[2] / "golden" / SYSTEM).glob("*.json"))

_USUAL = ["read:files", "read:index", "write:projects", "write:messages", "write:journal", "search"]
PRINCIPALS = {
    "owner": [*_USUAL, "admin:peers"],
    "alice": _USUAL,
    "bob": _USUAL,
    "carol": _USUAL,
    "reader": ["read:files"],
}


@pytest.fixture(scope="module")
def differences(
    *,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    start_server: Callable[..., Any],
    tenants: Callable[..., Any],
    play_all: Callable[..., Any],
    replay: ModuleType,
    unserved: Callable[..., list[str]],
) -> Iterator[dict[str, Any]]:
    """Where the answers differ, of every scenario that was asked for and has its routes."""
    asked = {item.callspec.params.get("name") for item in request.session.items if _is_here(item)}
    names = [
        name
        for name in NAMES
        if name in asked and not unserved(ENDPOINTS, replay.load(SYSTEM, name))
    ]
    folder = tmp_path_factory.mktemp(SYSTEM)
    made = tenants(PRINCIPALS)
    known = made.write(folder / "principals.json", [f"t{name.partition('-')[0]}" for name in NAMES])
    server = start_server(
        folder / "data", "--surface", SYSTEM, "--principals", str(known), CORTEX_EMBEDDER="hashing"
    )
    yield play_all(server.url, SYSTEM, names, made)
    server.stop()


def _is_here(item: pytest.Item) -> bool:
    return getattr(item, "path", None) == Path(__file__) and hasattr(item, "callspec")


@pytest.mark.parametrize("name", NAMES)
def test_scenario(
    name: str,
    differences: dict[str, Any],
    replay: ModuleType,
    unserved: Callable[..., list[str]],
):
    """Statuses are equal, every recorded field is there and equal; further fields are ours."""
    missing = unserved(ENDPOINTS, replay.load(SYSTEM, name))
    if missing:
        pytest.skip(f"no route yet: {', '.join(missing)}")

    assert [] == [str(one) for one in differences[name]]
