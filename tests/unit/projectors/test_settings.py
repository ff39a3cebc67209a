"""Do the stages know what a scope has said about its memory?"""

from projectors.records import name_key
from projectors.settings import ANY_KEY, SETTINGS, ScopeSettings
from schemas.entry import Directive, DropScope, Member, RegisterScope, ScopePolicies, SetMembers

MEMBERS = [Member(actor="user:alice", role="owner")]
POLICIES = ScopePolicies(conflict_resolution="keep_both")


def take(overlay, entry):
    for change in tuple(SETTINGS.project(entry, overlay.of(1))):
        overlay.apply(1, change)


def rows(overlay):
    """The policies of each scope that has some."""
    found = dict(overlay.of(1).scan("scope_settings"))
    return {key: row.policies for key, row in found.items() if key != ANY_KEY}


def registered(entry, offset, policies):
    command = RegisterScope(members=MEMBERS, policies=policies)
    return entry(offset, Directive(command=command, scope="org:acme"), scope="org:acme")


def test_policies_are_found_by_path(entry, overlay):
    """By its hash: a stage that asks for a parent knows no number of it."""
    take(overlay, registered(entry, 1, POLICIES))

    assert {name_key("org:acme"): POLICIES} == rows(overlay)
    assert isinstance(overlay.get(1, "scope_settings", ANY_KEY), ScopeSettings)


def test_registered_again_without_policies(entry, overlay):
    """What is no longer said no longer counts."""
    take(overlay, registered(entry, 1, POLICIES))
    take(overlay, registered(entry, 2, None))

    assert {} == rows(overlay)


def test_dropped(entry, overlay):
    """A scope that is gone has no policies; one that had none loses none."""
    take(overlay, registered(entry, 1, POLICIES))
    drop = Directive(command=DropScope(records="keep"), scope="org:acme")
    take(overlay, entry(2, drop, scope="org:acme"))
    take(overlay, entry(3, drop, scope="org:acme"))

    assert {} == rows(overlay)


def test_other_entries_say_nothing(entry, said, overlay):
    """Experiences, members, and bodies that are gone."""
    members = Directive(command=SetMembers(members=MEMBERS), scope="org:acme")

    for one in (said(1), entry(2, members), entry(3, None)):
        assert () == tuple(SETTINGS.project(one, overlay.of(1)))
