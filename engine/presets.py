"""What does a deployment allow of its own accord?  The four presets, or a file (001 §5.3)."""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import yaml

from schemas import limits
from schemas.envelope import Duration
from schemas.policy import Pattern, PolicyDocument, Rate, RateLimits


class PresetError(Exception):
    """The policy file cannot be used; the message names the field."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment allows, whatever its tenants say.

    `scope_types` closes the set of types beside the built-in ones (001 §18.2.19); None leaves it to
    whoever holds `scope.create.custom`.
    """

    name: str
    document: PolicyDocument
    require_signed: bool = True
    audit_retention: str
    experimental: bool = False
    scope_types: frozenset[str] | None = None


_SHARED_ALLOW: Final = [
    "scope.create.org",
    "scope.create.user",
    "scope.create.agent",
    "scope.create.ws",
    "scope.write",
    "scope.read.local",
    "scope.read.holistic",
    "scope.read.descend",
    "understanding.read",
    "understanding.synthesize",
    "forget.cascade.derived_only",
    "forget.cascade.redact_events",
    "forget.gdpr",
    "forget.gdpr.cross_workspace",
    "import.*",
    "export.*",
    "lifecycle.subscribe",
    "llm.invoke",
    "audit.read",
    "auth.revoke",
    "temporal.phrases.*",
    "vocabulary.*",
    "blob.*",
    "policy.administer.*",
    "admin.*",
]
_SHARED_DENY: Final = [
    "scope.create.global",
    "scope.create.cross_tenant",
    "scope.create.custom",
    "scope.read.cross_tenant",
    "understanding.read.cross_scope",
    "audit.read.cross_actor",
]
_CROSS_TENANT: Final = ["scope.create.cross_tenant", "scope.read.cross_tenant"]
_SHARED_RATES: Final = RateLimits(write="100/s", read="500/s")

PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for preset in (
        Preset(
            name="on_prem_enterprise",
            document=PolicyDocument(allow=["*"]),
            audit_retention="P1Y",
            experimental=True,
        ),
        Preset(
            name="cloud_shared_saas",
            document=PolicyDocument(
                allow=_SHARED_ALLOW, deny=_SHARED_DENY, rate_limits=_SHARED_RATES
            ),
            audit_retention="P2Y",
        ),
        Preset(
            name="cloud_private",
            document=PolicyDocument(allow=["*"], deny=_CROSS_TENANT),
            audit_retention="P3Y",
        ),
        Preset(
            name="dev_local",
            document=PolicyDocument(allow=["*"]),
            require_signed=False,
            audit_retention="P7D",
            experimental=True,
        ),
    )
}
"""The four of 001 §5.3, with the defaults of Appendix A; what a preset neither allows nor denies
is `~` there: a tenant may allow it."""


ScopeType = Annotated[
    str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$(?!\n)", max_length=limits.SCOPE_TYPE_CHARS_MAX)
]


class _Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The defaults of a policy file, named as in 001 §5.3."""

    require_signed: bool | None = msgspec.field(default=None, name="actor.require_signed")
    auto_register: bool = msgspec.field(default=True, name="scope.auto_register")
    cascade: str = msgspec.field(default="derived_only", name="forget.cascade.default")
    retention: Duration | None = msgspec.field(default=None, name="audit.retention")
    write: Rate | None = msgspec.field(default=None, name="rate_limit.write")
    read: Rate | None = msgspec.field(default=None, name="rate_limit.read")
    importer: Rate | None = msgspec.field(default=None, name="rate_limit.importer")


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    preset: str
    allow: list[Pattern] | None = None
    deny: list[Pattern] | None = None
    allowed_scope_types: list[ScopeType] | None = None
    defaults: _Defaults = _Defaults()


def load_preset(path: Path) -> Preset:
    """A preset from YAML, shaped as those of 001 §5.3: `preset` names the one it starts from."""
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        given = msgspec.convert(content, _File)
    except FileNotFoundError:
        raise PresetError(f"{path}: there is no such file") from None
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise PresetError(f"{path}: {error}") from error
    base = PRESETS.get(given.preset)
    if base is None:
        raise PresetError(f"{path}: preset {given.preset!r} is none of {', '.join(PRESETS)}")
    if not given.defaults.auto_register or given.defaults.cascade != "derived_only":
        raise PresetError(f"{path}: scope.auto_register and forget.cascade.default cannot be set")
    return _merged(base, given)


def _merged(base: Preset, given: _File) -> Preset:
    defaults, rates = given.defaults, base.document.rate_limits or RateLimits()
    document = PolicyDocument(
        allow=base.document.allow if given.allow is None else given.allow,
        deny=base.document.deny if given.deny is None else given.deny,
        rate_limits=RateLimits(
            write=defaults.write or rates.write,
            read=defaults.read or rates.read,
            importer=defaults.importer or rates.importer,
        ),
    )
    signed = defaults.require_signed
    if signed is False and base.require_signed:
        # 001 §5.3.4: the only preset where unsigned actors are allowed is the one for development.
        raise PresetError(f"actor.require_signed cannot be lifted from {base.name}")
    return msgspec.structs.replace(
        base,
        document=document,
        require_signed=base.require_signed if signed is None else signed,
        audit_retention=defaults.retention or base.audit_retention,
        scope_types=None
        if given.allowed_scope_types is None
        else frozenset(given.allowed_scope_types),
    )
