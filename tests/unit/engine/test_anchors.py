"""Are anchors there after anything, and is a false one never believed?"""

import os

import pytest

from engine.state import anchors as anchors_module
from engine.state.anchors import Anchor, Anchors
from engine.state.kv import CorruptStore

SECRET = bytes(range(32))


def anchor(size):
    return Anchor(size=size, chain=size.to_bytes(32, "big"), at_us=1_770_000_000_000_000 + size)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "anchors.log"


def opened(path, **options):
    """The anchors of a file, as a start reads them."""
    found = Anchors(path, SECRET)
    found.load(**options)
    return found


def filled(path, count):
    """A file with anchors for 1, 2, … entries."""
    made = Anchors(path, SECRET)
    for size in range(1, count + 1):
        made.write(anchor(size))
    return made


def test_no_file_is_no_anchor(path):
    """A new data directory vouches for nothing."""
    assert None is opened(path).last


def test_anchors_are_read_back(path):
    """Every one, in order; the last is the one that counts."""
    made = filled(path, 3)

    assert [anchor(1), anchor(2), anchor(3)] == opened(path).known == made.known
    assert anchor(3) == opened(path).last


def test_the_file_is_for_the_owner_alone(path):
    """Anchors tell how much happened and when."""
    filled(path, 1)

    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("torn", [b"strata.log/1 4", b"s", b"strata.log/1 4 1 AAAA AAAA"])
def test_a_torn_last_line_is_what_a_crash_leaves(path, torn):
    """It is dropped, and the next anchor begins on a line of its own."""
    filled(path, 3)
    with path.open("ab") as file:
        file.write(torn)

    reopened = opened(path)
    assert anchor(3) == reopened.last
    reopened.write(anchor(4))
    assert [1, 2, 3, 4] == [known.size for known in opened(path).known]


def test_every_way_a_line_can_be_torn(path):
    """Cut anywhere in its last line, a file gives all lines before it."""
    filled(path, 3)
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])

        assert anchor(2) == opened(path).last
        assert start == path.stat().st_size


def test_looking_mends_nothing(path):
    """A verifier beside a running server may see a line half written; it leaves it alone."""
    filled(path, 2)
    with path.open("ab") as file:
        file.write(b"strata.log/1 3")
    before = path.read_bytes()

    assert anchor(2) == opened(path, repair=False).last
    assert before == path.read_bytes()


@pytest.mark.parametrize(
    "forge",
    [
        lambda lines: [lines[0], lines[1].replace(b" 2 ", b" 1 "), lines[2]],
        lambda lines: [lines[0], lines[1][:-3] + b"AA=", lines[2]],
        lambda lines: [lines[0], b"", lines[2]],
        lambda lines: [lines[0], b"strata.log/1 2", lines[2]],
        lambda lines: [lines[0], b"\xff\xfe", lines[2]],
        lambda lines: [lines[0], lines[1] + lines[1], lines[2]],
    ],
)
def test_a_forged_line_is_refused(path, forge):
    """Changed, cut or foreign: the file and the line are named, and nothing opens."""
    filled(path, 3)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"".join(line + b"\n" for line in forge(lines)))

    with pytest.raises(
        CorruptStore, match=r"anchors\.log: line 2 is not an anchor of ours"
    ) as said:
        opened(path)
    assert str(path) == said.value.path


def test_another_s_signature_is_refused(path):
    """An anchor of another data directory vouches for another log."""
    Anchors(path, b"\1" * 32).write(anchor(1))

    with pytest.raises(CorruptStore, match="line 1"):
        opened(path)


@pytest.mark.parametrize("written", [0, 1, 40, 100])
def test_a_short_write_leaves_no_half_line(path, monkeypatch, written):
    """A disk that fills up mid-line: the anchor fails, the file stays one that can be read."""
    made = filled(path, 2)
    before = path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:written]))
    with pytest.raises(OSError, match="anchor"):
        made.write(anchor(3))
    monkeypatch.undo()

    assert before == path.read_bytes()
    assert anchor(2) == made.last
    made.write(anchor(4))
    assert [1, 2, 4] == [known.size for known in opened(path).known]


def test_many_anchors_are_thinned_at_start(path):
    """The newest stay, and a sample of the older: each vouches for everything before it."""
    filled(path, 1)
    line = path.read_bytes()
    count = anchors_module._LINES_MAX + 1
    path.write_bytes(line * count + b"torn")
    found = opened(path)

    older = count - anchors_module._LINES_KEPT
    expected = anchors_module._LINES_KEPT + -(-older // anchors_module._SAMPLE)
    assert expected == len(found.known)
    assert line * expected == path.read_bytes()


def test_many_anchors_are_thinned_while_running(path):
    """A server that runs for weeks does not need minutes to start again."""
    filled(path, 1)
    path.write_bytes(path.read_bytes() * (anchors_module._LINES_MAX - 1))
    made = opened(path)
    for size in (2, 3, 4):
        made.write(anchor(size))

    assert [1, 2, 3, 4] == [known.size for known in made.known[-4:]]
    assert len(made.known) < anchors_module._LINES_MAX // 2
    assert made.known == opened(path).known
