"""What does a process cost?  Processor time and memory, as the kernel counts them."""

import contextlib
import math
import os
import resource
from pathlib import Path

import msgspec

_TICKS_S = os.sysconf("SC_CLK_TCK")
_KIB = 1024


class Cpu(msgspec.Struct, frozen=True):
    """Processor seconds so far: of the event loop's thread, and of the whole process."""

    loop_s: float
    all_s: float

    def since(self, earlier: "Cpu") -> "Cpu":
        return Cpu(self.loop_s - earlier.loop_s, self.all_s - earlier.all_s)


def cpu_of(pid: int) -> Cpu:
    """What a process has used; not a number where there is no /proc."""
    process = Path(f"/proc/{pid}")
    return Cpu(_ticks_s(process / "task" / str(pid) / "stat"), _ticks_s(process / "stat"))


def _ticks_s(stat: Path) -> float:
    try:
        # The name in brackets may hold spaces: count from its end.
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident megabytes: now, and at most so far."""
    found = {"VmRSS": math.nan, "VmHWM": math.nan}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) * _KIB / 1e6
    return found["VmRSS"], found["VmHWM"]


def own_cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def raise_file_limit() -> None:
    """A thousand streams are a thousand files; children inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
