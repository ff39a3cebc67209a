"""Is each setting where its operator put it, and is what cannot be used refused by name?"""

from pathlib import Path

import pytest

from engine.presets import PRESETS
from engine.settings import (
    ENVIRONMENT,
    MEANING,
    Settings,
    SettingsError,
    embedder_of,
    load_settings,
    unknown_variables,
)


def test_defaults_need_nothing():
    """No variable, no flag, no key: a data directory beside you and a local port."""
    found = load_settings({})

    assert (Path("data"), "127.0.0.1", 3141, "dev_local", "fsync") == (
        found.data,
        found.host,
        found.port,
        found.preset,
        found.durability,
    )
    assert dict.fromkeys(ENVIRONMENT, "default") == found.sources


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("data", "/var/lib/strata", Path("/var/lib/strata")),
        ("host", "0.0.0.0", "0.0.0.0"),
        ("port", "0", 0),
        ("port", "65535", 65535),
        ("preset", "cloud_private", "cloud_private"),
        ("durability", "buffered", "buffered"),
        ("disk_low_water_mb", "16", 16),
        ("ballast_mb", "0", 0),
        ("schedule_due_limit", "1", 1),
        ("schedule_due_limit", "100", 100),
        ("continuity_retention_archive_days", "1", 1),
        ("continuity_retention_archive_days", "36500", 36500),
        ("schedule_upcoming_limit", "0", 0),
        ("schedule_upcoming_limit", "100", 100),
        ("schedule_upcoming_window_hours", "1", 1),
        ("schedule_upcoming_window_hours", "720", 720),
    ],
)
def test_the_environment_sets_it(name, text, expected):
    """Each setting has a variable, and says that it came from there."""
    # A preset that takes signed callers only wants to know whose signatures.
    signers = {"CORTEX_ISSUERS_FILE": "issuers.json"} if name == "preset" else {}
    found = load_settings({ENVIRONMENT[name]: text} | signers)

    assert expected == getattr(found, name)
    assert ENVIRONMENT[name] == found.sources[name]


def test_a_flag_wins_over_the_environment():
    """Flags, then the environment, then the defaults; each remembers its source."""
    found = load_settings({"CORTEX_PORT": "1", "CORTEX_HOST": "h"}, {"port": 2, "data": "there"})

    assert (2, "h", Path("there")) == (found.port, found.host, found.data)
    assert ("--port", "CORTEX_HOST", "--data", "default") == tuple(
        found.sources[name] for name in ("port", "host", "data", "preset")
    )


@pytest.mark.parametrize("flags", [None, {}, {"port": None}])
def test_a_flag_not_given_sets_nothing(flags):
    """A flag left out leaves room for the environment; zero is a value, not an omission."""
    assert 9 == load_settings({"CORTEX_PORT": "9"}, flags).port
    assert 0 == load_settings({"CORTEX_PORT": "9"}, {"port": 0}).port


def test_an_empty_variable_is_not_set():
    """`CORTEX_PORT=` in a compose file means the default."""
    found = load_settings({"CORTEX_PORT": ""})

    assert (3141, "default") == (found.port, found.sources["port"])


