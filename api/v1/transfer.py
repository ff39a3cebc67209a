"""Imports and exports: memories that move in and out (001 §8.11, §8.12)."""

from collections.abc import Awaitable, Callable

from api.endpoint import BETA, Call, Endpoint, Reply
from engine.exports import get_export, start_export
from engine.importers import IMPORTERS, Importer
from engine.imports import ImportCall, cancel_import, get_import, start_import
from schemas import limits
from schemas.errors import InvalidParameter, InvalidScope, NotFound, WalUnavailable
from schemas.transfer import (
    ExportReceipt,
    ExportRequest,
    ExportState,
    ImportReceipt,
    ImportRequest,
    ImportState,
)


def _starter(importer: Importer) -> Callable[[Call], Awaitable[Reply]]:
    async def post_import(call: Call) -> Reply:
        made = await start_import(call.engine, call.caller, ImportCall(importer.name, call.body))
        return Reply(made, 202)

    return post_import


def read_import(call: Call) -> Reply:
    """How far it is."""
    return Reply(get_import(call.engine, call.caller, call.path["import_id"]))


async def post_cancel(call: Call) -> Reply:
    """Stop it where it can."""
    return Reply(await cancel_import(call.engine, call.caller, call.path["import_id"]), 202)


async def post_export(call: Call) -> Reply:
    """Begin one."""
    return Reply(await start_export(call.engine, call.caller, call.body), 202)


def read_export(call: Call) -> Reply:
    """How far it is, and where its file lies."""
    return Reply(get_export(call.engine, call.caller, call.path["export_id"]))


ENDPOINTS = (
    *(
        Endpoint(
            "POST",
            importer.family,
            _starter(importer),
            f"Import memories of {importer.name}.",
            capability=importer.capability,
            tier=BETA,
            body=ImportRequest,
            body_max=limits.BULK_BODY_BYTES_MAX,
            response=ImportReceipt,
            statuses=(202,),
            errors=(InvalidParameter, WalUnavailable),
        )
        for importer in IMPORTERS.values()
    ),
    Endpoint(
        "GET",
        "/v1/import/{import_id}",
        read_import,
        "How far an import is.",
        tier=BETA,
        response=ImportState,
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/v1/import/{import_id}/cancel",
        post_cancel,
        "Stop an import where it can stop.",
        tier=BETA,
        response=ImportState,
        statuses=(202,),
        errors=(NotFound, WalUnavailable),
    ),
    Endpoint(
        "POST",
        "/v1/export",
        post_export,
        "Export a scope and all below it.",
        capability="export.format.jsonl",
        tier=BETA,
        body=ExportRequest,
        response=ExportReceipt,
        statuses=(202,),
        errors=(InvalidParameter, InvalidScope, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/export/{export_id}",
        read_export,
        "How far an export is.",
        tier=BETA,
        response=ExportState,
        errors=(NotFound,),
    ),
)
