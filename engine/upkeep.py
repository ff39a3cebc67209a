"""Can it be proven, copied and brought back?  What runs on a data directory without a server."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from engine.daemon import collect_skips
from engine.engine import FAMILIES, Engine, Projection, Stores, assemble, open_stores
from engine.rebuild import ViewDigest, digests, rebuild_inline, replay_inline, replay_stages
from engine.settings import Settings
from engine.state.integrity import LogReport, verify_log
from engine.state.keyring import has_key, mirror
from engine.state.kv import CorruptStore, StoreError
from engine.state.mending import Tail, tail_of
from engine.state.names import TENANT
from engine.state.rocks import RocksKV
from engine.state.views import Unit, prefix_end
from schemas.entry import Directive, StoreBlob
from schemas.times import Instant, from_us

Progress = Callable[[str, int, int], None]
"""(what, done, total)."""

MANIFEST = "manifest.json"
_STORES = ("vault", "store")
_COPIED = ("format", "anchors.log")
_DERIVED = ("view.", "blocks@", "places@", "feed", "embeddings", "lifecycle")
"""Families that hold in clear what was derived from payloads: a backup leaves them out."""
_STATES = (b"unit.", b"rebuild.", b"index.", b"preview.")
"""Rows of `meta` that tell of those families, or show what was about to be erased."""
_CHUNK = 1 << 20
_SLOTS = 4096


class ViewComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A view as it was kept, beside what follows from the log."""

    view: str
    rows: int
    kept: str
    replayed: str

    @property
    def is_equal(self) -> bool:
        """Replay equality (I4)."""
        return self.kept == self.replayed


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification saw."""

    log: LogReport
    views: list[ViewComparison]

    @property
    def is_good(self) -> bool:
        """Whether everything held."""
        return all(view.is_equal for view in self.views)


class BackupFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a backup."""

    path: str
    bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds; restoring checks every line."""

    created_at: Instant
    head: int
    chain: str
    files: list[BackupFile]
    wrapping: dict[int, int] = {}
    """The generation of the wrapping key that each tenant's keys need to be opened."""


@contextmanager
def inspected(settings: Settings, *, read_only: bool = True) -> Iterator[Engine]:
    """An engine at rest: nothing runs, nothing is written unless asked."""
    stores = open_stores(settings, read_only=read_only)
    try:
        engine = assemble(settings, stores)
        try:
            yield engine
        finally:
            engine.log.close()
    finally:
        stores.close()


def verify(
    settings: Settings, progress: Progress, *, replay: bool = False, scratch: Path | None = None
) -> VerifyReport:
    """Check the log; with `replay`, rebuild every view elsewhere and compare. Writes nothing here.

    Works beside a running server: it reads the state as it was when the check began.
    """
    with inspected(settings) as engine:
        stores = engine.stores
        report = verify_log(
            engine.log, engine.kv, stores.anchors, lambda done, total: progress("log", done, total)
        )
        _read_every_row(engine, progress)
        _read_every_blob(engine, progress)
        views = _replayed(engine, progress, scratch) if replay else []
    return VerifyReport(log=report, views=views)


def mend(settings: Settings, *, cut: bool) -> list[Tail]:
    """The damaged ends of the logs of a data directory that no server holds; cut off if asked.

    What they held was perhaps never acknowledged. Anchors say more: `verify` refuses a log that
    ends before one.
    """
    found = [tail_of(settings.data / name, cut=cut) for name in _STORES]
    return [tail for tail in found if tail is not None]


def _read_every_row(engine: Engine, progress: Progress) -> None:
    """Damage also hides where no entry points: keys laid ahead, audit rows, announcements."""
    stores = (engine.stores.kv, engine.stores.vault_kv)
    families = [(kv, family) for kv in stores for family in kv.families()]
    for done, (kv, family) in enumerate(families, start=1):
        for _ in kv.scan(family):
            pass
        progress("tables", done, len(families))


def _read_every_blob(engine: Engine, progress: Progress) -> None:
    """Every blob opens with its key and is what was uploaded."""
    tenants = [number for number, _ in engine.names.all(TENANT, 0)]
    rows = [(no, *row) for no in tenants for row in engine.inline.scan(no, "blobs")]
    for done, (tenant_no, raw, row) in enumerate(rows, start=1):
        command = engine.entry_of(engine.log.read_many([row.offset])[0]).body
        assert isinstance(command, Directive), "a blob's row leads to the entry that stored it"
        assert isinstance(command.command, StoreBlob), "and that entry holds its key"
        digest = sha256()
        for piece in engine.blobs.read(tenant_no, raw, command.command.key):
            digest.update(piece)
        if digest.hexdigest() != row.sha256:
            raise CorruptStore(f"blob {raw.hex()} is not the bytes that were uploaded")
        progress("blobs", done, len(rows))


