"""Do blobs come in, out and away, and does nothing of them run or leak?  (001 §8.13)"""

import hashlib
import io
import socket

import pytest
from PIL import Image

BOB = {"X-Cortex-Actor": "user:bob"}
PNG = {"Content-Type": "image/png"}


def picture(side=64, kind="PNG", light=0):
    """A picture of a slope, perhaps a little lighter."""
    image = Image.new("L", (side, side))
    image.putdata(
        [min(255, (x * 3 + y) * 64 // side + light) for y in range(side) for x in range(side)]
    )
    written = io.BytesIO()
    image.save(written, kind)
    return written.getvalue()


def error_of(answer):
    return answer.status_code, answer.json()["error_code"]


@pytest.fixture
def upload(client):
    def send(data, headers=None, **more):
        answer = client.post("/v1/blobs", content=data, headers=(headers or {}) | more)
        assert 201 == answer.status_code, answer.text
        return answer.json()

    return send


def test_the_bytes_come_back(client, upload):
    """Size, type and hash on the way in; type, ETag and the same bytes on the way out."""
    data = picture()
    made = upload(data, PNG)
    got = client.get(f"/v1/blobs/{made['blob_id']}")
    again = client.get(
        f"/v1/blobs/{made['blob_id']}", headers={"If-None-Match": got.headers["etag"]}
    )

    assert (len(data), "image/png", hashlib.sha256(data).hexdigest()) == (
        made["size_bytes"],
        made["content_type"],
        made["sha256"],
    )
    assert (200, data, "image/png") == (got.status_code, got.content, got.headers["content-type"])
    assert (304, b"") == (again.status_code, again.content)


def test_a_form_is_taken_too(client):
    """The field `file`, with its name and type; the same bytes are the same blob (001 §8.13.1)."""
    data = b"minutes of a meeting " * 100_000
    form = client.post(
        "/v1/blobs", files={"other": b"x", "file": ("../Minutes.txt", data, "text/plain")}
    )
    raw = client.post("/v1/blobs", content=data, headers={"Content-Type": "text/plain"})

    assert (201, "Minutes.txt") == (form.status_code, form.json()["filename"])
    assert form.json()["blob_id"] == raw.json()["blob_id"]
    assert data == client.get(f"/v1/blobs/{form.json()['blob_id']}").content


@pytest.mark.parametrize(
    "content, headers, expected",
    [
        (b"", PNG, (422, "INVALID_PARAMETER")),
        (b"x", {"Content-Type": "no type"}, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"x", {"Content-Type": "multipart/form-data"}, (400, "INVALID_BODY")),
        (b"junk", {"Content-Type": "multipart/form-data; boundary=b"}, (400, "INVALID_BODY")),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhalf',
            {"Content-Type": "multipart/form-data; boundary=b"},
            (400, "INVALID_BODY"),
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
            {"Content-Type": "multipart/form-data; boundary=b"},
            (400, "INVALID_BODY"),
        ),
    ],
)
def test_what_cannot_be_a_blob(client, content, headers, expected):
    """Nothing, no type, no form, half a form, a form without the file."""
    answer = client.post("/v1/blobs", content=content, headers=headers)

    assert expected == error_of(answer)


def test_too_large_is_said_before_it_is_read(server):
    """By its declared length: not a byte of it need be sent."""
    request = b"POST /v1/blobs HTTP/1.1\r\nHost: x\r\nContent-Length: 200000000\r\n\r\n"
    with socket.create_connection(server.address, timeout=120) as line:
        line.sendall(request)
        answer = line.recv(65536)

    assert answer.startswith(b"HTTP/1.1 413")


def test_one_that_does_not_say_how_long_it_is_is_cut_off(client):
    """The bytes are counted as they come (chunked)."""

    def endless():
        for _ in range(101):
            yield bytes(1_000_000)

    answer = client.post("/v1/blobs", content=endless(), headers=PNG)

    assert (413, "BODY_TOO_LARGE") == error_of(answer)


@pytest.mark.parametrize(
    "data, kind, shown",
    [
        (picture(), "image/png", "inline"),
        (b"<script>alert(1)</script>", "text/html", "attachment"),
        (b"<svg onload=alert(1)>", "image/svg+xml", "attachment"),
        (b"<script>alert(1)</script>", "image/png", "attachment"),
    ],
)
def test_nothing_of_a_blob_runs(client, upload, data, kind, shown):
    """Only bytes that are what they say, of a type that cannot run, are shown in a page."""
    made = upload(data, {"Content-Type": kind})
    got = client.get(f"/v1/blobs/{made['blob_id']}").headers

    assert got["content-disposition"].startswith(shown)
    assert "nosniff" == got["x-content-type-options"]
    assert "sandbox" in got["content-security-policy"]


def test_pictures_that_look_alike_have_like_hashes(upload):
    """Smaller, a little lighter, another format: few bits differ (001 §18.2.18)."""
    first = upload(picture(), PNG)["perceptual_hash"]
    second = upload(picture(48, "JPEG", 6), {"Content-Type": "image/jpeg"})["perceptual_hash"]

    assert 16 == len(first)
    assert (int(first, 16) ^ int(second, 16)).bit_count() <= 8
    assert "perceptual_hash" not in upload(b"no picture", PNG)


def test_an_experience_cites_what_is_there(client, envelope, upload):
    """A blob that was never uploaded is refused by its field, and nothing is stored."""
    made = upload(picture(80), PNG)
    content = {"kind": "message", "role": "user", "text": "look", "media": []}
    good = envelope(content=content | {"media": [{"blob_id": made["blob_id"]}]})
    bad = envelope(content=content | {"media": [{"blob_id": "blob_nowhere"}]})

    assert 202 == client.post("/v1/experience", json=good).status_code
    refused = client.post("/v1/experience", json=bad)
    assert 422 == refused.status_code
    assert "content.media[0].blob_id" == refused.json()["details"]["field"]


def test_a_blob_that_is_cited_stays(client, envelope, upload):
    """409 while an event speaks of it; one that nothing cites goes, file and key."""
    cited, loose = upload(picture(90), PNG), upload(picture(91), PNG)
    content = {"kind": "blob_ref", "blob_id": cited["blob_id"]}
    client.post("/v1/experience", json=envelope(content=content))

    assert (409, "BLOB_IN_USE") == error_of(client.delete(f"/v1/blobs/{cited['blob_id']}"))
    assert 204 == client.delete(f"/v1/blobs/{loose['blob_id']}").status_code
    assert 404 == client.get(f"/v1/blobs/{loose['blob_id']}").status_code
    again = upload(picture(91), PNG)
    assert again["blob_id"] != loose["blob_id"]


def test_a_blob_is_seen_by_who_may_read_what_cites_it(client, envelope, scope, upload):
    """Its uploader, and the readers of a scope whose events cite it; nobody else."""
    made = upload(picture(100), PNG)
    members = {"path": scope, "members": [{"actor": "user:local", "role": "owner"}]}
    client.post("/v1/scopes", json=members)
    content = {"kind": "blob_ref", "blob_id": made["blob_id"]}
    client.post("/v1/experience", json=envelope(content=content))
    denying = {"deny": ["policy.administer.tenant"]}
    client.put("/v1/policy/actor/user:bob", json=denying)
    before = client.get(f"/v1/blobs/{made['blob_id']}", headers=BOB)
    both = [{"actor": "user:local", "role": "owner"}, {"actor": "user:bob", "role": "reader"}]
    client.put("/v1/scopes/members", params={"path": scope}, json={"members": both})
    after = client.get(f"/v1/blobs/{made['blob_id']}", headers=BOB)

    assert (403, 200) == (before.status_code, after.status_code)
