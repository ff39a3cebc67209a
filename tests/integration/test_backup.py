"""Can it be brought back?  A backup restores to the same log, and a changed one is refused."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.faults.client import Client
from tests.faults.ledger import Ledger, audit, bulk, flush_views, single
from tests.faults.server import Server, strata

POST_COUNT = 60


async def fill(server: Server, ledger: Ledger, name: str) -> None:
    """Some events, one by one and in bulk."""
    async with Client(server.address) as client:
        for number in range(POST_COUNT):
            many = bulk(f"{name}-{number}-{at}" for at in range(5))
            for post in (single(f"{name}-{number}"), many):
                assert ledger.note(post, await client.ask("POST", post.path, post.body))
    await flush_views(server.address)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ledger]:
    """A backup, and the ledger of what is in it."""
    folder, ledger = tmp_path_factory.mktemp("saved"), Ledger()
    with Server(folder / "data") as server:
        asyncio.run(fill(server, ledger, "a"))
        assert 0 == server.terminate()
    code, _, error = strata("backup", folder / "backup", "--data", folder / "data")
    assert 0 == code, error
    return folder / "backup", ledger


def test_restored_backup_serves_everything(tmp_path: Path, saved, trial):
    """Every event of a backup is served from where it was restored to, and views equal a replay."""
    backup, ledger = saved
    target = tmp_path / "restored"
    code, said, error = strata("restore", backup, "--data", target)
    assert 0 == code, error
    with Server(target) as server:
        found = asyncio.run(audit(server.address, ledger, fully=True))
        asyncio.run(fill(server, Ledger(), "later"))
        assert 0 == server.terminate()
    code, report, error = strata("verify", "--replay", "--json", "--data", target)
    trial.say(events=found.events, lost=found.lost, replay_exit_code=code)

    assert "restored" in said
    assert found.is_good, found
    assert len(ledger.acked) == found.events
    assert 0 == code, error
    assert all(view["kept"] == view["replayed"] for view in json.loads(report)["views"])


def test_changed_backup_is_refused(tmp_path: Path, saved, trial):
    """One byte changed in any file of a backup, the file is named and nothing is restored."""
    rng = trial.random()
    backup, _ = saved
    files = sorted(path.relative_to(backup) for path in backup.rglob("*") if path.is_file())
    whole = [
        name for name in files if (backup / name).stat().st_size and name.name != "manifest.json"
    ]
    try_count = trial.count(4)
    for number in range(try_count):
        copy, target = tmp_path / f"copy{number}", tmp_path / f"target{number}"
        shutil.copytree(backup, copy)
        name = rng.choice(whole)
        content = bytearray((copy / name).read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (copy / name).write_bytes(content)
        keys = backup.parent / "keys"
        code, _, error = strata("restore", copy, "--keys", keys, "--data", target)

        assert 0 != code
        assert str(name) in error.replace("\n", ""), (name, error)
        assert not target.exists() or not any(target.iterdir())
    trial.say(changed=try_count, refused=try_count)


def test_beside_a_running_server(tmp_path: Path, trial):
    """`backup` says that a server is in the way; `verify` needs nobody to step aside."""
    ledger = Ledger()
    with Server(tmp_path / "data") as server:
        asyncio.run(fill(server, ledger, "a"))
        backed, _, refusal = strata("backup", tmp_path / "backup", "--data", tmp_path / "data")

        async def verify_while_writing() -> tuple[int, str, str]:
            checking = asyncio.to_thread(
                strata, "verify", "--replay", "--json", "--data", tmp_path / "data"
            )
            answers = await asyncio.gather(checking, fill(server, ledger, "b"))
            return answers[0]

        verified, report, error = asyncio.run(verify_while_writing())
        found = asyncio.run(audit(server.address, ledger))
    trial.say(backup_exit_code=backed, verify_exit_code=verified, lost=found.lost)

    assert 0 != backed
    assert "a server is using this data directory" in refusal
    assert "Traceback" not in refusal
    assert 0 == verified, error
    assert json.loads(report)["log"]["entries"] >= POST_COUNT * 6
    assert found.is_good, found
