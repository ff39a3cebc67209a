"""How is something remembered and asked for?  remember, recall, answer, why, timeline."""

import sys
from typing import Any

import click
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from api.cli.connect import Place, connected
from api.cli.pack import name_of, pack_view
from api.cli.shell import OUT, Absent, Failure, echo_json, examples, json_option
from strata_client import Client

STAGES = click.Choice(["captured", "extracted", "indexed", "consolidated"])
VIEWS = click.Choice(["holistic", "local", "descend", "raw", "granular", "narrative", "structured"])


@click.command(
    "remember",
    epilog=examples(
        'strata remember "Acme moved to 200 seats"',
        "strata remember --observed-at 2026-05-13T15:42:00Z --label sales - < note.txt",
        "git log -1 --format=%B | strata remember --lines --scope org:acme/agent:ci -",
    ),
)
@click.argument("words", nargs=-1, required=True)
@click.option("--role", default="user", show_default=True, help="Whose turn: user, assistant, …")
@click.option("--observed-at", help="When it happened, as 2026-05-13T15:42:00Z [now].")
@click.option("--label", "labels", multiple=True, help="A label; repeatable.")
@click.option("--lines", is_flag=True, help="From standard input: every line is one experience.")
@click.option("--wait", type=STAGES, default="consolidated", show_default=True, help="How far.")
@json_option
@connected
def remember_command(place: Place, words: tuple[str, ...], as_json: bool, **rest: Any) -> None:
    """Write what was experienced; `-` reads it from standard input."""
    lines, wait = rest.pop("lines"), rest.pop("wait")
    given = {name: value for name, value in rest.items() if value}
    if "labels" in given:
        given["labels"] = list(given["labels"])
    with place.client(makes=True) as client:
        for text in _texts(words, lines=lines):
            receipt = client.experience(text, wait=wait, **given)
            if as_json:
                echo_json(receipt)
            else:
                derived = ", ".join(_counted(receipt.derives or [])) or "nothing derived"
                OUT.print(
                    f"[green]{receipt.status}[/green]  {receipt.event_id}  [dim]{derived}[/]",
                    soft_wrap=True,
                )


def _texts(words: tuple[str, ...], *, lines: bool) -> list[str]:
    if words != ("-",):
        return [" ".join(words)]
    told = sys.stdin.read()
    texts = told.splitlines() if lines else [told]
    found = [text.strip() for text in texts if text.strip()]
    if not found:
        raise Failure("standard input is empty: there is nothing to remember")
    return found


def _counted(ids: list[str]) -> list[str]:
    kinds = {"ep": "episode", "fact": "fact", "belief": "belief", "concept": "concept"}
    counts: dict[str, int] = {}
    for one in ids:
        kind = kinds.get(one.partition("_")[0], one.partition("_")[0])
        counts[kind] = counts.get(kind, 0) + 1
    return [f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items()]


@click.command(
    "recall",
    epilog=examples(
        'strata recall "how many seats does Acme have?"',
        'strata recall --as-of 2026-05-20T00:00:00Z "how many seats?"',
        'strata recall --context "how many seats?"   # the block to put before a model',
        'strata recall --json "seats" | jq .layers.facts',
    ),
)
@click.argument("words", nargs=-1)
@click.option("--view", type=VIEWS, default="holistic", show_default=True, help="How to walk.")
@click.option("--as-of", help="What was known at this moment.")
@click.option("--natural", help='A stretch of time in words: "last 30 days".')
@click.option("--tokens", type=int, help="At most so many tokens.")
@click.option("--layer", "layers", multiple=True, help="Only this layer; repeatable.")
@click.option("--context", "context_only", is_flag=True, help="Print the context block alone.")
@json_option
@connected
def recall_command(place: Place, words: tuple[str, ...], as_json: bool, **rest: Any) -> None:
    """Ask: evidence from every layer, cited, inside a budget. Without words, the newest."""
    context_only = rest.pop("context_only")
    with place.client() as client:
        pack = client.recall(" ".join(words) or None, **_asked(rest))
    if as_json:
        echo_json(pack)
    elif context_only:
        click.echo(pack.context_block)
    else:
        OUT.print(pack_view(pack))


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """What recall takes, of the options."""
    asked: dict[str, Any] = {"view": given["view"]}
    temporal = {name: given[name] for name in ("as_of", "natural") if given.get(name)}
    if temporal:
        asked["temporal"] = temporal
    if given.get("tokens") is not None:
        asked["budgets"] = {"max_tokens": given["tokens"]}
    if given.get("layers"):
        asked["layers"] = list(given["layers"])
    return asked


