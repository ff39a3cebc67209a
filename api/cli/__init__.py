"""How is it run from a shell?  `strata`: every command, and the module that has it.

A command's module is imported when it is asked for: talking to a server does not need an engine,
and completion in a shell has to be quick.
"""

import gc
from importlib import import_module
from typing import Any, Final

import click

from api.cli.exits import INTERRUPTED

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Memory": {
        "remember": ("api.cli.memory:remember_command", "Write what was experienced."),
        "recall": ("api.cli.memory:recall_command", "Ask: a pack of evidence, cited."),
        "answer": ("api.cli.memory:answer_command", "Ask: one answer, in quotes."),
        "why": ("api.cli.memory:why_command", "Tell why something is believed."),
        "timeline": ("api.cli.memory:timeline_command", "Show what was so, and when."),
        "tail": ("api.cli.tail:tail_command", "Follow the lifecycle, live."),
    },
    "Moving": {
        "import": ("api.cli.transfer:import_command", "Bring memories over from elsewhere."),
        "export": ("api.cli.transfer:export_command", "Take a scope out, into a file."),
    },
    "Operating": {
        "serve": ("api.cli.serve:serve_command", "Run the server on a data directory."),
        "worker": ("api.cli.worker:worker_command", "Do the heavy part for a server."),
        "jobs": ("api.cli.jobs:jobs_group", "See, retry and cancel long work."),
        "settings": ("api.cli.serve:settings_command", "List every setting and its value."),
        "verify": ("api.cli.integrity:verify_command", "Prove that the log is whole."),
        "mend": ("api.cli.integrity:mend_command", "Cut off the damaged end of a log."),
        "backup": (
            "api.cli.integrity:backup_command",
            "Copy a data directory, and its keys apart.",
        ),
        "restore": ("api.cli.integrity:restore_command", "Bring a backup to a new directory."),
        "rebuild": ("api.cli.projectors:rebuild_command", "Derive every view anew."),
        "projectors": ("api.cli.projectors:projectors_group", "See, retry, rebuild projectors."),
        "audit": ("api.cli.integrity:audit_group", "Prove that nobody touched the audit log."),
        "erasure": ("api.cli.integrity:erasure_group", "See that what was erased is gone."),
        "token": ("api.cli.token:token_group", "Mint, list and revoke tokens."),
        "bench": ("api.cli.bench:bench_command", "Measure it on this machine."),
        "completion": ("api.cli.completion:completion_command", "Make a shell complete this."),
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
        # What is imported stays: to look for garbage in it takes a quarter of the time.
        gc.disable()
        try:
            command: click.Command = getattr(import_module(module), attribute)
        finally:
            gc.enable()
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an interrupt has an exit code of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, section by section, without importing anything."""
        del ctx
        for title, part in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in part.items()])


@click.group(
    cls=Strata,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nBegin with:\n  strata serve\n"
    '  strata remember "Acme moved to 200 seats"\n'
    '  strata recall "how many seats?"',
)
@click.version_option(package_name="strata-memory", prog_name="strata")
def main() -> None:
    """Strata: an event-sourced memory engine for AI agents."""
