"""How are tokens made, listed and revoked?  `strata token`, over the reference issuer's file."""

import click
from rich.markup import escape

from api.cli.connect import Place, connected
from api.cli.shell import OUT, examples
from api.issuer.cli import list_command, mint_command


@click.group(
    "token",
    epilog=examples(
        "cortex-auth-ref init                              # once: makes the keys",
        "strata token mint --actor user:alice --tenant acme",
        "strata token list",
        "strata token revoke 0f9c… --token $ADMIN_TOKEN",
    ),
)
def token_group() -> None:
    """Mint tokens with the reference issuer, list them, revoke them at a server."""


token_group.add_command(mint_command)
token_group.add_command(list_command)


@token_group.command("revoke", epilog=examples("strata token revoke 0f9c… --token $ADMIN_TOKEN"))
@click.argument("jti")
@connected
def revoke_command(place: Place, jti: str) -> None:
    """Tell the server to take this token no longer."""
    with place.client() as client:
        client.auth.revoke(jti=jti)
    OUT.print(f"{escape(jti)} is taken no longer")
