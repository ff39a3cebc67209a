"""Do four tiers and a token never come to more than each of them allows?"""

from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policy import Tier, decide, grants, token_allows, verdict
from schemas.caller import Caller
from schemas.policy import CAPABILITIES, PolicyDocument
from schemas.token import Grant

NAMES = sorted(CAPABILITIES)
PATTERNS = ["*", *NAMES, *sorted({name.rpartition(".")[0] + ".*" for name in NAMES})]
DOCUMENTS = st.builds(
    PolicyDocument,
    allow=st.lists(st.sampled_from(PATTERNS), max_size=4),
    deny=st.lists(st.sampled_from(PATTERNS), max_size=4),
)
LOWER = st.lists(
    st.tuples(st.sampled_from(["tenant", "scope", "scope", "actor"]), DOCUMENTS), max_size=4
)
ORDER = {"tenant": 0, "scope": 1, "actor": 2}


def said(document, capability):
    """The closest pattern wins, told another way: by the length of what it spells out."""
    found = {True: -1, False: -1}
    for word, patterns in ((True, document.allow), (False, document.deny)):
        for pattern in patterns:
            if fnmatchcase(capability, pattern):
                exact = 1 if pattern == capability else 0
                found[word] = max(found[word], 2 * len(pattern.rstrip("*")) + exact)
    if found[True] == found[False] == -1:
        return None
    return found[True] > found[False]


def reference(capability, deployment, lower):
    """(allowed, tier that denied): the rules of 001 §5.1, as plainly as they can be put."""
    words = [("deployment", said(deployment, capability))]
    words += [(tier, said(document, capability)) for tier, document in lower]
    for tier, word in words:
        if word is False:
            return False, tier
    granted = words[0][1] is True or any(t == "tenant" and w is True for t, w in words[1:])
    if granted:
        return True, None
    return False, "tenant" if lower else "deployment"


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from(NAMES), DOCUMENTS, LOWER)
def test_the_tiers_decide_as_the_reference_does(capability, deployment, drawn):
    """Never more than policy, and a denial names the right tier, in 2,000 random stacks."""
    lower = sorted(drawn, key=lambda pair: ORDER[pair[0]])
    tiers = [Tier("deployment", deployment), *(Tier(name, doc) for name, doc in lower)]
    allowed, denier = reference(capability, deployment, lower)

    decision = decide(capability, tiers, "on_prem_enterprise")

    assert allowed == decision.allowed
    assert denier is None or denier == decision.tier


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), DOCUMENTS, LOWER, DOCUMENTS)
def test_a_further_tier_never_grants(capability, deployment, drawn, more):
    """Monotonicity: what is denied stays denied, whatever a narrower tier says (001 §5.1.1)."""
    lower = sorted(drawn, key=lambda pair: ORDER[pair[0]])
    tiers = [Tier("deployment", deployment), *(Tier(name, doc) for name, doc in lower)]
    before = decide(capability, tiers, "dev_local")
    after = decide(capability, [*tiers, Tier("actor", more)], "dev_local")

    assert before.allowed or not after.allowed


def test_the_closest_pattern_of_a_tier_wins():
    """A family may be denied and one of it allowed; said twice alike, the denial holds."""
    document = PolicyDocument(allow=["scope.read.local", "audit.read"], deny=["*", "audit.read"])

    assert verdict(document, "scope.read.local") is True
    assert verdict(document, "scope.write") is False
    assert verdict(document, "audit.read") is False
    assert verdict(PolicyDocument(), "audit.read") is None


def test_what_the_deployment_leaves_open_a_tenant_may_grant():
    """`~` in Appendix A: neither allowed nor denied above, so the tenant's word counts."""
    silent = Tier("deployment", PolicyDocument(allow=["scope.write"]))
    grant = Tier("tenant", PolicyDocument(allow=["scope.write.elevated"]))
    scope_grant = Tier("scope", PolicyDocument(allow=["scope.write.elevated"]))

    assert decide("scope.write.elevated", [silent, grant], "p").allowed
    assert not decide("scope.write.elevated", [silent, scope_grant], "p").allowed


def test_grants_bind_a_token_to_paths():
    """A path covers itself and, with a star, what lies below; nothing beside it."""
    texts = ("scope.write:org:acme/dept:eng/*", "scope.read.holistic:org:acme/*")
    bound = [Grant.parse(text) for text in texts]

    assert grants(bound, "scope.write", "org:acme/dept:eng")
    assert grants(bound, "scope.write", "org:acme/dept:eng/user:bob")
    assert not grants(bound, "scope.write", "org:acme")
    assert not grants(bound, "scope.write", "org:acme/dept:engineering")
    assert grants(bound, "scope.read.holistic", "org:acme/dept:sales")
    assert grants(bound, "scope.read.local", "org:acme/dept:sales")
    assert not grants(bound, "scope.read.local", "org:other")


def test_a_token_only_narrows():
    """Capabilities that the token does not name are gone, wherever policy allows them."""
    caller = Caller(actor="user:a", tenant="t", capabilities=("scope.write",))

    assert token_allows(caller, "scope.write", "org:a")
    assert not token_allows(caller, "audit.read", None)


def test_a_service_never_erases():
    """001 §4.4: whatever its token and policy say."""
    service = Caller(actor="service:importer", tenant="t", capabilities=("forget.gdpr",))
    person = Caller(actor="user:dpo", tenant="t", capabilities=("forget.gdpr",))

    assert not token_allows(service, "forget.gdpr", None)
    assert token_allows(person, "forget.gdpr", None)
