"""Is garbage found, without anybody waiting long?"""

import gc
import subprocess
import sys

from engine import garbage

CODE = """
import gc, weakref
from engine import garbage

class Knot:
    pass

def tied():
    knot = Knot()
    knot.itself = knot
    return knot

garbage.in_small_lots()
garbage.in_small_lots()
young = [weakref.ref(tied()) for _ in range(20_000)]
assert sum(one() is not None for one in young[:10_000]) < 100, "young cycles are found"
old = [tied() for _ in range(20_000)]
assert gc.get_freeze_count() > 20_000, "what lives on is not looked at again"
ends = [weakref.ref(one) for one in old]
del old
assert garbage.look_at_all() >= 20_000, "and is found when it has died"
assert not any(end() for end in ends)
"""


def test_young_cycles_are_found_at_once_and_old_ones_at_last():
    """Looked at in small lots; what outlives two looks is left until all is looked at."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_process_that_is_not_ours_is_left_alone():
    """An engine inside somebody's program does not decide how that program collects."""
    before = gc.get_freeze_count()

    assert garbage.look_at_all() == 0
    assert gc.get_freeze_count() == before
