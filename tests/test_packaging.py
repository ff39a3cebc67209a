"""Does it install, start and ship as the files at the root say?"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from engine.settings import ENVIRONMENT

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("schemas", "projectors", "engine", "api")
DISTRIBUTION = "strata-memory"


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def compose() -> dict:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PACKAGES)
def test_package_name_is_ours_alone(name):
    """No other distribution owns one of our plain names, and the import finds our folder."""
    # An editable install owns no files, so our own name is there only when installed from a wheel.
    owners = set(importlib.metadata.packages_distributions().get(name, ()))
    spec = importlib.util.find_spec(name)

    assert set() == owners - {DISTRIBUTION}
    assert spec is not None
    assert spec.origin is not None
    assert owners or ROOT / name == Path(spec.origin).resolve().parent


def test_wheel_holds_the_four_packages():
    """Benchmarks and tests stay at home."""
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert set(PACKAGES) == set(wheel["packages"])


def test_image_is_compiled():
    """The wheel of the image carries the compiled modules; the hook that makes them is there."""
    hook = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["path"]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert (ROOT / hook).is_file()
    assert hook in dockerfile
    assert "\nENV STRATA_COMPILE=1\n" in dockerfile


def client() -> dict:
    return tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_client_needs_two_libraries():
    """A program that only talks to a server installs httpx, msgspec and the client, no more."""
    needed = {re.split(r"[^a-z0-9-]", each)[0] for each in client()["dependencies"]}

    assert {"httpx", "msgspec"} == needed
    assert importlib.util.find_spec("strata_client") is not None


def test_server_and_client_are_of_one_version():
    """They are released together: a server's wheel asks for the client of its own version."""
    server = project()["project"]

    assert client()["version"] == server["version"]
    assert f"{client()['name']}=={server['version']}" in server["dependencies"]
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "sdk" / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["scripts/setup", "Dockerfile"])
def test_both_come_from_the_checkout_in_one_call(name):
    """Neither is on a registry: pip takes the client for the server's need of it."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")

    assert re.search(r"pip (install|wheel) .*\./sdk ", text)


def interpreter(**environment):
    """What `scripts/interpreter` says, in an environment of these variables."""
    told = {"PATH": os.environ["PATH"]} | environment
    command = [str(ROOT / "scripts" / "interpreter")]
    return subprocess.run(command, env=told, capture_output=True, text=True, check=False)


def test_the_interpreter_that_is_named_is_taken():
    """Whoever sets PYTHON means it."""
    assert sys.executable == interpreter(PYTHON=sys.executable).stdout.strip()


def test_an_interpreter_that_does_not_work_is_passed_over(tmp_path):
    """The first on the PATH may be a stub, or too old."""
    stub = tmp_path / "python3"
    stub.write_text("#!/bin/sh\nexit 127\n")
    stub.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    chosen = interpreter(PATH=path).stdout.strip()
    version = subprocess.run([chosen, "-V"], capture_output=True, text=True, check=True).stdout

    assert str(stub) != chosen
    assert re.match(r"Python 3\.1[1-9]", version)


def test_no_interpreter_is_said_so():
    """What is needed, and how to name it."""
    found = interpreter(PYTHON="/nowhere/python3")

    assert (1, "") == (found.returncode, found.stdout)
    assert "Python 3.11 or newer is needed; PYTHON=" in found.stderr


def test_command_is_strata():
    """The one command is `strata`, and it lives in api/cli."""
    scripts = importlib.metadata.entry_points(group="console_scripts", name="strata")

    assert ["api.cli:main"] == [script.value for script in scripts]


def test_licence_is_apache():
    """The licence named in the metadata is the one in the file."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert "Apache-2.0" == project()["project"]["license"]
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


