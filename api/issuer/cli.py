"""How is the issuer run from a shell?  `cortex-auth-ref init`, `mint`, and the care of its keys."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from api.issuer.server import serve
from api.issuer.signing import MintRefused, Wish, issuers_file, make_key, mint, public_half
from api.issuer.store import Store, StoreRefused, opened
from schemas.times import from_us
from schemas.token import tenant_of

ERR = Console(stderr=True, highlight=False)

db_option = click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    default="cortex-auth.db",
    show_default=True,
    help="The issuer's file; it holds the private keys.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for scripts.")


class Failure(click.ClickException):
    """Something the operator must act on."""

    def show(self, file: Any = None) -> None:
        """Say it in red, once, without a traceback."""
        del file
        ERR.print("[red]error:[/red]", end=" ")
        ERR.print(self.message, markup=False, soft_wrap=True)


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except (StoreRefused, MintRefused, OSError, sqlite3.Error) as error:
        raise Failure(str(error)) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("strata-memory"), prog_name="cortex-auth-ref")
def main() -> None:
    """The reference issuer: mints the PASETO v4.public tokens that servers verify."""


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


@main.command("init")
@click.option("--issuer", default="cortex-auth-ref", show_default=True, help="The iss of tokens.")
@db_option
def init_command(issuer: str, db: Path) -> None:
    """Make a key pair, and print what a server needs to know of it."""
    if not 1 <= len(issuer) <= 512:
        raise Failure("issuer: 1 to 512 characters")
    with _readable_errors():
        store = Store.create(db, issuer)
        try:
            make_key(store)
            entry = issuers_file(store)
        finally:
            store.close()
    ERR.print(f"{db} holds the private key: keep it, and keep it to yourself.", soft_wrap=True)
    ERR.print("This goes into the server's issuers file:", soft_wrap=True)
    click.echo(entry, nl=False)


@main.command("rotate")
@click.option("--drop-old", is_flag=True, help="An old key was exposed: it verifies no longer.")
@db_option
def rotate_command(drop_old: bool, db: Path) -> None:
    """Make a new key, which signs from here on; print what the server needs to know."""
    with _readable_errors(), opened(db) as store:
        make_key(store, drop_old=drop_old)
        entry = issuers_file(store)
    ERR.print("Give this to the server before you mint with the new key:", soft_wrap=True)
    click.echo(entry, nl=False)


@main.command("keys")
@click.option(
    "--issuers-file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the server's issuers file here.",
)
@click.option("--force", is_flag=True, help="Overwrite the issuers file.")
@db_option
def keys_command(path: Path | None, force: bool, db: Path) -> None:
    """Print the public keys as PEM and PASERK, the one that signs first."""
    with _readable_errors(), opened(db, read_only=True) as store:
        if path is not None:
            # It may name other issuers, whose entries only the operator can bring back.
            if path.exists() and not force:
                raise Failure(f"{path} is there already; --force overwrites it")
            path.write_text(issuers_file(store), encoding="utf-8")
            ERR.print(f"{path}: {len(store.list_keys())} keys", soft_wrap=True)
            return
        for key in store.list_keys():
            half = public_half(key)
            state = "signs" if key.retired_at is None else "verifies only"
            click.echo(f"{half.kid}  {state}\n{half.paserk}\n{half.pem}")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


@main.command("mint")
@click.option("--actor", required=True, help="Whom it names, as type:id: agent:planner_v3.")
@click.option("--tenant", required=True, help="The tenant it is bound to.")
@click.option("--cap", "caps", multiple=True, help="Narrow to this capability; may be repeated.")
@click.option(
    "--scope-grant",
    "scopes",
    multiple=True,
    help="Bind a capability to a place: scope.write:org:acme/*; may be repeated.",
)
@click.option("--ttl", default="1h", show_default=True, help="90s, 15m, 1h, 7d (24h; service 30d).")
@db_option
@json_option
def mint_command(
    *,
    actor: str,
    tenant: str,
    caps: tuple[str, ...],
    scopes: tuple[str, ...],
    ttl: str,
    db: Path,
    as_json: bool,
) -> None:
    """Mint a token; it is printed once and not kept."""
    wish = Wish(actor=actor, tenant=tenant, ttl=ttl, caps=caps or None, scopes=scopes or None)
    with _readable_errors(), opened(db) as store:
        token, minted = mint(store, wish)
    if as_json:
        click.echo(json.dumps({"token": token, **msgspec.to_builtins(minted)}))
    else:
        click.echo(token)


@main.command("list")
@click.option("--all", "expired", is_flag=True, help="Also those that have expired.")
@db_option
@json_option
def list_command(expired: bool, db: Path, as_json: bool) -> None:
    """List the tokens minted, newest first."""
    with _readable_errors(), opened(db, read_only=True) as store:
        tokens = store.list_tokens(expired=expired)
    if as_json:
        click.echo(msgspec.json.encode({"items": tokens}))
        return
    rows = [("jti", "expires", "state", "actor", "tenant")]
    for token in tokens:
        expires = f"{from_us(token.exp * 1_000_000):%Y-%m-%d %H:%M:%S}Z"
        state = "live" if token.revoked_at is None else "revoked"
        rows.append((token.jti, expires, state, token.sub, tenant_of(token.aud) or token.aud))
    # Not a table of rich's: an id broken over two lines cannot be copied.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@main.command("revoke")
@click.argument("jti")
@db_option
def revoke_command(jti: str, db: Path) -> None:
    """Mark a token as revoked, and print how to tell the server."""
    with _readable_errors(), opened(db) as store:
        token = store.revoke(jti)
    if token is None:
        raise Failure("no token of this id was minted here; `list --all` shows those that were")
    body = json.dumps({"jti": token.jti})
    ERR.print("Marked here. The server goes on taking it until it is told:", soft_wrap=True)
    click.echo(
        'curl -X POST "$STRATA/v1/auth/revoke" -H "Authorization: Bearer $TOKEN" '
        f"-H \"X-Cortex-Actor: $ACTOR\" -H 'Content-Type: application/json' -d '{body}'"
    )


# ── the service ──────────────────────────────────────────────────────────────────────────────


@main.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=3142, show_default=True, help="0 takes a free one.")
@db_option
def serve_command(host: str, port: int, db: Path) -> None:
    """Publish the public keys; nothing can be minted from outside."""
    with _readable_errors():
        with opened(db, read_only=True):
            pass
        started = serve(db, host, port)
    if not started:
        raise Failure("the server did not start")


if __name__ == "__main__":
    sys.exit(main())
