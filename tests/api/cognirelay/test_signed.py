"""Does the dialect keep signed callers and their tenants apart?"""

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from api.cognirelay import ENDPOINTS

ISSUER = Path(sys.executable).parent / "cortex-auth-ref"
CANARY = "canary-51c0ffee"
PATH = "/v1/schedule/items"


@pytest.fixture(scope="module")
def realm(tmp_path_factory, start_server):
    """A server that asks for tokens; calls with a bearer token and nothing else."""
    folder = tmp_path_factory.mktemp("relayed")
    db, issuers = folder / "issuer.db", folder / "issuers.yaml"
    for command in (("init",), ("keys", "--issuers-file", issuers)):
        done = [ISSUER, command[0], "--db", db, *command[1:]]
        subprocess.run(done, check=True, capture_output=True)
    server = start_server(
        folder / "data",
        "--surface",
        "cognirelay",
        CORTEX_DEPLOYMENT_PRESET="on_prem_enterprise",
        CORTEX_ISSUERS_FILE=str(issuers),
        CORTEX_TENANTS="acme,rival",
        CORTEX_EMBEDDER="hashing",
    )

    @lru_cache
    def token(actor, tenant, *more):
        command = [ISSUER, "mint", "--actor", actor, "--tenant", tenant, "--db", db, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip().splitlines()[-1]

    def call(method, path, body=None, *, by=("agent:alice", "acme"), **headers):
        sent = {"authorization": f"Bearer {token(*by)}"} | headers
        with server.client(headers=sent) as client:
            return client.request(method, path, json=body)

    yield call
    server.stop()


def reminder(later, **fields):
    return {"kind": "reminder", "title": CANARY, "due_at": later()} | fields


def test_a_token_names_its_caller(realm, later):
    """Clients of this contract know no header for the actor: the token says who calls."""
    made = realm("POST", PATH, reminder(later, title="mine"))

    assert (201, "alice") == (made.status_code, made.json()["item"]["created_by"])


def test_another_name_beside_the_token_is_refused(realm):
    """A header that names somebody else than the token is no identity."""
    refused = realm("GET", PATH, **{"X-Cortex-Actor": "agent:bob"})

    assert (401, "Invalid token") == (refused.status_code, refused.json()["detail"])


def test_a_token_that_may_only_read(realm, later):
    """A token narrows what its holder may do, in the dialect's own words."""
    reader = ("agent:rita", "acme", "--cap", "scope.read.local")
    refused = realm("POST", PATH, reminder(later), by=reader)

    assert (403, "Missing scope: write:projects") == (refused.status_code, refused.json()["detail"])
    assert 200 == realm("GET", PATH, by=reader).status_code


def test_a_token_of_one_scope_sees_no_other(realm, later):
    """A reminder lies in the scope of what it is about, and policy guards it there."""
    for thread in ("open", "shut"):
        realm("POST", PATH, reminder(later, title=thread, thread_id=thread))
    bound = ("agent:bea", "acme", "--scope-grant", "scope.read.local:ws:thread-open")
    seen = realm("GET", PATH, by=bound)

    assert 200 == seen.status_code, seen.text
    assert ["open"] == [item["title"] for item in seen.json()["items"]]


READS = [one for one in ENDPOINTS if one.method == "GET" and not one.is_open]


def test_nothing_of_one_tenant_reaches_another(realm, later):
    """I6: not one byte, on any route of the surface that reads by its path."""
    made = realm("POST", PATH, reminder(later, schedule_id="sched_canary", task_id=CANARY))
    assert 201 == made.status_code, made.text
    peer = {"peer_id": "bob", "base_url": "http://x"}
    realm("POST", "/v1/peers/register", peer)
    state = {"participant_peers": ["bob"], "title": CANARY, "constraints": [CANARY]}
    shared = realm("POST", "/v1/coordination/shared/create", state).json()["shared"]["shared_id"]
    ids = {"schedule_id": "sched_canary", "shared_id": shared}
    others = dict.fromkeys(("handoff_id", "reconciliation_id"), "x")
    query = f"?participant_peer=bob&recipient_peer=bob&claimant_peer=bob&task_id={CANARY}"

    answers = [
        realm("GET", one.path.format(**ids, **others) + query, by=("agent:bob", "rival"))
        for one in READS
    ]

    assert [] == [one.url for one in answers if CANARY in one.text and CANARY not in str(one.url)]
    assert [] == [one.json() for one in answers if one.json().get("total_matches")]
    assert 404 == realm("GET", f"{PATH}/sched_canary", by=("agent:bob", "rival")).status_code
    assert 200 == realm("GET", f"{PATH}/sched_canary", by=("agent:bob", "acme")).status_code
