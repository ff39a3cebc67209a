"""What can be set, what is it now, and where did that come from?"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from engine.embedders import KINDS, Kind
from engine.presets import PRESETS, Preset, PresetError, load_preset
from schemas import limits


class SettingsError(Exception):
    """A setting cannot be used; the message names it and says what would do."""


class RedisUrl(msgspec.Struct, frozen=True):
    """Where Redis is; printed without the password."""

    secret: str

    def __str__(self) -> str:
        parts = urlsplit(self.secret)
        user, at, place = parts.netloc.rpartition("@")
        shown = f"{user.partition(':')[0]}:***@{place}" if at else place
        return parts._replace(netloc=shown, query="").geturl()

    def __repr__(self) -> str:
        return f"RedisUrl({str(self)!r})"


class Secret(msgspec.Struct, frozen=True):
    """A key that is used and never printed."""

    value: str

    def __str__(self) -> str:
        return "***"

    def __repr__(self) -> str:
        return "Secret(***)"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an operator may set. Few, typed, each with a default that needs no key."""

    data: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = 3141
    preset: str = "dev_local"
    durability: str = "fsync"
    disk_low_water_mb: int = limits.DISK_LOW_WATER_BYTES // limits.MIB
    ballast_mb: int = limits.BALLAST_BYTES // limits.MIB
    policy_file: Path | None = None
    issuers_file: Path | None = None
    tenants: tuple[str, ...] = ()
    enable_experimental: bool = False
    redis_url: RedisUrl | None = None
    worker_token: Secret | None = None
    server_url: str | None = None
    embedder: Kind | None = None
    embed_url: str | None = None
    embed_model: str | None = None
    embed_key: Secret | None = None
    llm_url: str | None = None
    llm_model: str | None = None
    llm_key: Secret | None = None
    projection: str = "process"
    import_folder: Path | None = None
    import_urls: bool = False
    schedule_due_limit: int = limits.SCHEDULE_DUE_ITEMS[0]
    schedule_upcoming_limit: int = limits.SCHEDULE_UPCOMING_ITEMS[0]
    schedule_upcoming_window_hours: int = limits.SCHEDULE_UPCOMING_HOURS[0]
    continuity_retention_archive_days: int = limits.CAPSULE_ARCHIVE_DAYS[0]
    sources: dict[str, str] = {}


ENVIRONMENT: Final = {
    "data": "CORTEX_DATA_DIR",
    "host": "CORTEX_HOST",
    "port": "CORTEX_PORT",
    "preset": "CORTEX_DEPLOYMENT_PRESET",
    "durability": "CORTEX_DURABILITY",
    "disk_low_water_mb": "CORTEX_DISK_LOW_WATER_MB",
    "ballast_mb": "CORTEX_BALLAST_MB",
    "policy_file": "CORTEX_POLICY_FILE",
    "issuers_file": "CORTEX_ISSUERS_FILE",
    "tenants": "CORTEX_TENANTS",
    "enable_experimental": "CORTEX_ENABLE_EXPERIMENTAL",
    "redis_url": "CORTEX_REDIS_URL",
    "worker_token": "CORTEX_WORKER_TOKEN",
    "server_url": "CORTEX_SERVER_URL",
    "embedder": "CORTEX_EMBEDDER",
    "embed_url": "CORTEX_EMBED_URL",
    "embed_model": "CORTEX_EMBED_MODEL",
    "embed_key": "CORTEX_EMBED_KEY",
    "llm_url": "CORTEX_LLM_URL",
    "llm_model": "CORTEX_LLM_MODEL",
    "llm_key": "CORTEX_LLM_KEY",
    "projection": "CORTEX_PROJECTION",
    "import_folder": "CORTEX_IMPORT_FOLDER",
    "import_urls": "CORTEX_IMPORT_URLS",
    "schedule_due_limit": "COGNIRELAY_SCHEDULE_DUE_LIMIT",
    "schedule_upcoming_limit": "COGNIRELAY_SCHEDULE_UPCOMING_LIMIT",
    "schedule_upcoming_window_hours": "COGNIRELAY_SCHEDULE_UPCOMING_WINDOW_HOURS",
    "continuity_retention_archive_days": "COGNIRELAY_CONTINUITY_RETENTION_ARCHIVE_DAYS",
}
"""Each setting's name in the environment; those of a surface have the names it gave them."""

