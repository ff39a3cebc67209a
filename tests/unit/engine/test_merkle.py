"""Is the tree the one of RFC 6962, however it was grown, and does a proof prove?"""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from engine import merkle
from engine.merkle import Tree

contents = st.lists(st.binary(max_size=8), max_size=70)
filled = st.lists(st.binary(max_size=8), min_size=1, max_size=70)


def naive(rows):
    """MTH of RFC 6962 §2.1, word by word."""
    if not rows:
        return sha256(b"").digest()
    if len(rows) == 1:
        return sha256(b"\0" + rows[0]).digest()
    split = 1
    while split * 2 < len(rows):
        split *= 2
    return sha256(b"\1" + naive(rows[:split]) + naive(rows[split:])).digest()


def naive_path(index, rows):
    """PATH of RFC 6962 §2.1.1, word by word."""
    if len(rows) == 1:
        return []
    split = 1
    while split * 2 < len(rows):
        split *= 2
    if index < split:
        return [*naive_path(index, rows[:split]), naive(rows[split:])]
    return [*naive_path(index - split, rows[split:]), naive(rows[:split])]


def grown(rows):
    """A tree leaf by leaf, and every node it has."""
    tree, nodes = Tree(), {}
    for index, row in enumerate(rows):
        nodes[0, index] = merkle.leaf_hash(row)
        tree, made = merkle.grow(tree, [nodes[0, index]])
        assert not set(nodes) & {place for place, _ in made}, "a node is made once"
        nodes.update(made)
    return tree, nodes


@given(contents)
def test_the_head_grown_leaf_by_leaf_is_that_of_the_rfc(rows):
    """Incremental equals batch: the peaks alone give the head of RFC 6962."""
    tree, _ = grown(rows)

    at_once, _ = merkle.grow(Tree(), map(merkle.leaf_hash, rows))

    assert len(rows) == tree.size
    assert naive(rows) == merkle.head_of(tree)
    assert at_once == tree


@given(contents)
def test_a_node_is_the_head_of_its_leaves(rows):
    """(level, index) covers the leaves from index << level on, and complete subtrees only."""
    tree, nodes = grown(rows)

    for (level, index), node in nodes.items():
        start, end = index << level, (index + 1) << level
        assert end <= len(rows)
        assert naive(rows[start:end]) == node
    assert [nodes[place] for place in merkle.peaks_of(len(rows))] == list(tree.peaks)


@given(filled, st.data())
def test_an_inclusion_path_is_that_of_the_rfc_and_leads_to_the_head(rows, data):
    """Every leaf of every size, also as of an earlier size of the same tree."""
    _, nodes = grown(rows)
    size = data.draw(st.integers(1, len(rows)))
    index = data.draw(st.integers(0, size - 1))
    path = merkle.inclusion_path(index, size, nodes.__getitem__)

    assert naive_path(index, rows[:size]) == path
    assert naive(rows[:size]) == merkle.head_by_path(index, size, nodes[0, index], path)


@given(filled, st.data())
def test_a_proof_of_something_else_does_not_lead_to_the_head(rows, data):
    """Another leaf, a wrong place, a changed, shortened or lengthened path: not the head."""
    _, nodes = grown([*rows, b"one more"])
    size = len(rows) + 1
    index = data.draw(st.integers(0, size - 1))
    leaf, head = nodes[0, index], naive([*rows, b"one more"])
    path = merkle.inclusion_path(index, size, nodes.__getitem__)
    at = data.draw(st.integers(0, len(path) - 1))
    changed = [*path[:at], sha256(path[at]).digest(), *path[at + 1 :]]

    assert head != merkle.head_by_path(index, size, sha256(leaf).digest(), path)
    assert head != merkle.head_by_path(index, size, leaf, changed)
    assert None is merkle.head_by_path(index, size, leaf, path[:-1])
    assert None is merkle.head_by_path(index, size, leaf, [*path, leaf])
    assert None is merkle.head_by_path(size, size, leaf, path)


def test_the_test_vectors_of_certificate_transparency():
    """The published heads of 0, 1 and 8 leaves (google/certificate-transparency)."""
    texts = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    texts.append("606162636465666768696a6b6c6d6e6f")
    rows = [bytes.fromhex(text) for text in texts]
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    one = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    eight = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"

    assert empty == merkle.head_of(Tree()).hex()
    assert one == merkle.head_of(grown(rows[:1])[0]).hex()
    assert eight == merkle.head_of(grown(rows)[0]).hex()


def test_two_trees_with_the_same_bytes_differ():
    """A node's two hashes posted as one leaf do not make the same tree (second preimage)."""
    left, right = merkle.leaf_hash(b"a"), merkle.leaf_hash(b"b")
    forged, _ = grown([left + right])
    honest, _ = grown([b"a", b"b"])

    assert merkle.head_of(forged) != merkle.head_of(honest)
