"""Can an import be made to read what it should not?"""

import gzip
import ipaddress
import socket
import zlib
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.importers.rows import CUT_OFF
from engine.settings import Settings
from engine.sources import (
    SourceFailed,
    allowed_path,
    check_url,
    is_public,
    public_address,
    read_source,
)
from schemas import limits
from schemas.errors import InvalidParameter

INSIDE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
    "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
    "::1", "::", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fe80::1",
    "fec0::1", "fc00::1", "ff02::1", "2001:db8::1",
]  # fmt: skip
OUTSIDE = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946"]


class Home:
    """As much of an engine as the sources ask for."""

    def __init__(self, **settings):
        self.settings = Settings(**settings)


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_not_the_open_internet(address):
    """Every private, local, reserved network, and every form in which one hides another."""
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_the_open_internet(address):
    """A plain host is a host."""
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1"])
def test_names_that_lead_home(host):
    """Whatever the resolver makes of them is judged, not what they look like."""
    with pytest.raises(SourceFailed):
        public_address(host)


def test_one_address_inside_is_enough_to_refuse(monkeypatch):
    """A name with several addresses is not given the chance to be lucky."""
    answers = [(socket.AF_INET, 1, 6, "", (each, 443)) for each in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(SourceFailed):
        public_address("two-faced.example")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x",
        "https://example.org:8443/x",
        "https://u:p@example.org/",
        "https:///x",
        "https://example.org:bad/",
        "s3://b/x",
        "ftp://example.org/",
        "file:///etc/passwd",
    ],
)
def test_urls_that_are_not_fetched(url):
    """Only https on its own port, and nothing that carries a password."""
    with pytest.raises(InvalidParameter):
        check_url(Home(import_urls=True), url)


def test_no_url_is_fetched_unless_the_operator_says_so():
    """Off by default, in every preset."""
    with pytest.raises(InvalidParameter):
        check_url(Home(), "https://example.org/x")
    check_url(Home(import_urls=True), "https://example.org/x")


def test_a_path_stays_in_its_folder(tmp_path):
    """Dots and links are followed before that is judged."""
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "rows.jsonl").write_text("{}")
    (tmp_path / "secret").write_text("no")
    (folder / "link").symlink_to(tmp_path / "secret")
    home = Home(import_folder=folder)

    assert folder / "rows.jsonl" == allowed_path(home, "rows.jsonl")
    for path in ("../secret", "link", str(tmp_path / "secret"), "none", "."):
        with pytest.raises(InvalidParameter):
            allowed_path(home, path)


TEXT = "\n".join(
    f'{{"line": {number}, "words": "{sha256(bytes([number])).hexdigest()}"}}'
    for number in range(256)
).encode()


def packed_in(folder, content):
    """What an import reads of a file with these bytes."""
    (folder / "file.gz").write_bytes(content)
    return read_source(Home(import_folder=folder), None, {"path": "file.gz"})


def test_a_packed_file(tmp_path):
    """Unpacked whole; also when it has several members, or padding after them."""
    whole = gzip.compress(TEXT)
    half = len(TEXT) // 2

    assert TEXT == packed_in(tmp_path, whole)
    assert TEXT == packed_in(tmp_path, gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:]))
    assert TEXT == packed_in(tmp_path, whole + bytes(512))
    assert TEXT == packed_in(tmp_path, TEXT)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_packed_file_that_was_cut_off(tmp_path, share):
    """What stands before the cut is read, and a line says that there was more."""
    whole = gzip.compress(TEXT)
    found = packed_in(tmp_path, whole[: int(len(whole) * share)])
    good, _, last = found.rpartition(b"\n")

    assert CUT_OFF == last
    assert TEXT.startswith(good)
    assert len(good) > len(TEXT) * share / 2


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_packed_file_with_a_bit_flipped(tmp_path_factory, at, bit):
    """Refused, or read up to the damage and said so; never read as something else, silently."""
    content = bytearray(gzip.compress(TEXT))
    content[int(at * (len(content) - 1))] ^= 1 << bit
    folder = tmp_path_factory.mktemp("flipped")
    try:
        found = packed_in(folder, bytes(content))
    except SourceFailed:
        return
    assert found == TEXT or found.endswith(CUT_OFF) or not content.startswith(b"\x1f\x8b")


def test_a_bomb(tmp_path):
    """A small file that unpacks to more than an import may read is refused."""
    bomb = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    block = bytes(16 * limits.MIB)
    parts = [bomb.compress(block) for _ in range(limits.IMPORT_BYTES_MAX // len(block) + 1)]
    content = b"".join([*parts, bomb.flush()])

    assert len(content) < limits.MIB
    with pytest.raises(SourceFailed, match="more than"):
        packed_in(tmp_path, content)
