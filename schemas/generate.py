"""Who writes `schemas/json`?  Run by `scripts/schemas`; a test tells when it should have been."""

from pathlib import Path

from schemas.catalogue import documents

FOLDER = Path(__file__).parent / "json"


def main() -> None:
    """Write every schema and remove those that no type has any more."""
    FOLDER.mkdir(exist_ok=True)
    wanted = documents()
    for stale in FOLDER.glob("*.schema.json"):
        if stale.name not in wanted:
            stale.unlink()
    for name, content in wanted.items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