@pytest.mark.parametrize(
    "environment, flags, message",
    [
        ({"CORTEX_PORT": "many"}, {}, "CORTEX_PORT: 'many' is not a whole number"),
        ({"CORTEX_PORT": "-1"}, {}, "CORTEX_PORT: -1 is negative"),
        ({"CORTEX_PORT": "65536"}, {}, "CORTEX_PORT: a port is 0 to 65535"),
        ({}, {"port": 70_000}, "--port: a port is 0 to 65535"),
        ({"CORTEX_BALLAST_MB": "1.5"}, {}, "CORTEX_BALLAST_MB: '1.5' is not a whole number"),
        ({}, {"disk_low_water_mb": "x"}, "--disk-low-water-mb: 'x' is not a whole number"),
        ({"CORTEX_DURABILITY": "maybe"}, {}, "CORTEX_DURABILITY: durability is fsync or buffered"),
        ({"CORTEX_DEPLOYMENT_PRESET": "x"}, {}, "CORTEX_DEPLOYMENT_PRESET: no preset 'x'; one of"),
        (
            {"COGNIRELAY_CONTINUITY_RETENTION_ARCHIVE_DAYS": "0"},
            {},
            "ARCHIVE_DAYS: 0 is not 1 to 36500",
        ),
        ({"COGNIRELAY_SCHEDULE_DUE_LIMIT": "0"}, {}, "DUE_LIMIT: 0 is not 1 to 100"),
        ({"COGNIRELAY_SCHEDULE_DUE_LIMIT": "101"}, {}, "DUE_LIMIT: 101 is not 1 to 100"),
        ({"COGNIRELAY_SCHEDULE_UPCOMING_LIMIT": "101"}, {}, "LIMIT: 101 is not 0 to 100"),
        ({"COGNIRELAY_SCHEDULE_UPCOMING_WINDOW_HOURS": "0"}, {}, "HOURS: 0 is not 1 to 720"),
        ({"COGNIRELAY_SCHEDULE_UPCOMING_WINDOW_HOURS": "721"}, {}, "HOURS: 721 is not 1 to 720"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(environment, flags, message):
    """The message names the variable or the flag, and says what would do."""
    with pytest.raises(SettingsError, match=message.replace(".", r"\.")):
        load_settings(environment, flags)


LLM = {
    "CORTEX_LLM_URL": "http://127.0.0.1:11434/v1",
    "CORTEX_LLM_MODEL": "tiny",
    "CORTEX_LLM_KEY": "sk-secret",
}


def test_a_model_and_its_key():
    """The three go together, and the key is never printed."""
    found = load_settings(LLM)

    assert ("http://127.0.0.1:11434/v1", "tiny", "sk-secret") == (
        found.llm_url,
        found.llm_model,
        found.llm_key.value,
    )
    assert "sk-secret" not in f"{found} {found.llm_key} {found!r}"
    assert None is load_settings({}).llm_url


@pytest.mark.parametrize(
    "changes, variable",
    [
        ({"CORTEX_LLM_URL": ""}, "CORTEX_LLM_URL"),
        ({"CORTEX_LLM_MODEL": ""}, "CORTEX_LLM_MODEL"),
        ({"CORTEX_LLM_URL": "ftp://host/v1"}, "CORTEX_LLM_URL"),
        ({"CORTEX_LLM_URL": "http:///v1"}, "CORTEX_LLM_URL"),
        ({"CORTEX_LLM_URL": "http://[::1/v1"}, "CORTEX_LLM_URL"),
        ({"CORTEX_LLM_URL": "http://host:99999/v1"}, "CORTEX_LLM_URL"),
        ({"CORTEX_LLM_URL": "http://me:swordfish@host/v1"}, "CORTEX_LLM_URL"),
    ],
)
def test_a_model_that_cannot_be_asked(changes, variable):
    """Refused by name, and without repeating what may be a password."""
    with pytest.raises(SettingsError, match=f"^{variable}: ") as refused:
        load_settings(LLM | changes)

    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize(
    "environment, kind",
    [
        ({}, "wordllama"),
        ({"CORTEX_EMBEDDER": "hashing"}, "hashing"),
        ({"CORTEX_EMBED_URL": "http://localhost:11434/v1", "CORTEX_EMBED_MODEL": "m"}, "http"),
        (
            {
                "CORTEX_EMBEDDER": "onnx",
                "CORTEX_EMBED_URL": "http://localhost/v1",
                "CORTEX_EMBED_KEY": "sesame",
            },
            "onnx",
        ),
    ],
)
def test_which_model_makes_the_vectors(environment, kind):
    """The one that was named; otherwise an address is asked, and without one the default."""
    settings = load_settings(environment=environment)

    assert kind == embedder_of(settings)
    assert "sesame" not in repr(settings)
    assert "sesame" not in str(settings.embed_key)


@pytest.mark.parametrize(
    "environment, variable",
    [
        ({"CORTEX_EMBEDDER": "magic"}, "CORTEX_EMBEDDER"),
        ({"CORTEX_EMBEDDER": "http"}, "CORTEX_EMBED_URL"),
        ({"CORTEX_EMBED_URL": "localhost", "CORTEX_EMBED_MODEL": "m"}, "CORTEX_EMBED_URL"),
        ({"CORTEX_EMBED_URL": "http://me:x@h/v1", "CORTEX_EMBED_MODEL": "m"}, "CORTEX_EMBED_URL"),
        ({"CORTEX_EMBED_URL": "http://localhost/v1"}, "CORTEX_EMBED_MODEL"),
    ],
)
def test_an_embedder_that_cannot_be_had(environment, variable):
    """What is missing or misspelt is named at the start, not at the first question."""
    with pytest.raises(SettingsError, match=variable):
        load_settings(environment=environment)


def test_unknown_variables_are_found():
    """A misspelt CORTEX_ variable is told; others are none of our business."""
    known = dict.fromkeys(ENVIRONMENT.values(), "x")
    found = unknown_variables(known | {"CORTEX_PROT": "1", "CORTEX_": "2", "PATH": "/bin"})

    assert ["CORTEX_", "CORTEX_PROT"] == found
    assert [] == unknown_variables(known)


def test_every_setting_has_a_variable_and_a_meaning():
    """What can be set is documented where it is defined."""
    fields = set(Settings.__struct_fields__) - {"sources"}

    assert fields == set(ENVIRONMENT) == set(MEANING)
    assert all(name in MEANING["preset"] for name in PRESETS)
