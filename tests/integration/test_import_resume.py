"""Is an import that was killed finished by the next server, and nothing in it twice?"""

import json
import time
from collections import Counter

ROWS = 10_000


def lines():
    """A file of envelopes."""
    return "\n".join(
        json.dumps(
            {
                "scope": "org:resumed",
                "modality": "imported",
                "content": {"kind": "text", "text": f"row {number}"},
                "context": {"observed_at": "2026-05-13T15:42:00Z"},
                "idempotency_key": f"row-{number}",
            }
        )
        for number in range(ROWS)
    )


def state_of(client, import_id):
    return client.get(f"/v1/import/{import_id}").json()


def test_a_killed_import_is_run_on(run_server, tmp_path):
    """From where its last step was written down; every row once."""
    first = run_server(tmp_path / "data")
    with first.client() as client:
        started = client.post("/v1/import/jsonl", json={"source": {"inline": lines()}})
        import_id = started.json()["import_id"]
        while (half := state_of(client, import_id))["processed"] == 0:
            time.sleep(0.005)
    first.kill()
    second = run_server(tmp_path / "data")
    with second.client() as client:
        while (state := state_of(client, import_id))["status"] == "running":
            time.sleep(0.02)
        seen, cursor = Counter(), None
        while True:
            asked = {"scope": "org:resumed", "limit": 1000}
            page = client.get(
                "/v1/events", params=asked | ({"cursor": cursor} if cursor else {})
            ).json()
            seen.update(event["content"]["text"] for event in page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                break

    assert "running" == half["status"]
    assert ("completed", ROWS) == (state["status"], state["processed"])
    assert ROWS == len(seen) == sum(seen.values())


def test_a_cancelled_import_stops(run_server):
    """What was captured stays, the rest does not come, and the row says so."""
    server = run_server()
    with server.client() as client:
        started = client.post("/v1/import/jsonl", json={"source": {"inline": lines()}})
        import_id = started.json()["import_id"]
        asked = client.post(f"/v1/import/{import_id}/cancel")
        while (state := state_of(client, import_id))["status"] in ("running", "cancelling"):
            time.sleep(0.01)

    assert 202 == asked.status_code
    assert state["status"] in ("cancelled", "completed")
    assert state["processed"] < ROWS or "completed" == state["status"]
