"""How is a worker run?  `strata worker`: it needs a server, its token and a Redis, and no data."""

import asyncio
import os
import signal
from pathlib import Path

import click
from rich.markup import escape

from api.cli.directory import readable_errors
from api.cli.shell import ERR, Failure, examples
from engine.admin import package_version
from engine.clock import Clock
from engine.embedders import load_embedder
from engine.models import Model
from engine.settings import Settings, embedder_of, load_settings
from engine.work.computes import Tools
from engine.work.embedding import is_slow
from engine.work.worker import Worker
from schemas import limits


@click.command(
    "worker", epilog=examples("strata worker --server http://10.0.0.5:3141 --token-file worker.key")
)
@click.option("--server", help="The server to work for [CORTEX_SERVER_URL].")
@click.option("--redis", help="The Redis of that server [CORTEX_REDIS_URL].")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A copy of the server's keys/worker.key, or a token in text [CORTEX_WORKER_TOKEN].",
)
@click.option("--jobs", type=click.IntRange(1, 64), help="Tasks at once [the processors].")
@click.option(
    "--model-calls",
    type=click.IntRange(1, 256),
    default=limits.MODEL_CALLS_MAX,
    show_default=True,
    help="Questions to the model at once.",
)
def worker_command(
    server: str | None,
    redis: str | None,
    token_file: Path | None,
    jobs: int | None,
    model_calls: int,
) -> None:
    """Do the heavy part of another process: read with a model, embed, map, render.

    The model and the embedder are set as they are for the server: CORTEX_LLM_…, CORTEX_EMBED_….
    """
    with readable_errors():
        flags = {"server_url": server, "redis_url": redis, "worker_token": _token(token_file)}
        settings = load_settings(flags=flags)
        asyncio.run(_run(settings, jobs or os.cpu_count() or 1, model_calls))


async def _run(settings: Settings, jobs: int, model_calls: int) -> None:
    server, redis, token = settings.server_url, settings.redis_url, settings.worker_token
    if server is None or redis is None or token is None:
        raise Failure("a worker needs --server, --redis and --token-file, or CORTEX_ variables")
    worker = Worker(
        server=server,
        token=token.value,
        redis_url=redis.secret,
        tools=_tools(settings, model_calls),
        version=package_version(),
        jobs=jobs,
    )
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, worker.stop)
    trouble = await worker.greet()
    if trouble is not None:
        ERR.print(f"[yellow]{escape(server)} does not answer yet: {escape(trouble)}[/yellow]")
    click.echo(f"worker {worker.name} for {server}: {', '.join(worker.queues)}")
    await worker.run()


def _tools(settings: Settings, model_calls: int) -> Tools:
    """What it can do besides what every worker can."""
    clock, kind = Clock(), embedder_of(settings)
    tools = Tools(clock)
    if settings.llm_url is not None and settings.llm_model is not None:
        key = settings.llm_key.value if settings.llm_key is not None else None
        tools.model = Model(settings.llm_url, settings.llm_model, key, clock, calls=model_calls)
    if is_slow(kind):
        key = None if settings.embed_key is None else settings.embed_key.value
        tools.embedder = load_embedder(kind, settings.embed_url, settings.embed_model or "", key)
    return tools


def _token(path: Path | None) -> str | None:
    """A file holds the token as it is shown, or the key that the server made."""
    if path is None:
        return None
    content = path.read_bytes()
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        return content.hex()
    return text if text.isprintable() and len(content) != 32 else content.hex()
