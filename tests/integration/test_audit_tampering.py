"""Someone with the files changes the audit log: is it found, and is the first row named?"""

import json
import shutil
from hashlib import sha256
from itertools import pairwise

import pytest
from click.testing import CliRunner

from api.cli import main
from engine.engine import FAMILIES
from engine.state.rocks import RocksKV

ROW_COUNT = 13
LEAF, ID = 32, 16


@pytest.fixture(scope="module")
def honest(tmp_path_factory, start_server):
    """A data directory with one tenant's rows, as a server left it."""
    folder = tmp_path_factory.mktemp("audit") / "data"
    server = start_server(folder)
    with server.client() as client:
        for number in range(ROW_COUNT - 1):
            answer = client.get("/v1/admin/health", headers={"X-Cortex-Actor": f"user:u{number}"})
            assert 200 == answer.status_code
        assert 200 == client.get("/v1/audit/chain").status_code
    assert 0 == server.stop()
    return folder


@pytest.fixture
def copied(honest, tmp_path):
    """A copy that may be spoilt."""
    folder = tmp_path / "data"
    shutil.copytree(honest, folder)
    return folder


def verify(folder, *flags):
    """(exit code, output) of `strata audit verify`."""
    found = CliRunner().invoke(main, ["audit", "verify", "--data", str(folder), *flags])
    return found.exit_code, found.output


def report(folder):
    """What it says of the one tenant, and its exit code."""
    found = CliRunner().invoke(main, ["audit", "verify", "--data", str(folder), "--json"])
    [item] = json.loads(found.stdout)
    return found.exit_code, item["report"]


# ── how to lie ───────────────────────────────────────────────────────────────────────────────


def reworded(value):
    """Another actor, nothing else."""
    assert b"user:u" in value
    return value.replace(b"user:u", b"user:x")


def rehashed(value):
    """With a leaf hash that fits."""
    return sha256(b"\0" + value[LEAF:]).digest() + value[LEAF:]


def edit(rows, batch):
    """A row says someone else."""
    key, value = rows[5]
    batch.put("audit", key, reworded(value))
    return 5


def edit_with_its_hash(rows, batch):
    """The row and its leaf hash agree; the node above them does not."""
    key, value = rows[6]
    batch.put("audit", key, rehashed(reworded(value)))
    return 6


def edit_the_last(rows, batch):
    """A leaf that has no node above it yet is a peak of the head."""
    key, value = rows[-1]
    batch.put("audit", key, rehashed(value + b"\0"))
    return len(rows) - 1


def drop(rows, batch):
    """A row in the middle is gone."""
    batch.delete("audit", rows[4][0])
    return 4


def drop_the_last(rows, batch):
    """The newest row is gone."""
    batch.delete("audit", rows[-1][0])
    return len(rows) - 1


def drop_everything(rows, batch):
    """All of them are gone."""
    batch.delete_range("audit", rows[0][0], rows[-1][0] + b"\0")
    return 0


def close_the_gap(rows, batch):
    """A row is taken out, and the later ones move up."""
    for (key, _), (_, value) in pairwise(rows[3:]):
        batch.put("audit", key, value)
    batch.delete("audit", rows[-1][0])
    return 2


def swap(rows, batch):
    """Two rows change places, with all they have: they share a node with rows that did not."""
    (one, first), (other, second) = rows[2], rows[8]
    batch.put("audit", one, second)
    batch.put("audit", other, first)
    return 2


def add(rows, batch):
    """A row that no commit wrote stands behind the last."""
    key = rows[-1][0][:4] + len(rows).to_bytes(8, "big")
    batch.put("audit", key, rows[-1][1])
    return len(rows)


def blank(rows, batch):
    """A row keeps its hash and loses its content, as if it were old."""
    key, value = rows[7]
    batch.put("audit", key, value[: LEAF + ID])
    return 7


def rewrite_a_node(rows, batch):
    """A node is changed along with the rows below it; the next one up is not."""
    key, value = rows[1]
    forged = rehashed(reworded(value))
    node = sha256(b"\1" + rows[0][1][:LEAF] + forged[:LEAF]).digest()
    batch.put("audit", key, forged)
    batch.put("audit_nodes", key[:4] + bytes([1]) + bytes(8), node)
    return 0


def forget_the_head(rows, batch):
    """Without a head the rows prove nothing."""
    batch.delete("meta", b"audit.head." + rows[0][0][:4])
    return 0


def shorten_the_head(rows, batch):
    """A head of fewer rows needs the tenant's key."""
    batch.put(
        "meta", b"audit.head." + rows[0][0][:4], bytes(16) + bytes(7) + b"\1" + rows[0][1][:32]
    )
    batch.delete_range("audit", rows[1][0], rows[-1][0] + b"\0")
    return 0


LIES = [
    edit,
    edit_with_its_hash,
    edit_the_last,
    drop,
    drop_the_last,
    drop_everything,
    close_the_gap,
    swap,
    add,
    blank,
    rewrite_a_node,
    forget_the_head,
    shorten_the_head,
]


# ── is it found ──────────────────────────────────────────────────────────────────────────────


def test_untouched_files_are_whole(copied):
    """Exit code 0, every row counted, the same head each time it is asked."""
    code, found = report(copied)
    said = verify(copied)

    assert (0, True, None) == (code, found["valid"], found["first_broken_index"])
    assert ROW_COUNT == found["length"]
    assert (0, True) == (said[0], "whole" in said[1])
    assert found["head_hash"] in said[1]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_what_was_touched_is_found(copied, lie):
    """Exit code 1, and the first row that is not as it was written, or the pair it belongs to."""
    kv = RocksKV.open(copied / "store", FAMILIES)
    rows = list(kv.scan("audit"))
    batch = kv.batch()
    expected = lie(rows, batch)
    kv.write(batch)
    kv.sync()
    kv.close()
    code, found = report(copied)
    said = verify(copied)

    assert (1, False, expected) == (code, found["valid"], found["first_broken_index"])
    assert 1 == said[0]
    assert f"row {expected}: " in said[1]


@pytest.mark.parametrize("lie", [edit, drop, swap], ids=lambda lie: lie.__name__)
def test_a_server_on_touched_files_says_so(copied, run_server, lie):
    """It serves on, and POST /v1/audit/chain/verify names the row; new rows do not cover it up."""
    kv = RocksKV.open(copied / "store", FAMILIES)
    batch = kv.batch()
    expected = lie(list(kv.scan("audit")), batch)
    kv.write(batch)
    kv.sync()
    kv.close()
    with run_server(copied).client() as client:
        before = client.post("/v1/audit/chain/verify").json()
        for _ in range(5):
            assert 200 == client.get("/v1/admin/health").status_code
        after = client.post("/v1/audit/chain/verify").json()
        items = client.get("/v1/audit", params={"limit": 1000}).json()["items"]

    assert (False, expected) == (before["valid"], before["first_broken_index"])
    assert (False, expected) == (after["valid"], after["first_broken_index"])
    assert (lie is edit) == any(item.get("damaged") for item in items)


def test_verification_beside_a_running_server(copied, run_server):
    """A reader takes no lock and sees rows and head as of one commit."""
    server = run_server(copied)
    with server.client() as client:
        for _ in range(5):
            assert 200 == client.get("/v1/admin/health").status_code
            code, found = report(copied)
            assert (0, True) == (code, found["valid"])
