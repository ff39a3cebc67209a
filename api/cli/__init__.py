"""How is it run from a shell?  `strata`: every command, and the module that has it.

A command's module is imported when it is asked for: talking to a server does not need an engine,
and completion in a shell has to be quick.
"""

from importlib import import_module
from typing import Final

import click

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Operating": {
        "serve": ("api.cli.serve:serve_command", "Run the server on a data directory."),
        "worker": ("api.cli.worker:worker_command", "Do the heavy part for a server."),
        "jobs": ("api.cli.jobs:jobs_group", "See, retry and cancel long work."),
        "settings": ("api.cli.serve:settings_command", "List every setting and its value."),
        "verify": ("api.cli.integrity:verify_command", "Prove that the log is whole."),
        "backup": (
            "api.cli.integrity:backup_command",
            "Copy a data directory, and its keys apart.",
        ),
        "restore": ("api.cli.integrity:restore_command", "Bring a backup to a new directory."),
        "rebuild": ("api.cli.projectors:rebuild_command", "Derive every view anew."),
        "projectors": ("api.cli.projectors:projectors_group", "See, retry, rebuild projectors."),
        "audit": ("api.cli.integrity:audit_group", "Prove that nobody touched the audit log."),
        "erasure": ("api.cli.integrity:erasure_group", "See that what was erased is gone."),
    },
}
"""Section → command → where it is, and the line of `strata --help` about it."""

COMMANDS: Final = {name: place for part in SECTIONS.values() for name, place in part.items()}


class Strata(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the table."""
        del ctx
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from its module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, section by section, without importing anything."""
        del ctx
        for title, part in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in part.items()])


@click.group(cls=Strata, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="strata-memory", prog_name="strata")
def main() -> None:
    """Strata: an event-sourced memory engine for AI agents."""