@pytest.mark.parametrize(
    "name",
    [
        "setup",
        "run",
        "check",
        "test",
        "bench",
        "schemas",
        "docs",
        "session",
        "newcomer",
        "compile",
        "interpreter",
    ],
)
def test_script_is_ready(name):
    """A script can be started as it is, and stops at the first thing that fails."""
    path = ROOT / "scripts" / name

    assert os.access(path, os.X_OK)
    assert "\nset -eu\n" in path.read_text(encoding="utf-8")


def test_ci_runs_the_same_script():
    """CI runs what everyone runs."""
    path = ROOT / ".ci" / "run"

    assert os.access(path, os.X_OK)
    assert "scripts/test" in path.read_text(encoding="utf-8")


def test_compose_has_a_server_and_redis_for_workers():
    """Plain `up` starts the server alone; the profile workers adds Redis."""
    services = compose()["services"]
    plain = {name for name, service in services.items() if not service.get("profiles")}
    workers = {
        name for name, service in services.items() if "workers" in service.get("profiles", ())
    }

    assert {"server"} == plain
    assert "redis" in workers


def test_compose_has_two_workers_that_hold_nothing():
    """They know server, Redis and token as the server does, and have neither data nor a port."""
    services = compose()["services"]
    worker, server = services["worker"], services["server"]
    shared = ("CORTEX_REDIS_URL", "CORTEX_WORKER_TOKEN", "CORTEX_LLM_URL", "CORTEX_LLM_MODEL")

    assert ["workers"] == worker["profiles"]
    assert 2 == worker["deploy"]["replicas"]
    assert ["strata", "worker"] == worker["command"]
    assert {"volumes", "ports"}.isdisjoint(worker)
    assert server["image"] == worker["image"]
    assert "http://server:3141" == worker["environment"]["CORTEX_SERVER_URL"]
    assert [server["environment"][name] for name in shared] == [
        worker["environment"][name] for name in shared
    ]
    assert "redis://redis:6379/0" in worker["environment"]["CORTEX_REDIS_URL"]


def test_compose_file_is_one():
    """As docker compose itself reads it, where that is installed; every setting is known."""
    services = compose()["services"].values()
    names = {name for service in services for name in service.get("environment", ())}
    assert set() == names - set(ENVIRONMENT.values())
    command = ["docker", "compose"]
    if shutil.which("docker") is None or _run([*command, "version"]).returncode != 0:
        return
    told = _run([*command, "--profile", "workers", "config", "--services"])

    assert 0 == told.returncode, told.stderr
    assert {"server", "worker", "redis"} == set(told.stdout.split())


def _run(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_compose_publishes_on_loopback_only():
    """dev_local believes unsigned callers, so no port may leave the machine."""
    ports = [
        port for service in compose()["services"].values() for port in service.get("ports", ())
    ]

    assert ["127.0.0.1:3141:3141"] == ports


def test_compose_volumes_are_declared():
    """A data directory is a named volume: it outlives the container."""
    config = compose()
    mounts = [
        mount for service in config["services"].values() for mount in service.get("volumes", ())
    ]

    assert ["data:/data"] == mounts
    assert {mount.split(":")[0] for mount in mounts} == set(config["volumes"])


def test_redis_keeps_nothing():
    """Nothing durable lives in Redis, so it is told to write nothing (ADR 2)."""
    command = compose()["services"]["redis"]["command"]

    assert ["redis-server", "--save", "", "--appendonly", "no"] == command


def test_image_runs_unprivileged_with_its_data_in_a_volume():
    """The image drops root before it starts, and keeps data where the compose file mounts it."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    last_stage = re.split(r"^FROM ", text, flags=re.MULTILINE)[-1]
    command = [line for line in last_stage.splitlines() if line.startswith("CMD ")]

    assert re.search(r"^USER (?!root)\w+$", last_stage, flags=re.MULTILINE)
    assert "\nVOLUME /data\n" in last_stage
    assert "/v1/admin/ready" in last_stage
    assert [
        'CMD ["strata", "serve", "--host", "0.0.0.0", "--port", "3141", "--data", "/data"]'
    ] == command
