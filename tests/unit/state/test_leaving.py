"""Does a large file go a piece at a time, and nothing that somebody still needs?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.state.leaving import GOING, Leaving, clear_away, let_go
from engine.state.rocks import RocksKV
from schemas import limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files go at once")

ROOT = Path(__file__).parents[3]
STEP = limits.LEAVING_STEP_BYTES


@pytest.fixture
def leaving(tmp_path):
    """One whose own thread hardly ever looks: the test does."""
    found = Leaving(tmp_path, (".sst",))
    found.start()
    yield found
    found.stop()


class Pauses:
    """What is left of a file at each pause, and how long those are."""

    def __init__(self, path, *, until=None):
        self.path = path
        self.sizes = []
        self.seconds = []
        self.until = until

    def __call__(self, seconds):
        self.sizes.append(self.path.stat().st_size)
        self.seconds.append(seconds)
        return len(self.sizes) == self.until


def names(folder):
    return [path.name for path in folder.iterdir()]


def made(path, size):
    path.write_bytes(bytes(size))
    return path


def test_a_large_file_goes_a_piece_at_a_time(tmp_path):
    """Between two pieces others have the disk."""
    path = made(tmp_path / "a.sst", 3 * STEP + 100)
    pauses = Pauses(path)

    assert let_go(path, pauses)
    assert not path.exists()
    assert [2 * STEP + 100, STEP + 100, 100] == pauses.sizes
    assert all(0 <= seconds <= limits.LEAVING_PAUSE_S_MAX for seconds in pauses.seconds)


def test_a_small_file_goes_at_once(tmp_path):
    """It takes the disk no longer than a piece of a large one."""
    path = made(tmp_path / "a.sst", STEP)
    pauses = Pauses(path)

    assert let_go(path, pauses)
    assert not path.exists()
    assert [] == pauses.sizes


def test_who_is_told_to_stop_removes_the_rest_at_once(tmp_path):
    """A server that ends does not wait for its files."""
    path = made(tmp_path / "a.sst", 9 * STEP)
    pauses = Pauses(path, until=2)

    assert let_go(path, pauses)
    assert not path.exists()
    assert 2 == len(pauses.sizes)


def test_what_is_still_read_stays_whole(tmp_path):
    """A process beside the server reads files that their owner has removed: not one byte is cut."""
    path = made(tmp_path / "a.sst", 3 * STEP)
    with path.open("rb") as reader:
        assert not let_go(path, Pauses(path))
        assert 3 * STEP == len(reader.read())

    assert let_go(path, Pauses(path))


def test_who_opens_a_file_just_then_ends_nobody(tmp_path):
    """The system tells whoever holds a lease by a signal that ends a process, if it is let."""
    path = made(tmp_path / "a.sst", 1)
    script = (
        "import os, sys, threading\n"
        "from engine.state.leaving import _is_ours_alone\n"
        "def read():\n"
        "    for _ in range(20_000): os.close(os.open(sys.argv[1], os.O_RDONLY))\n"
        "reader = threading.Thread(target=read)\n"
        "reader.start()\n"
        "asked = set()\n"
        "while reader.is_alive():\n"
        "    number = os.open(sys.argv[1], os.O_WRONLY)\n"
        "    asked.add(_is_ours_alone(number))\n"
        "    os.close(number)\n"
        "print(sorted(asked))\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    assert "True" in done.stdout


def test_a_file_with_another_name_keeps_its_bytes(tmp_path):
    """A backup is mostly names of the same files."""
    path = made(tmp_path / "a.sst", 3 * STEP)
    backup = tmp_path / "backup.sst"
    os.link(path, backup)

    assert let_go(path, Pauses(path))
    assert not path.exists()
    assert bytes(3 * STEP) == backup.read_bytes()


def test_what_is_gone_already_is_no_trouble(tmp_path):
    """Somebody tidied up."""
    assert let_go(tmp_path / "a.sst", Pauses(tmp_path))


def test_a_file_that_its_owner_removes_is_seen_off(tmp_path, leaving):
    """It gets a second name while it is there, and loses that once its first is gone."""
    path, other = made(tmp_path / "a.sst", 2 * STEP), made(tmp_path / "a.txt", 1)
    leaving.look()

    assert ["a.sst"] == names(tmp_path / GOING)
    path.unlink()
    assert 2 * STEP == (tmp_path / GOING / "a.sst").stat().st_size
    leaving.look()
    assert [] == names(tmp_path / GOING)
    assert other.exists()


def test_a_file_that_is_read_is_let_go_later(tmp_path, leaving):
    """Each look tries again."""
    path = made(tmp_path / "a.sst", 2 * STEP)
    leaving.look()
    with path.open("rb"):
        path.unlink()
        leaving.look()
        assert ["a.sst"] == names(tmp_path / GOING)

    leaving.look()
    assert [] == names(tmp_path / GOING)


def test_where_something_must_be_gone_it_goes_at_once(tmp_path, leaving):
    """An erasure leaves nothing that it replaces on its way: nothing has a second name."""
    path, gone = made(tmp_path / "a.sst", 2 * STEP), made(tmp_path / "b.sst", 2 * STEP)
    leaving.look()
    gone.unlink()

    with leaving.at_once():
        assert [] == names(tmp_path / GOING)
        assert 1 == path.stat().st_nlink

    leaving.look()
    assert ["a.sst"] == names(tmp_path / GOING)


def test_who_stops_leaves_no_second_names(tmp_path):
    """What was on its way is gone, and what is there has the one name it had."""
    leaving = Leaving(tmp_path, (".sst",))
    leaving.start()
    path = made(tmp_path / "a.sst", 2 * STEP)
    made(tmp_path / "b.sst", 2 * STEP)
    leaving.look()
    (tmp_path / "b.sst").unlink()
    leaving.stop()

    assert 1 == path.stat().st_nlink
    assert ["a.sst"] == names(tmp_path)


def test_after_a_kill_the_next_goes_on(tmp_path):
    """What the process before left on its way is let go, and names of what is there are known."""
    (tmp_path / GOING).mkdir()
    path = made(tmp_path / "a.sst", 2 * STEP)
    os.link(path, tmp_path / GOING / "a.sst")
    made(tmp_path / GOING / "b.sst", 2 * STEP)
    leaving = Leaving(tmp_path, (".sst",))
    leaving.start()
    leaving.look()

    assert ["a.sst"] == names(tmp_path / GOING)
    leaving.stop()
    assert path.exists()


def test_where_files_cannot_have_two_names_they_go_at_once(tmp_path, leaving, monkeypatch):
    """Some file systems know of one alone; the store is none the worse for it."""

    def refuse(*_):
        raise PermissionError("no second names here")

    monkeypatch.setattr(os, "link", refuse)
    made(tmp_path / "a.sst", 2 * STEP)
    leaving._running.join(60)

    assert not leaving._running.is_alive()
    assert [] == names(tmp_path / GOING)


def test_a_folder_is_cleared_away_with_all_in_it(tmp_path):
    """Large files and small, folders in folders, and one that was never there."""
    (tmp_path / "index" / "events").mkdir(parents=True)
    made(tmp_path / "index" / "events" / "a.idx", 3 * STEP)
    made(tmp_path / "index" / "mark", 3)

    clear_away(tmp_path / "index")
    clear_away(tmp_path / "index")

    assert [] == names(tmp_path)


def test_a_stores_own_files_are_seen_off(tmp_path):
    """The log that a flush has made obsolete leaves by way of its second name, and rows stay."""
    kv = RocksKV.open(tmp_path / "store", ["rows"])
    log = next((tmp_path / "store").glob("*.log"))
    batch = kv.batch()
    batch.put("rows", b"key", bytes(STEP))
    kv.write(batch)
    kv._leaving.look()
    assert 2 == log.stat().st_nlink

    kv.compact("rows")
    assert not log.exists()
    assert not (tmp_path / "store" / GOING / log.name).exists()
    kv._leaving.look()
    kv.close()

    assert not (tmp_path / "store" / GOING).exists()
    again = RocksKV.open(tmp_path / "store", ["rows"])
    assert bytes(STEP) == again.get("rows", b"key")
    again.close()
