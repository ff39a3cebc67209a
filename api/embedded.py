"""How does the engine run inside another program?  `strata_client` opens it, by this one name.

There is no socket and no process of ours: whoever opens the application drives it, request by
request, on an event loop of its own.
"""

from typing import Any

from api.app import App
from engine.engine import open_engine
from engine.settings import SettingsError, load_settings

__all__ = ["SettingsError", "application"]


def application(data: str, settings: dict[str, Any]) -> App:
    """The application over a data directory; its lifespan opens and closes the engine.

    A backlog is folded in this process: a library starts no others.
    """
    found = load_settings(flags={"projection": "thread", **settings, "data": data})
    return App(lambda: open_engine(found))
