"""Do the threads of the libraries leave the processor to whoever waits?"""

import ctypes
import os
import platform
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.state.aside import (
    NICER,
    TURN_NS,
    aside,
    come_soon,
    helper,
    push_nobody,
    stand_back,
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a thread has an urgency of its own on Linux only"
)

BACK = os.SCHED_IDLE if len(os.sched_getaffinity(0)) > 1 else os.SCHED_OTHER
ROOT = Path(__file__).parents[3]
WORKS = """
import os, sys
from pathlib import Path
from engine.state.index import Document
from engine.state.rocks import RocksKV
from engine.state.text_index import TantivyText

folder = Path(sys.argv[1])
kv = RocksKV.open(folder / "store", ["rows"])
text = TantivyText(folder)
text.add([Document(layer="events", raw=bytes(16), tenant_no=1, scope_no=1, offset=1,
                   text="words", gist="words", observed_us=1, recorded_us=1)])
text.commit(1)
for task in Path("/proc/self/task").iterdir():
    urgency = os.getpriority(os.PRIO_PROCESS, int(task.name)), os.sched_getscheduler(int(task.name))
    print(*urgency, (task / "comm").read_text().strip())
text.close()
kv.close()
"""


def urgency() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_thread_started_aside_stands_aside_as_well():
    """Urgency is inherited; who asked keeps its own, and hears what came of it."""
    before = urgency()
    found: list[int] = []

    def work():
        other = threading.Thread(target=lambda: found.append(urgency()))
        other.start()
        other.join()
        return "done"

    assert "done" == aside(work)
    assert [max(before, NICER)] == found
    assert before == urgency()


def test_who_is_less_urgent_already_stays_so():
    """A server that an operator made nicer than that takes nothing back: it may not."""
    script = "from engine.state.aside import aside; import os; print(aside(lambda: os.nice(0)))"
    command = ["nice", "-n", str(NICER + 5), sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert min(19, urgency() + NICER + 5) == int(done.stdout)


def test_what_fails_aside_fails_here():
    """The error is the caller's."""
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0)


def test_compactions_and_merges_stand_aside(tmp_path):
    """Threads that RocksDB and tantivy start are less urgent than those of Python."""
    command = [sys.executable, "-c", WORKS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    theirs = {
        name: (int(nice), int(policy))
        for nice, policy, name in lines
        if not name.startswith(("python", "text-"))
    }
    background = {
        name: nice for name, (nice, _) in theirs.items() if name[:8] in ("rocksdb:", "segment_")
    }

    assert {"rocksdb:low", "segment_updater"} <= set(background), theirs
    assert all(nice >= NICER for nice in background.values()), theirs
    # Writes would wait for a flush that never gets a core, and the indexes for a segment.
    assert {os.SCHED_OTHER} == {theirs[name][1] for name in background}


def policies(stand):
    """How the system treats a thread after `stand`, and one that it starts."""
    found: list[int] = []

    def look():
        found.append(os.sched_getscheduler(threading.get_native_id()))

    def work():
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()

    with helper(1, "one", stand) as one:
        one.submit(work).result()
    return found


def test_who_stands_back_runs_where_nobody_else_wants_to():
    """And so do the threads that it starts; the others of the process do not."""
    before = os.sched_getscheduler(0)

    assert [BACK, BACK] == policies(stand_back)
    assert before == os.sched_getscheduler(0)


def test_with_a_single_core_nobody_stands_back(monkeypatch):
    """There a busy server would keep it waiting for ever."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})

    assert [os.SCHED_OTHER, os.SCHED_OTHER] == policies(stand_back)


def test_where_nothing_may_be_changed_all_goes_on(monkeypatch):
    """A system that refuses leaves everybody as urgent as they were."""

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)

    assert [os.SCHED_OTHER, os.SCHED_OTHER] == policies(stand_back)


def test_who_pushes_nobody_keeps_its_share():
    """Its urgency is what it was: others wait for what it holds."""

    def look():
        return os.sched_getscheduler(threading.get_native_id()), urgency()

    with helper(1, "one", push_nobody) as one:
        assert (os.SCHED_BATCH, urgency()) == one.submit(look).result()


def turn_ns():
    """How long a turn of the calling thread is; 0 where the system does not say."""
    number = {"x86_64": 315, "aarch64": 275}.get(platform.machine())
    found = ctypes.create_string_buffer(48)
    if number is None or ctypes.CDLL(None).syscall(number, 0, found, 48, 0):
        return 0
    return struct.unpack("=IIQiIQQQ", found.raw)[5]


def test_who_comes_soon_has_short_turns():
    """And so have the threads that it starts; its share and its policy stay what they were."""
    found: list[tuple[int, int, int]] = []

    def look():
        found.append((turn_ns(), urgency(), os.sched_getscheduler(0)))

    def work():
        look()
        come_soon()
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()

    one = threading.Thread(target=work)
    one.start()
    one.join()
    before, *after = found

    if not before[0]:
        pytest.skip("this kernel knows one length of turn")
    assert [(TURN_NS, *before[1:])] * 2 == after
    assert before[0] == turn_ns()


def test_who_stands_back_does_not_come_soon():
    """One that waits for everybody else keeps doing so."""
    found: list[int] = []

    def work():
        stand_back()
        come_soon()
        found.append(os.sched_getscheduler(threading.get_native_id()))

    one = threading.Thread(target=work)
    one.start()
    one.join()

    assert [BACK] == found
