"""Where do the bytes of an import come from, and may they?

Inline, an uploaded blob, a file under a folder that the operator names, or an https address. An
address is resolved once, checked against every network that is not the open internet, and then
connected to by number: what a name means cannot change between the two (SSRF).
"""

import contextlib
import ipaddress
import socket
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from engine.blobs import BlobReading, get_blob
from engine.importers.rows import CUT_OFF
from schemas import limits
from schemas.caller import Caller
from schemas.errors import InvalidParameter

if TYPE_CHECKING:
    from engine.engine import Engine

_GZIP: Final = b"\x1f\x8b"
_WBITS: Final = zlib.MAX_WBITS | 16
_STEP: Final = 16 * limits.KIB
_FORBIDDEN: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "::/96",
        "::ffff:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
"""Whatever is not a host of the open internet, and every form in which one may hide another."""


class SourceFailed(Exception):
    """The bytes cannot be had; the message says why."""


def read_source(engine: "Engine", caller: Caller, source: dict[str, str]) -> bytes:
    """All bytes of a source, unpacked, within the limit."""
    if "blob_id" in source:
        reading: BlobReading = get_blob(engine, caller, source["blob_id"])
        return _whole(reading.parts)
    if "path" in source:
        return _whole(_file(allowed_path(engine, source["path"])))
    return read_url(source["url"])


def read_url(url: str) -> bytes:
    """All bytes behind an address that was allowed, unpacked; a worker reads with it, too."""
    return _whole(_fetched(url))


def allowed_path(engine: "Engine", path: str) -> Path:
    """A file under the operator's folder, links followed before that is judged."""
    folder = engine.settings.import_folder
    if folder is None:
        reason = "no folder is open to imports here (CORTEX_IMPORT_FOLDER)"
        raise InvalidParameter(field="source.path", reason=reason)
    root = folder.resolve()
    found = (root / path).resolve()
    if not found.is_relative_to(root) or not found.is_file():
        raise InvalidParameter(field="source.path", reason="no such file in the import folder")
    return found


def check_url(engine: "Engine", url: str) -> None:
    """Https to the open internet, and only where the deployment lets the server call out."""
    if not engine.settings.import_urls:
        reason = "this server fetches nothing (CORTEX_IMPORT_URLS=1 lets it)"
        raise InvalidParameter(field="source.url", reason=reason)
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme != "https" or not parts.hostname or port not in (None, 443) or parts.username:
        raise InvalidParameter(field="source.url", reason="https on port 443, without credentials")


def public_address(host: str) -> str:
    """The one address to connect to; SourceFailed when the name leads anywhere else."""
    try:
        found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceFailed(f"{host[:100]} has no address") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses or not all(is_public(address) for address in addresses):
        raise SourceFailed(f"{host[:100]} is not on the open internet")
    return str(addresses[0])


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is a host of the open internet and of nothing else."""
    return address.is_global and not any(
        address.version == network.version and address in network for network in _FORBIDDEN
    )


def _fetched(url: str) -> Iterator[bytes]:
    parts = urlsplit(url)
    host = str(parts.hostname)
    address = public_address(host)
    pinned = f"[{address}]" if ":" in address else address
    asked = f"https://{pinned}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
    headers = {"Host": host, "Accept-Encoding": "identity"}
    try:
        with (
            httpx.Client(timeout=limits.FETCH_S_MAX, follow_redirects=False) as client,
            client.stream(
                "GET", asked, headers=headers, extensions={"sni_hostname": host}
            ) as answer,
        ):
            if answer.status_code != 200:
                raise SourceFailed(f"{host} answered {answer.status_code}")
            yield from answer.iter_raw()
    except httpx.HTTPError as error:
        raise SourceFailed(f"{host} cannot be read: {type(error).__name__}") from error


def _file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(limits.MIB):
            yield piece


def _whole(parts: Iterator[bytes]) -> bytes:
    """Everything, unpacked as it comes when it is gzip; never more than the limit.

    What stands before damage, or before the end of a file that was cut off, is good: it is taken,
    and a line of its own says that the rest is not there.
    """
    first = next(parts, b"")
    pieces: Iterator[bytes] = chain((first,), parts)
    if first.startswith(_GZIP):
        pieces = _unpacked(pieces)
    found = bytearray()
    try:
        for piece in pieces:
            found += piece
            if len(found) > limits.IMPORT_BYTES_MAX:
                raise SourceFailed(f"more than {limits.IMPORT_BYTES_MAX} bytes, unpacked")
    except _Damaged as error:
        if not found:
            raise SourceFailed(f"not a gzip file: {error}") from error
        found += b"\n" + CUT_OFF
    return bytes(found)


class _Damaged(Exception):
    """From here on nothing can be unpacked."""


def _unpacked(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The members of a gzip file one after the other, in steps that no bomb makes large."""
    unpacker = zlib.decompressobj(_WBITS)
    for part in parts:
        for at in range(0, len(part), _STEP):
            piece = part[at : at + _STEP]
            while piece:
                if unpacker.eof:
                    unpacker = zlib.decompressobj(_WBITS)
                before = unpacker.copy()
                try:
                    yield unpacker.decompress(piece, limits.MIB)
                except zlib.error as error:
                    yield from _until_damage(before, piece)
                    raise _Damaged(str(error)) from error
                # Between and after members there may be padding.
                rest = unpacker.unused_data.lstrip(b"\0") if unpacker.eof else b""
                piece = rest or unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise _Damaged("it is cut off")


def _until_damage(unpacker: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    """What a step gives up to the byte that is wrong."""
    with contextlib.suppress(zlib.error):
        for at in range(len(piece)):
            yield unpacker.decompress(piece[at : at + 1])
