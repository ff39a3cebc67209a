"""What does a process cost?  Processor time and memory, as the kernel counts them."""

import contextlib
import math
import os
import resource
from pathlib import Path

import msgspec

_TICKS_S = os.sysconf("SC_CLK_TCK")
_KIB = 1024
# Fields of /proc/<pid>/stat, counted from the end of the name: user and system time, and those of
# children that have ended.
_OWN = frozenset({11, 12})
_ENDED = frozenset({13, 14})


class Cpu(msgspec.Struct, frozen=True):
    """Processor seconds so far: of the event loop's thread, and of the process with its own."""

    loop_s: float
    all_s: float

    def since(self, earlier: "Cpu") -> "Cpu":
        return Cpu(self.loop_s - earlier.loop_s, self.all_s - earlier.all_s)


def cpu_of(pid: int) -> Cpu:
    """What a process has used, with those it started; not a number where there is no /proc."""
    process = Path(f"/proc/{pid}")
    loop_s = _ticks_s(process / "task" / str(pid) / "stat", _OWN)
    all_s = _ticks_s(process / "stat", _OWN | _ENDED)
    for child in children_of(pid):
        spent_s = _ticks_s(Path(f"/proc/{child}/stat"), _OWN)
        all_s += 0.0 if math.isnan(spent_s) else spent_s  # it may have ended just now
    return Cpu(loop_s, all_s)


def children_of(pid: int) -> list[int]:
    """The processes that a process started and that are there."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(_fields(stat)[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def _fields(stat: Path) -> list[str]:
    # The name in brackets may hold spaces: count from its end.
    return stat.read_text().rpartition(")")[2].split()


def _ticks_s(stat: Path, which: frozenset[int]) -> float:
    try:
        fields = _fields(stat)
    except OSError:
        return math.nan
    return sum(int(fields[at]) for at in which) / _TICKS_S


def memory_mb(pid: int) -> tuple[float, float]:
    """Megabytes of a process and of those it started: now, and resident at most so far.

    A page that several of them share, as they share libraries, is counted once.
    """
    now, most = _mb_of(pid)
    for child in children_of(pid):
        its_now, its_most = _mb_of(child)
        if not math.isnan(its_now):
            now, most = now + its_now, most + its_most
    return now, most


def _mb_of(pid: int) -> tuple[float, float]:
    return _kib_line(pid, "smaps_rollup", "Pss"), _kib_line(pid, "status", "VmHWM")


def _kib_line(pid: int, file: str, wanted: str) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == wanted:
                return int(value.split()[0]) * _KIB / 1e6
    return math.nan


def own_cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def raise_file_limit() -> None:
    """A thousand streams are a thousand files; children inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
