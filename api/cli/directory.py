"""What goes wrong with a data directory, and what should be done about it?"""

from collections.abc import Iterator
from contextlib import contextmanager

from api.cli.shell import Failure
from engine.engine import StoreError
from engine.issuers import IssuerError
from engine.settings import SettingsError


@contextmanager
def readable_errors() -> Iterator[None]:
    """What goes wrong with a data directory, said without a traceback."""
    try:
        yield
    except (StoreError, SettingsError, IssuerError, OSError) as error:
        message = str(error)
        if "LOCK" in message:
            message += (
                "\na server is using this data directory: stop it, or use --url where offered"
            )
        raise Failure(message) from error