@click.command("answer", epilog=examples('strata answer "how many seats does Acme have?"'))
@click.argument("words", nargs=-1, required=True)
@click.option("--as-of", help="What was known at this moment.")
@json_option
@connected
def answer_command(place: Place, words: tuple[str, ...], as_of: str | None, as_json: bool) -> None:
    """Answer a question in quotes from memory, or in a model's words where one is set."""
    asked = {"temporal": {"as_of": as_of}} if as_of else {}
    with place.client() as client:
        found = client.answer(" ".join(words), **asked)  # type: ignore[arg-type]
    if as_json:
        echo_json(found)
        return
    OUT.print(escape(found.answer), style=None if found.known else "dim")
    for citation in found.citations:
        OUT.print(f"[dim]{escape(citation.marker)} {citation.layer} {citation.id}[/dim]")


# ── why ──────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "why",
    epilog=examples('strata why "how many seats does Acme have?"', "strata why belief_01a1e3e8-…"),
)
@click.argument("words", nargs=-1, required=True)
@json_option
@connected
def why_command(place: Place, words: tuple[str, ...], as_json: bool) -> None:
    """Tell why something is believed, down to the events; by its id, or by what it is about."""
    with place.client() as client:
        reasons = client.beliefs.why(_belief(client, " ".join(words)))
    if as_json:
        echo_json(reasons)
        return
    OUT.print(escape(reasons.narrative))
    OUT.print(_support_tree(reasons))


def _belief(client: Client, asked: str) -> str:
    if asked.startswith("belief_"):
        return asked
    found = client.recall(asked, layers=["beliefs"]).layers.beliefs
    if not found:
        raise Absent("nothing is believed about this here; `strata recall` shows what is known")
    return found[0].id


def _support_tree(reasons: Any) -> Tree:
    nodes = {node.id: node for node in reasons.support_graph.nodes}
    below: dict[str, list[tuple[str, str]]] = {}
    for edge in reasons.support_graph.edges:
        below.setdefault(edge.start, []).append((edge.relation, edge.to))
    tree = Tree(f"[bold green]{escape(_node_line(nodes, reasons.belief.id))}[/]")
    _grow(tree, reasons.belief.id, nodes, below, {reasons.belief.id})
    return tree


def _grow(tree: Tree, at: str, nodes: Any, below: Any, seen: set[str]) -> None:
    for relation, to in below.get(at, []):
        colour = "red" if relation in ("opposed_by", "contradicts") else "cyan"
        words = relation.replace("_", " ")
        branch = tree.add(f"[{colour}]{words}[/] {escape(_node_line(nodes, to))}")
        if to not in seen:
            _grow(branch, to, nodes, below, seen | {to})


def _node_line(nodes: Any, at: str) -> str:
    node = nodes.get(at)
    return at if node is None else f"{node.summary}  {node.id}"


# ── timeline ─────────────────────────────────────────────────────────────────────────────────


@click.command(
    "timeline",
    epilog=examples("strata timeline Acme seat_count", "strata timeline Alice"),
)
@click.argument("subject")
@click.argument("predicate", required=False)
@json_option
@connected
def timeline_command(place: Place, subject: str, predicate: str | None, as_json: bool) -> None:
    """Show what was so of a subject, in the order of time; without a predicate, of all of them."""
    with place.client() as client:
        predicates = [predicate] if predicate else _predicates(client, subject)
        found = [client.facts.timeline(subject=subject, predicate=one) for one in predicates]
    if as_json:
        echo_json(found[0] if predicate else found)
        return
    for one in found:
        _print_timeline(one)


def _predicates(client: Client, subject: str) -> list[str]:
    facts = client.facts.list(subject=subject, include_superseded=True)
    found = list(dict.fromkeys(fact.predicate for fact in facts))
    if not found:
        raise Absent(f"nothing is known of {escape(subject)} here")
    return found


def _print_timeline(found: Any) -> None:
    title = f"{found.subject.name or found.subject.id} {found.predicate.replace('_', ' ')}"
    table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    for column in ("from", "to", "value", "confidence", "known since"):
        table.add_column(column, style="dim" if column == "known since" else "")
    for row in found.timeline:
        value = row.value if isinstance(row.value, str | int | float) else _value_text(row.value)
        denied = "[red]not[/red] " if row.polarity == "negative" else ""
        table.add_row(
            _moment(row.valid_from),
            _moment(row.valid_to) or "[green]now[/green]",
            denied + escape(str(value)),
            f"{row.confidence:.2f}" if row.confidence is not None else "",
            _moment(row.recorded_from),
        )
    OUT.print(table)


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("value", value.get("name") or value.get("id")))
    return name_of(value)


def _moment(when: Any) -> str:
    return f"{when:%Y-%m-%d %H:%M}" if when is not None else ""