BOUNDS: Final = {
    "schedule_due_limit": limits.SCHEDULE_DUE_ITEMS[1:],
    "schedule_upcoming_limit": limits.SCHEDULE_UPCOMING_ITEMS[1:],
    "schedule_upcoming_window_hours": limits.SCHEDULE_UPCOMING_HOURS[1:],
    "continuity_retention_archive_days": limits.CAPSULE_ARCHIVE_DAYS[1:],
}
"""The least and the most that a whole number may be."""

MEANING: Final = {
    "data": "directory that holds the log, the vault and the keys",
    "host": "address to listen on",
    "port": "port to listen on; 0 takes a free one",
    "preset": f"deployment preset: {', '.join(PRESETS)}",
    "durability": "fsync (answered means on disk) or buffered (for tests: a power cut loses some)",
    "disk_low_water_mb": "free space below which writes stop, in MiB",
    "policy_file": "YAML that starts from a preset and says otherwise where it differs",
    "issuers_file": "YAML or JSON list of the issuers whose tokens are accepted",
    "tenants": "tenants served, comma-separated; empty means every tenant an issuer vouches for",
    "enable_experimental": "1 serves experimental endpoints in the cloud presets too",
    "ballast_mb": "space held back so that a full disk can be opened again, in MiB",
    "redis_url": "Redis through which servers keep one rate limit and workers hear of tasks",
    "worker_token": "what workers show the server; unset, the key in keys/worker.key, in hex",
    "server_url": "the server that a worker works for, as http://host:3141",
    "embedder": f"model of the vectors: {', '.join(KINDS)}; unset, http where an address is set",
    "embed_url": "address of an OpenAI-compatible API, as https://host/v1",
    "embed_model": "name of the model at that address",
    "embed_key": "key for that address; printed as ***",
    "llm_url": "address of an OpenAI-compatible API whose model reads events, as https://host/v1",
    "llm_model": "name of the model at that address",
    "llm_key": "key for that address; printed as ***",
    "projection": "process (a backlog is folded beside the server) or thread (all in the server)",
    "import_folder": "folder whose files an import may name by path",
    "import_urls": "1 lets imports fetch https addresses of the open internet",
    "schedule_due_limit": "due items that CogniRelay's orientations tell, 1 to 100",
    "schedule_upcoming_limit": "items to come that they tell, 0 to 100",
    "schedule_upcoming_window_hours": "hours ahead that those may lie, 1 to 720",
    "continuity_retention_archive_days": "days until an archived capsule is stale, 1 to 36500",
}