def _replayed(engine: Engine, progress: Progress, scratch: Path | None) -> list[ViewComparison]:
    with tempfile.TemporaryDirectory(prefix="strata-replay-", dir=scratch) as folder:
        kv = RocksKV.open(Path(folder) / "views", FAMILIES)
        try:
            return _compare(engine, kv, progress)
        finally:
            kv.close()


def _compare(engine: Engine, kv: RocksKV, progress: Progress) -> list[ViewComparison]:
    projection = Projection()
    for unit in (engine.inline, engine.staged):
        if not unit.is_current() or unit.state.building is not None:
            raise StoreError(
                "views are being rebuilt, or were made by another version: start the server, "
                "let it catch up, and verify again"
            )
    kept = digests(engine.kv, engine.inline) + digests(engine.kv, engine.staged)
    inline, staged = Unit(kv, "inline", projection.inline), Unit(kv, "staged", projection.staged)
    for unit in (inline, staged):
        unit.begin_build()
    replay_inline(
        inline,
        engine.log,
        engine.entry_of,
        engine.inline.state.checkpoint,
        lambda done, total: progress("inline views", done, total),
    )
    replay_stages(
        staged,
        projection.stages,
        engine.log,
        engine.entry_of,
        skips=frozenset(collect_skips(engine.log, engine.entry_of, 1)),
        until=engine.staged.state.checkpoint,
        progress=lambda done, total: progress("staged views", done, total),
    )
    for unit in (inline, staged):
        unit.swap()
    again = digests(kv, inline) + digests(kv, staged)
    return [_pair(one, other) for one, other in zip(kept, again, strict=True)]


def _pair(kept: ViewDigest, again: ViewDigest) -> ViewComparison:
    assert kept.view == again.view, "views are compared in one order"
    return ViewComparison(view=kept.view, rows=kept.rows, kept=kept.digest, replayed=again.digest)


# ── backup ───────────────────────────────────────────────────────────────────────────────────


def keys_beside(backup_path: Path) -> Path:
    """Where the keys of backups are kept unless told otherwise: one folder beside all of them."""
    return backup_path.absolute().parent / "keys"


def backup(
    settings: Settings, destination: Path, progress: Progress, *, keys: Path | None = None
) -> BackupManifest:
    """Copy a data directory that no server holds, without its keys, which go to a place apart."""
    keys = keys or keys_beside(destination)
    _require_apart(settings, destination, keys)
    if destination.exists() and any(destination.iterdir()):
        raise StoreError(f"{destination} is not empty")
    destination.mkdir(mode=0o700, parents=True, exist_ok=True)
    with inspected(settings, read_only=False) as engine:
        engine.vault.tidy()
        manifest = copy_stores(engine, engine.stores, settings.data, destination, progress)
    mirror(settings.data / "keys", keys)
    return manifest


def _require_apart(settings: Settings, destination: Path, keys: Path) -> None:
    """Keys in a backup would open it for ever; and those of a data directory are its own."""
    for place in (destination, settings.data):
        if keys.resolve().is_relative_to(place.resolve()):
            raise StoreError(f"the copy of the keys may not lie in {place}: say another --keys")


