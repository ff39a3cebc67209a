"""Does each preset grant what the seed says, and does a denial say who denied?"""

import pytest

from engine.policy import Tier, decide
from engine.presets import PRESETS
from schemas.caller import Decision

ORDER = ("on_prem_enterprise", "cloud_shared_saas", "cloud_private", "dev_local")


def deployment(preset: str, capability: str) -> Decision:
    """The deployment tier alone."""
    return decide(capability, [Tier("deployment", PRESETS[preset].document)], preset)


# 001 Appendix A, in its column order; `~` is a tenant's default, which the deployment leaves shut.
APPENDIX_A = """
scope.create.global            Y N Y Y
scope.create.cross_tenant      Y N N Y
scope.create.org               Y Y Y Y
scope.create.ws                Y Y Y Y
scope.create.custom            Y N Y Y
scope.write                    Y Y Y Y
scope.write.elevated           Y N Y Y
scope.write.on_behalf_of       Y N Y Y
scope.write.about_other        Y N Y Y
scope.read.local               Y Y Y Y
scope.read.holistic            Y Y Y Y
scope.read.cross_tenant        Y N N Y
understanding.read             Y Y Y Y
understanding.read.cross_scope Y N Y Y
understanding.synthesize       Y Y Y Y
forget.cascade.redact_events   Y Y Y Y
forget.gdpr.cross_workspace    Y Y Y Y
import.from.mem0               Y Y Y Y
export.format.jsonl            Y Y Y Y
lifecycle.subscribe            Y Y Y Y
llm.invoke                     Y Y Y Y
diagnostics.read               Y N Y Y
audit.read                     Y Y Y Y
audit.read.cross_actor         Y N Y Y
auth.revoke                    Y Y Y Y
temporal.phrases.write         Y Y Y Y
vocabulary.read                Y Y Y Y
policy.administer.tenant       Y Y Y Y
blob.upload                    Y Y Y Y
admin.health                   Y Y Y Y
"""
TABLE = [line.split() for line in APPENDIX_A.strip().splitlines()]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_the_defaults_of_appendix_a(row):
    """Yes and no, as the seed's table has them."""
    capability, *answers = row
    decisions = [deployment(preset, capability) for preset in ORDER]

    assert [answer == "Y" for answer in answers] == [decision.allowed for decision in decisions]
    assert ["deployment"] * 4 == [decision.tier for decision in decisions]


def test_the_shared_cloud_lets_tenants_descend():
    """`~` in the table, and in the allow list of 001 §5.3.2: the list is the longer word."""
    assert deployment("cloud_shared_saas", "scope.read.descend").allowed


def test_what_nobody_named_is_denied():
    """Silence denies, where the preset does not allow everything."""
    assert not deployment("cloud_shared_saas", "something.new").allowed
    assert deployment("dev_local", "something.new").allowed


def test_a_pattern_does_not_reach_past_its_dots():
    """`scope.write` grants no `scope.write.elevated`, and a wildcard grants all below it."""
    assert not deployment("cloud_shared_saas", "scope.write.elevated").allowed
    assert deployment("cloud_shared_saas", "import.from.anything").allowed


def test_a_denial_wins_over_an_allowance():
    """cloud_private allows everything and denies what crosses tenants."""
    assert ["*"] == PRESETS["cloud_private"].document.allow
    assert not deployment("cloud_private", "scope.read.cross_tenant").allowed


def test_only_development_takes_unsigned_callers():
    """001 §5.3: an unsigned actor is for one's own machine; and how long audit rows are kept."""
    assert {"dev_local"} == {name for name, preset in PRESETS.items() if not preset.require_signed}
    assert {
        "on_prem_enterprise": "P1Y",
        "cloud_shared_saas": "P2Y",
        "cloud_private": "P3Y",
        "dev_local": "P7D",
    } == {name: preset.audit_retention for name, preset in PRESETS.items()}
