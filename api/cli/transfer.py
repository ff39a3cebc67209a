"""How do memories move in and out?  `strata import` and `strata export`, with bars."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape

from api.cli.connect import Place, connected
from api.cli.shell import ERR, OUT, Failure, echo_json, examples, json_option, progress_bars
from strata_client import Client

FORMATS: Final = ("jsonl", "mem0", "zep", "letta")
_OVER: Final = ("completed", "failed", "cancelled")
_EVERY_S: Final = 0.2
_ERRORS_SHOWN: Final = 5


@click.command(
    "import",
    epilog=examples(
        "strata import mem0 memories.json --into org:acme/user:{user_id}",
        "strata import openai memory.json --scope user:me",
        "strata import jsonl backup.jsonl --json",
    ),
)
@click.argument("kind", type=click.Choice(["mem0", "zep", "letta", "openai", "jsonl"]))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--into", help="Scope of each row, as a template of its fields [--scope].")
@click.option("--in-order", is_flag=True, help="By the time of the events, not by the file.")
@json_option
@connected
def import_command(place: Place, kind: str, file: Path, as_json: bool, **rest: Any) -> None:
    """Bring memories over from KIND; rows that cannot be read are skipped and named."""
    ordering = "strict_temporal" if rest["in_order"] else "batch_throughput"
    with place.client(makes=True) as client:
        blob = client.blobs.upload(file)
        begin = getattr(client.imports, kind)
        begun = begin(
            {"blob_id": blob.blob_id},
            scope_template=rest["into"] or client.scope,
            options={"ordering": ordering},
        )
        state = _followed("import", lambda: client.imports.get(begun.import_id), quiet=as_json)
    if as_json:
        echo_json(state)
    else:
        skipped = f", {state.error_count:,} of them skipped" if state.error_count else ""
        OUT.print(f"{state.status}: {state.processed:,} rows{skipped}")
        _print_errors(state)
    if state.status == "failed":
        raise Failure("the import failed; what was read before is there, and a second try skips it")
    if state.error_count and state.error_count >= state.processed:
        raise Failure(f"no row of {escape(file.name)} could be read as {kind}; is it of that kind?")


def _print_errors(state: Any) -> None:
    for problem in state.errors[:_ERRORS_SHOWN]:
        said = ": ".join(part for part in (problem.error, problem.detail) if part)
        ERR.print(f"[yellow]line {problem.line}:[/yellow] {escape(said)}", soft_wrap=True)
    if state.error_count > _ERRORS_SHOWN:
        ERR.print(f"[yellow]and {state.error_count - _ERRORS_SHOWN:,} more[/yellow]")


@click.command(
    "export",
    epilog=examples(
        "strata export --scope org:acme -o acme.jsonl",
        "strata export --format mem0 -o memories.json",
        "strata export --layer events --layer facts --as-of 2026-05-20T00:00:00Z -o may.jsonl",
    ),
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--layer", "layers", multiple=True, help="Repeatable [events].")
@click.option("--as-of", help="What was known at this moment.")
@json_option
@connected
def export_command(place: Place, output: Path, as_json: bool, **rest: Any) -> None:
    """Take a scope and all below it out, into a file whose hash is checked."""
    asked: dict[str, Any] = {"format": rest["form"]}
    if rest["layers"]:
        asked["layers"] = list(rest["layers"])
    if rest["as_of"]:
        asked["as_of"] = rest["as_of"]
    with place.client() as client:
        begun = client.exports.start(**asked)
        state = _followed("export", lambda: client.exports.get(begun.export_id), quiet=as_json)
        size = _fetched(client, state, output)
    if as_json:
        echo_json(state)
    else:
        OUT.print(f"{escape(str(output))}: {state.processed:,} records, {size:,} bytes")


def _fetched(client: Client, state: Any, output: Path) -> int:
    if state.url is None:
        raise Failure(f"the export {state.export_id} ended as {state.status} and has no file")
    content = client.blobs.download(state.url)
    if hashlib.sha256(content).hexdigest() != state.sha256:
        raise Failure("what came is not what was exported: the hashes differ; try again")
    output.write_bytes(content)
    return len(content)


def _followed(what: str, look: Callable[[], Any], *, quiet: bool) -> Any:
    """The job's last state; a bar shows the ones before."""
    state = look()
    if quiet:
        while state.status not in _OVER:
            time.sleep(_EVERY_S)
            state = look()
        return state
    with progress_bars() as report:
        while True:
            report(what, state.processed, max(state.total, state.processed))
            if state.status in _OVER:
                return state
            time.sleep(_EVERY_S)
            state = look()
