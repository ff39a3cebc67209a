"""What kind of thing are these bytes, and what does a picture look like from afar?  Pure."""

import io
import warnings
from itertools import pairwise
from typing import Final

from PIL import Image, UnidentifiedImageError

from schemas import limits

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_HASHED: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_HASH_SIDE: Final = 8


def sniffed(head: bytes) -> str | None:
    """The type that the first bytes show, of the few that may be shown in a page; else None.

    Nothing that a browser could run is among them: no HTML, no SVG, no script.
    """
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return None


def perceptual_hash(kind: str | None, data: bytes) -> str | None:
    """Sixteen hex digits that change little when a picture changes little; None for the rest.

    Rows of brightness compared pixel by pixel (a difference hash), so that scaling and light
    compression leave nearly the same digits (001 §18.2.18).
    """
    if kind not in _HASHED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as image:
                if image.width * image.height > limits.IMAGE_PIXELS_MAX:
                    return None
                small = image.convert("L").resize((_HASH_SIDE + 1, _HASH_SIDE))
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombWarning):
        return None  # not a picture after all, or one too large to look at
    pixels = list(small.tobytes())
    bits = 0
    for row in range(_HASH_SIDE):
        line = pixels[row * (_HASH_SIDE + 1) : (row + 1) * (_HASH_SIDE + 1)]
        for left, right in pairwise(line):
            bits = bits << 1 | (left > right)
    return f"{bits:016x}"
