"""Is a data directory whole, and can it be copied?  verify, backup, restore, audit, erasure."""

from pathlib import Path

import click
import msgspec
from rich.markup import escape

from api.cli.directory import readable_errors
from api.cli.shell import OUT, Failure, data_option, examples, json_option, progress_bars
from engine.auditing import verify_trails
from engine.proof import prove
from engine.settings import load_settings
from engine.upkeep import (
    RestoreRequest,
    VerifyReport,
    backup,
    keys_beside,
    mend,
    restore,
    verify,
)

keys_option = click.option(
    "--keys",
    type=click.Path(path_type=Path),
    help="Folder of the keys, one for all backups [keys, beside the backup].",
)


@click.command(
    "verify",
    epilog=examples(
        "strata verify",
        "strata verify --replay --data /var/lib/strata",
        "strata verify --json | jq .log.entries",
    ),
)
@data_option
@click.option("--replay", is_flag=True, help="Also rebuild every view elsewhere and compare.")
@click.option("--scratch", type=click.Path(path_type=Path), help="Where to rebuild [temporary].")
@json_option
def verify_command(data: Path | None, replay: bool, scratch: Path | None, as_json: bool) -> None:
    """Check chain, anchors, gaps, bodies and counts; safe beside a running server."""
    with readable_errors(), progress_bars() as progress:
        settings = load_settings(flags={"data": data})
        report = verify(settings, progress, replay=replay, scratch=scratch)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print_report(report)
    if not report.is_good:
        raise Failure("views differ from what the log says; see `strata projectors rebuild`")


def _print_report(report: VerifyReport) -> None:
    log = report.log
    OUT.print(f"log      [green]whole[/green]: {log.entries:,} entries, {log.erased:,} erased")
    OUT.print(f"chain    {log.chain} at {log.head:,}")
    OUT.print(f"anchors  {log.anchors:,} signed, all hold")
    OUT.print(f"indexes  {log.index_rows:,} rows, as the headers say")
    for view in report.views:
        verdict = "[green]equal[/green]" if view.is_equal else "[red]DIFFERENT[/red]"
        OUT.print(f"view     {view.view}: {view.rows:,} rows, {verdict}  {view.kept[:16]}")


@click.command("mend", epilog=examples("strata mend", "strata mend --cut --data /var/lib/strata"))
@click.option("--cut", is_flag=True, help="Cut it off, and verify what is left.")
@data_option
@json_option
def mend_command(cut: bool, data: Path | None, as_json: bool) -> None:
    """Show what a log ends in that is no record, when a server refuses to start for it.

    After a power cut that is what nobody was told is durable. A bad disk may leave it of anything:
    what was acknowledged in the last second would be cut off unnoticed, older entries are missed
    by their signed anchors. Copy the data directory first.
    """
    with readable_errors():
        settings = load_settings(flags={"data": data})
        found = mend(settings, cut=cut)
    done = "cut off" if cut else "would be cut off with --cut"
    lines = [f"{escape(t.file)}: {t.bytes:,} bytes from {t.offset:,} on {done}" for t in found]
    if as_json:
        click.echo(msgspec.json.encode(found))
    else:
        whole = "[green]nothing to mend[/green]: every log ends in a whole record"
        OUT.print("\n".join(lines) or whole)
    if cut:
        # After that was said: what is left may not hold, and then it must be known what was cut.
        with readable_errors(), progress_bars() as progress:
            report = verify(settings, progress)
        if not as_json:
            _print_report(report)


@click.command("backup", epilog=examples("strata backup /backups/monday --data /var/lib/strata"))
@click.argument("destination", type=click.Path(path_type=Path))
@keys_option
@data_option
def backup_command(destination: Path, keys: Path | None, data: Path | None) -> None:
    """Copy a data directory that no server holds; its keys go to a folder apart.

    The folder of the keys holds the newest ones only. An erasure changes the wrapping key of its
    tenant: once a backup was made after it, backups from before it cannot be read any more, except
    with the vault of a later one (strata restore --vault), and then without what was erased.
    """
    with readable_errors(), progress_bars() as progress:
        settings = load_settings(flags={"data": data})
        manifest = backup(settings, destination, progress, keys=keys)
    size = sum(file.bytes for file in manifest.files)
    OUT.print(
        f"{destination}: {manifest.head:,} entries, {len(manifest.files)} files, {size:,} bytes"
    )
    place = keys or keys_beside(destination)
    OUT.print(f"{place}: the keys. Without them no backup can be read; with them, this one can.")
    OUT.print("Keep one copy of that folder, and let each backup replace it.")