def copy_stores(
    engine: Engine, stores: Stores, data: Path, destination: Path, progress: Progress
) -> BackupManifest:
    """Checkpoint both databases and write the manifest last: without it, it is no backup."""
    # The log before the vault: the vault runs ahead, so it has the key of every entry copied.
    head, chain = engine.log.anchor_point()
    stores.kv.checkpoint(destination / "store")
    stores.vault_kv.checkpoint(destination / "vault")
    _leave_out_derived(destination / "store")
    for name in _COPIED:
        if (data / name).exists():
            shutil.copy2(data / name, destination / name)
    if (data / "blobs").exists():
        shutil.copytree(data / "blobs", destination / "blobs")
    files = _hashed(destination, progress)
    manifest = BackupManifest(
        created_at=from_us(engine.clock.now_us()),
        head=head,
        chain=chain.hex(),
        files=files,
        wrapping=engine.vault.generations(),
    )
    (destination / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    return manifest


def _leave_out_derived(store: Path) -> None:
    """Take out of a copy what is in the clear and follows from the log: no key protects it."""
    kv = RocksKV.open(store, [])
    try:
        for family in kv.families():
            if family.startswith(_DERIVED):
                kv.drop_family(family)
        batch = kv.batch()
        for prefix in _STATES:
            batch.delete_range("meta", prefix, prefix_end(prefix) or prefix)
        kv.write(batch)
        kv.compact("meta")
    finally:
        kv.close()
    RocksKV.open(store, []).close()  # which lets go of the files of dropped families


# ── restore ──────────────────────────────────────────────────────────────────────────────────


class RestoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which backup, with which keys, and for an older one the later backup whose vault opens it."""

    source: Path
    keys: Path | None = None
    vault: Path | None = None


def restore(
    request: RestoreRequest, settings: Settings, progress: Progress
) -> tuple[BackupManifest, VerifyReport]:
    """Bring a backup to a new data directory, checking every file, and verify the result."""
    source, target = request.source, settings.data
    manifest = _read_manifest(source)
    vault = request.vault or source
    if target.exists() and any(target.iterdir()):
        raise StoreError(f"{target} is not empty; restore into a new directory")
    keys = request.keys or keys_beside(source)
    _require_keys(manifest if vault == source else _read_manifest(vault), vault, keys)
    places = _checked(source, progress)
    if vault != source:
        places = {name: path for name, path in places.items() if not name.startswith("vault/")}
        found = _checked(vault, progress)
        places |= {name: path for name, path in found.items() if name.startswith("vault/")}
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    mirror(keys, target / "keys")
    for at, (name, path) in enumerate(sorted(places.items()), start=1):
        (target / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(path, target / name)
        progress("copy", at, len(places))
    _derive_again(settings, progress, is_younger=vault != source)
    report = verify(settings, progress)
    if (report.log.head, report.log.chain) != (manifest.head, manifest.chain):
        raise CorruptStore(f"the restored log ends at {report.log.head}, not at {manifest.head}")
    return manifest, report


def _read_manifest(source: Path) -> BackupManifest:
    try:
        return msgspec.json.decode((source / MANIFEST).read_bytes(), type=BackupManifest)
    except FileNotFoundError:
        raise StoreError(f"{source} is not a backup: it has no {MANIFEST}") from None


def _require_keys(manifest: BackupManifest, source: Path, keys: Path) -> None:
    """Say before anything is copied what cannot be opened, and what would help."""
    if not (keys / "master.key").exists():
        raise StoreError(f"there are no keys at {keys}: say where they are kept with --keys")
    lost = [
        tenant_no
        for tenant_no, generation in manifest.wrapping.items()
        if generation and not has_key(keys, tenant_no, generation)
    ]
    if lost:
        names = ", ".join(map(str, lost))
        raise StoreError(
            f"{source} cannot be read: the wrapping key of tenant {names} was changed by an "
            f"erasure after this backup was made, and the former one is destroyed. With --vault "
            f"and a later backup, all of it comes back except what was erased since."
        )


def _checked(source: Path, progress: Progress) -> dict[str, Path]:
    """The files that a backup's manifest names, each as it was written."""
    found = {file.path: file for file in _hashed(source, progress)}
    manifest = _read_manifest(source)
    for file in manifest.files:
        if found.get(file.path) != file:
            raise CorruptStore(f"{source / file.path} is not the file the manifest names")
    return {file.path: source / file.path for file in manifest.files}


def _derive_again(settings: Settings, progress: Progress, *, is_younger: bool) -> None:
    """Derive what a backup leaves out; a younger vault says first what was erased meanwhile."""
    with inspected(settings, read_only=False) as engine:
        if is_younger:
            engine.vault.cut(engine.log.head())
            engine.log.erase(_keyless(engine))
        rebuild_inline(engine.inline, engine.log, engine.entry_of)
        engine.staged.begin_build()
        replay_stages(
            engine.staged,
            Projection().stages,
            engine.log,
            engine.entry_of,
            skips=frozenset(collect_skips(engine.log, engine.entry_of, 1)),
            until=engine.log.head(),
            progress=lambda done, total: progress("views", done, total),
        )
        engine.staged.swap()


def _keyless(engine: Engine) -> list[int]:
    """The entries whose keys were destroyed."""
    offsets = range(engine.log.base_offset + 1, engine.log.head() + 1)
    return [
        offset
        for at in range(0, len(offsets), _SLOTS)
        for offset, slot in zip(
            offsets[at : at + _SLOTS],
            engine.vault.slots(list(offsets[at : at + _SLOTS])),
            strict=True,
        )
        if slot is None
    ]


def _hashed(folder: Path, progress: Progress) -> list[BackupFile]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    files = []
    for at, path in enumerate(paths, start=1):
        digest = sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        name = str(path.relative_to(folder))
        size = path.stat().st_size
        files.append(BackupFile(path=name, bytes=size, sha256=digest.hexdigest()))
        progress("hash", at, len(paths))
    return files