def load_settings(
    environment: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Settings:
    """Flags win over the environment, and that over the defaults; each remembers its source."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, variable in ENVIRONMENT.items():
        flag = (flags or {}).get(name)
        if flag is not None:
            values[name], sources[name] = flag, f"--{name.replace('_', '-')}"
        elif environment.get(variable):
            values[name], sources[name] = environment[variable], variable
        else:
            sources[name] = "default"
    return _checked(values, sources)


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """CORTEX_ variables that mean nothing to us: most likely misspelt."""
    environment = os.environ if environment is None else environment
    known = set(ENVIRONMENT.values())
    return sorted(name for name in environment if name.startswith("CORTEX_") and name not in known)


def _checked(values: dict[str, Any], sources: dict[str, str]) -> Settings:
    for name in ("port", "disk_low_water_mb", "ballast_mb", *BOUNDS):
        if name in values:
            values[name] = _whole_number(values[name], sources[name])
    for name, (least, most) in BOUNDS.items():
        if not least <= values.get(name, least) <= most:
            raise SettingsError(f"{sources[name]}: {values[name]} is not {least} to {most}")
    for name in ("data", "issuers_file", "policy_file", "import_folder"):
        if name in values:
            values[name] = Path(values[name])
    if "tenants" in values:
        values["tenants"] = tuple(part for part in str(values["tenants"]).split(",") if part)
    for name in ("enable_experimental", "import_urls"):
        if name in values:
            values[name] = str(values[name]) in ("1", "true", "True")
    if "redis_url" in values:
        values["redis_url"] = _redis_url(str(values["redis_url"]), sources["redis_url"])
    for name in ("embed_key", "llm_key", "worker_token"):
        if name in values:
            values[name] = Secret(str(values[name]))
    settings = Settings(**values, sources=sources)
    _check_embedder(settings)
    _check_llm(settings)
    _check_worker(settings)
    if settings.preset not in PRESETS:
        raise SettingsError(
            f"{sources['preset']}: no preset {settings.preset!r}; one of {', '.join(PRESETS)}"
        )
    if settings.durability not in ("fsync", "buffered"):
        raise SettingsError(f"{sources['durability']}: durability is fsync or buffered")
    if settings.projection not in ("process", "thread"):
        raise SettingsError(f"{sources['projection']}: projection is process or thread")
    if preset_of(settings).require_signed and settings.issuers_file is None:
        raise SettingsError(
            f"{sources['preset']}: preset {settings.preset} takes signed callers only; "
            "CORTEX_ISSUERS_FILE must name the issuers whose tokens are accepted"
        )
    if not 0 <= settings.port <= 65535:
        raise SettingsError(f"{sources['port']}: a port is 0 to 65535")
    return settings


def embedder_of(settings: Settings) -> Kind:
    """Which model makes the vectors."""
    if settings.embedder is not None:
        return settings.embedder
    return KINDS[0] if settings.embed_url is None else "http"


def _check_embedder(settings: Settings) -> None:
    source = settings.sources["embedder"]
    if settings.embedder not in (None, *KINDS):
        raise SettingsError(
            f"{source}: no embedder {settings.embedder!r}; one of {', '.join(KINDS)}"
        )
    if embedder_of(settings) != "http":
        return
    if not _is_address(settings.embed_url or ""):
        raise SettingsError("CORTEX_EMBED_URL: an address is as https://host/v1")
    if not settings.embed_model:
        raise SettingsError("CORTEX_EMBED_MODEL: the model at CORTEX_EMBED_URL has no name")


def _check_llm(settings: Settings) -> None:
    """An address and a model go together; a key is the address's."""
    if settings.llm_url is None:
        if settings.llm_model is not None or settings.llm_key is not None:
            raise SettingsError("CORTEX_LLM_URL: a model or a key was given, and no address")
        return
    if not _is_address(settings.llm_url):
        # The value is not repeated: it may hold a password, which belongs in CORTEX_LLM_KEY.
        raise SettingsError("CORTEX_LLM_URL: an address is as https://host/v1")
    if not settings.llm_model:
        raise SettingsError("CORTEX_LLM_MODEL: the model at CORTEX_LLM_URL has no name")


def _check_worker(settings: Settings) -> None:
    """A token that can be guessed is none; an address is one."""
    token = settings.worker_token
    if token is not None and len(token.value) < limits.WORKER_TOKEN_CHARS_MIN:
        least = limits.WORKER_TOKEN_CHARS_MIN
        raise SettingsError(f"CORTEX_WORKER_TOKEN: at least {least} characters, best at random")
    if settings.server_url is not None and not _is_address(settings.server_url):
        raise SettingsError("CORTEX_SERVER_URL: a server is named as http://host:3141")


def _is_address(value: str) -> bool:
    """Whether it can be asked over HTTP; a password has a setting of its own."""
    try:
        address = urlsplit(value)
        is_usable = address.scheme in ("http", "https") and bool(address.hostname)
        return is_usable and address.port != 0 and "@" not in address.netloc
    except ValueError:
        return False


def preset_of(settings: Settings) -> Preset:
    """The deployment's own policy: the file's when there is one, else the named preset's."""
    if settings.policy_file is None:
        return PRESETS[settings.preset]
    try:
        return load_preset(settings.policy_file)
    except PresetError as error:
        raise SettingsError(f"CORTEX_POLICY_FILE: {error}") from error


def _redis_url(value: str, source: str) -> RedisUrl:
    try:
        parts = urlsplit(value)
        has_place = bool(parts.path if parts.scheme == "unix" else parts.hostname)
        is_usable = parts.scheme in ("redis", "rediss", "unix") and has_place and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        # The value is not repeated: it may hold a password.
        raise SettingsError(f"{source}: a Redis is named as redis://host:6379/0 or rediss://…")
    return RedisUrl(value)


def _whole_number(value: Any, source: str) -> int:
    try:
        number = int(value)
    except ValueError:
        raise SettingsError(f"{source}: {value!r} is not a whole number") from None
    if number < 0:
        raise SettingsError(f"{source}: {number} is negative")
    return number