@click.command(
    "restore", epilog=examples("strata restore /backups/monday --data /var/lib/strata-again")
)
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@keys_option
@click.option(
    "--vault",
    type=click.Path(path_type=Path, exists=True),
    help="A later backup, to read one from before an erasure: all but what was erased comes back.",
)
@data_option
def restore_command(source: Path, keys: Path | None, vault: Path | None, data: Path | None) -> None:
    """Bring a backup to a new data directory, derive its views and verify it."""
    with readable_errors(), progress_bars() as progress:
        settings = load_settings(flags={"data": data})
        request = RestoreRequest(source=source, keys=keys, vault=vault)
        manifest, report = restore(request, settings, progress)
    OUT.print(f"restored {manifest.head:,} entries of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC")
    _print_report(report)


@click.group("audit")
def audit_group() -> None:
    """Prove that nobody touched the audit log."""


@audit_group.command("verify", epilog=examples("strata audit verify --data /var/lib/strata"))
@data_option
@json_option
def audit_verify(data: Path | None, as_json: bool) -> None:
    """Read every tenant's audit rows again; safe beside a running server."""
    with readable_errors(), progress_bars() as progress:
        found = verify_trails(load_settings(flags={"data": data}), progress)
    if as_json:
        click.echo(msgspec.json.encode(found))
    for item in [] if as_json else found:
        report = item.report
        verdict = "[green]whole[/green]" if report.valid else "[red]BROKEN[/red]"
        rows = f"{report.length:,} rows, {report.pruned_rows:,} pruned"
        OUT.print(f"{escape(item.tenant)}  {verdict}: {rows}")
        OUT.print(f"  head {report.head_hash}", style="dim")
    broken = [item for item in found if not item.report.valid]
    if broken:
        first = broken[0].report
        raise Failure(
            f"{escape(broken[0].tenant)}: row {first.first_broken_index:,}: {first.reason}"
            + (f" (and {len(broken) - 1} more tenants)" if len(broken) > 1 else "")
        )


@click.group("erasure")
def erasure_group() -> None:
    """See that what was erased is gone."""


@erasure_group.command(
    "prove", epilog=examples('strata erasure prove erasure_01a1… --phrase "Acme Corp"')
)
@click.argument("erasure_id")
@click.option("--phrase", "phrases", multiple=True, help="Words that must be nowhere; repeatable.")
@data_option
@json_option
def erasure_prove(
    erasure_id: str, phrases: tuple[str, ...], data: Path | None, as_json: bool
) -> None:
    """Look through every file, row, payload and index of a data directory."""
    with readable_errors():
        proof = prove(load_settings(flags={"data": data}), erasure_id, list(phrases))
    if proof is None:
        raise Failure(f"there is no erasure {escape(erasure_id)} here")
    if as_json:
        click.echo(msgspec.json.encode(proof))
    else:
        OUT.print(f"erasure   {escape(proof.erasure_id)}, {proof.status}")
        OUT.print(f"erased    {proof.events:,} events: payloads, keys and records looked for")
        looked = f"{proof.files:,} files, {proof.rows:,} rows, {proof.payloads:,} payloads"
        OUT.print(f"looked at {looked}, and the text index")
        found = [*proof.payloads_left, *proof.keys_left, *proof.records_left, *proof.phrase_in]
        for place in found:
            OUT.print(f"[red]found[/red]     {escape(place)}")
    if not proof.holds:
        raise Failure("something of it is still there")
    if not as_json:
        OUT.print("[green]nothing of it is left[/green]")
