"""Can a deployment start from a preset and say otherwise, in a file of its own?"""

import pytest

from engine.presets import PRESETS, PresetError, load_preset
from engine.settings import SettingsError, load_settings, preset_of

FILE = """
preset: cloud_shared_saas
deny: ["scope.create.global", "llm.invoke"]
defaults:
  audit.retention: P6M
  rate_limit.write: 10/s
"""


def test_a_file_says_otherwise_where_it_differs(tmp_path):
    """Lists are replaced whole, defaults one by one; what it leaves out is the preset's."""
    path = tmp_path / "policy.yaml"
    path.write_text(FILE)
    base = PRESETS["cloud_shared_saas"]

    made = load_preset(path)

    assert ["scope.create.global", "llm.invoke"] == made.document.deny
    assert base.document.allow == made.document.allow
    assert ("P6M", True) == (made.audit_retention, made.require_signed)
    assert ("10/s", "500/s") == (
        made.document.rate_limits.write,
        made.document.rate_limits.read,
    )


def test_a_file_closes_the_set_of_scope_types(tmp_path):
    """Beside the built-in types only those it names may be registered (001 §18.2.19)."""
    path = tmp_path / "policy.yaml"
    path.write_text("preset: dev_local\nallowed_scope_types: [deal, incident]")

    assert {"deal", "incident"} == load_preset(path).scope_types
    assert PRESETS["dev_local"].scope_types is None


@pytest.mark.parametrize(
    "content, named",
    [
        ("preset: dev_local\nallowed_scope_types: ['Deal:']", "allowed_scope_types"),
        ("preset: nobody", "nobody"),
        ("preset: dev_local\nalow: []", "alow"),
        ("preset: dev_local\nallow: ['Scope.*']", "allow"),
        ("preset: [", "policy.yaml"),
        ("preset: on_prem_enterprise\ndefaults: {actor.require_signed: false}", "require_signed"),
        ("preset: dev_local\ndefaults: {scope.auto_register: false}", "auto_register"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, content, named):
    """The message names what is wrong, and nothing is guessed."""
    path = tmp_path / "policy.yaml"
    path.write_text(content)

    with pytest.raises(PresetError, match=named):
        load_preset(path)


def test_the_setting_names_the_file(tmp_path):
    """CORTEX_POLICY_FILE; a file that is not there is an error of the setting."""
    path = tmp_path / "policy.yaml"
    path.write_text("preset: dev_local\ndeny: [llm.invoke]")
    settings = load_settings({"CORTEX_POLICY_FILE": str(path)})

    assert ["llm.invoke"] == preset_of(settings).document.deny
    with pytest.raises(SettingsError, match="CORTEX_POLICY_FILE"):
        load_settings({"CORTEX_POLICY_FILE": str(tmp_path / "none.yaml")})
