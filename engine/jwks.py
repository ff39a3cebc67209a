"""Which keys does an identity provider sign with at the moment?  Its JWKS, fetched and kept.

Fetching fails closed: keys are used for ten minutes after they were last seen, and then not at
all. They are looked up again when half that time is over, so that a provider may be away for a
while unnoticed; and when a token names a key that is not there, at most once a minute.
"""

import asyncio
import ssl
from typing import Any, Final, Literal

import httpx
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from engine.clock import Clock
from engine.issuers import KEYS_MAX, Issuer, Key, KeyRefused, check_jwks_url, make_key, select
from schemas.errors import BadSignature

TTL_S: Final = 600.0
"""How long a key is believed without having been seen again: a withdrawn key dies with it."""

REFRESH_S: Final = TTL_S / 2
"""Age at which the keys are looked up again while the old ones still serve."""

RETRY_S: Final = 60.0
"""Between two fetches while there are keys: made-up kids must not turn us against the provider."""

RETRY_DOWN_S: Final = 5.0
"""Between two fetches while there are none: nobody gets in before the next one."""

FETCH_S_MAX: Final = 5.0
BYTES_MAX: Final = 64 * 1024
"""A key set has a handful of keys of a kilobyte or two."""

UNAVAILABLE: Final = "the issuer's keys are unavailable"


class FetchFailed(Exception):
    """The provider's answer is not a key set; the message says why."""


class Jwks:
    """The keys of one provider. Belongs to one event loop."""

    def __init__(self, issuer: Issuer, clock: Clock, *, allow_loopback_http: bool = False) -> None:
        assert issuer.jwks_url is not None, "an issuer with keys of its own has none to fetch"
        self._url = check_jwks_url(issuer.jwks_url, allow_loopback_http=allow_loopback_http)
        self._algorithms = issuer.algorithms
        self._clock = clock
        # Made once: reading the certificate authorities takes longer than everything else here.
        self._tls: ssl.SSLContext | Literal[False] = (
            httpx.create_ssl_context() if self._url.startswith("https:") else False
        )
        self._keys: tuple[Key, ...] = ()
        self._seen_s: float | None = None
        self._tried_s: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why the last fetch failed; None when it did not."""

    async def keys(self, kid: str | None) -> tuple[Key, ...]:
        """The keys that may have signed a token of this kid; BadSignature when there are none."""
        now_s = self._clock.elapsed_s()
        is_known = kid is None or any(key.kid == kid for key in self._keys)
        is_enough = self._is_younger(TTL_S, now_s) and is_known
        if not is_enough or not self._is_younger(REFRESH_S, now_s):
            self._start(now_s)
        if not is_enough and self._fetching is not None:
            # Shielded: the caller may hang up, and others wait for the same answer.
            await asyncio.shield(self._fetching)
        if not self._is_younger(TTL_S, self._clock.elapsed_s()):
            raise BadSignature(f"The token cannot be verified: {UNAVAILABLE}.", reason=UNAVAILABLE)
        return select(self._keys, kid)

    async def refresh(self) -> None:
        """Wait for the fetch under way, or for a new one if it is time for one."""
        self._start(self._clock.elapsed_s())
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    def _is_younger(self, limit_s: float, now_s: float) -> bool:
        return self._seen_s is not None and now_s - self._seen_s < limit_s

    def _start(self, now_s: float) -> None:
        """Fetch in the background, unless it is being done or was done just before."""
        pause_s = RETRY_S if self._is_younger(TTL_S, now_s) else RETRY_DOWN_S
        if self._fetching is None and (self._tried_s is None or now_s - self._tried_s >= pause_s):
            self._tried_s = now_s
            self._fetching = asyncio.create_task(self._fetch(now_s))

    async def _fetch(self, now_s: float) -> None:
        try:
            self._keys = read_key_set(await self._download(), self._algorithms)
            self._seen_s, self.failure = now_s, None
        except (FetchFailed, httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
            self.failure = str(error) or type(error).__name__
        finally:
            self._fetching = None

    async def _download(self) -> bytes:
        """The body of the key set, of bounded size, in bounded time."""
        # Asked for plain: a few bytes of compressed data can unfold to a gigabyte.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with (
            asyncio.timeout(FETCH_S_MAX),
            httpx.AsyncClient(verify=self._tls, follow_redirects=False) as client,
            client.stream("GET", self._url, headers=headers) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise FetchFailed(f"the provider answered {response.status_code}")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise FetchFailed("the provider answered compressed data")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > BYTES_MAX:
                    raise FetchFailed(f"the key set has more than {BYTES_MAX} bytes")
            return bytes(body)


# ── reading a key set ────────────────────────────────────────────────────────────────────────


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def read_key_set(body: bytes, algorithms: tuple[str, ...]) -> tuple[Key, ...]:
    """The keys that verify signatures of these algorithms; others are none of our business."""
    try:
        found = msgspec.json.decode(body, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FetchFailed("the provider's answer is not a key set") from error
    keys = [key for jwk in found if (key := _read_jwk(jwk)) and key.algorithm in algorithms]
    if not keys:
        raise FetchFailed("the key set has no key that can be used")
    return tuple(keys[:KEYS_MAX])


def _read_jwk(jwk: dict[str, Any]) -> Key | None:
    """A key for signatures, or None: RFC 7517 §5 has unknown kinds ignored, not refused."""
    kid, operations = jwk.get("kid"), jwk.get("key_ops", ["verify"])
    is_for_signatures = (
        jwk.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
    )
    # Symmetric keys have no public half, and one whose private half is published is no one's.
    if not is_for_signatures or "d" in jwk or not isinstance(kid, str | None):
        return None
    readers = {("RSA", "RS256"): RSAAlgorithm.from_jwk, ("EC", "ES256"): ECAlgorithm.from_jwk}
    for (kind, algorithm), read in readers.items():
        if jwk.get("kty") == kind and jwk.get("alg", algorithm) == algorithm:
            try:
                return make_key(read(jwk), kid)
            except (KeyRefused, PyJWTError, ValueError, TypeError, KeyError, UnsupportedAlgorithm):
                return None
    return None
