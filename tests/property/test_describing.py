"""Whoever says what the indexes are given, and whenever: do they come out the same?"""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.test_indexer import projection, same_as_views

names = st.sampled_from(["city", "pet"])
texts = st.one_of(
    st.builds("{} = {}".format, names, st.sampled_from(["Rome", "Oslo"])),
    st.builds("{} =".format, names),
    st.just("a plain note"),
)
turns = st.lists(
    st.tuples(
        st.lists(texts, min_size=2, max_size=4),
        st.integers(0, 3),
        st.sampled_from(["index", "lag", "clear", "die"]),
    ),
    min_size=3,
    max_size=6,
)


@given(turns=turns)
@settings(max_examples=40, deadline=None)
def test_the_indexes_are_those_of_the_views_whoever_described(rig, turns):
    """Folded here or beside, described or not; what was said is lost, or somebody dies on the way.

    A turn is what is said, how many entries at a time are folded beside others who post (0: here),
    and what happens then: the indexes follow, lag behind, lose what was said, or the folder dies.
    """

    async def live():
        async with rig.Site(projection()) as site:
            engine = await site.open()
            said, number, beside = {}, 0, site.fold_beside(1)
            for saying, beside_entries, then in turns:
                if beside_entries:
                    engine.daemon.beside = beside
                    beside.batch_entries = beside_entries
                else:
                    engine.daemon.beside = None
                    beside.discard()
                engine.daemon._beside_entries = beside_entries
                # Each is said but once under its key: a number makes it another one.
                for text in saying:
                    number += 1
                    receipt = await rig.post(engine, text, key=f"k{number}")
                    said[receipt.wal_offset] = text
                await site.step()
                if then == "die" and engine.daemon.beside is not None:
                    engine.daemon.beside.close()
                await site.settle()
                if then == "clear":
                    engine.indexer.described.clear()
                if then != "lag":
                    await site.index_all()
            await site.index_all()

            same_as_views(engine, said)

    asyncio.run(live())
