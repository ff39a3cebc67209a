"""How does a shell learn the commands?  `strata completion`."""

import click
from click.shell_completion import get_completion_class

from api.cli.shell import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=examples(
        'eval "$(strata completion bash)"    # in ~/.bashrc',
        'eval "$(strata completion zsh)"     # in ~/.zshrc',
        "strata completion fish > ~/.config/fish/completions/strata.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands, options and values."""
    known = get_completion_class(shell)
    assert known is not None, "a shell of the choice"
    root = context.find_root()
    # The name to complete is `strata`, however this was started (python -m api.cli).
    click.echo(known(root.command, {}, "strata", "_STRATA_COMPLETE").source())
