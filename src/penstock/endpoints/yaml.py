"""Sources, sinks and formats in YAML, both ways: `{files: orders.jsonl, format: json, schema: "id BIGINT"}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.endpoints.base import Sink, Source
from penstock.endpoints.files import APPEND, Files, Parquet, Table
from penstock.endpoints.kafka import EARLIEST, LATEST, KafkaTopic
from penstock.endpoints.kafka import LOCAL as LOCAL_KAFKA
from penstock.endpoints.log import LOCAL, Log
from penstock.endpoints.memory import Memory
from penstock.endpoints.postgres import Postgres
from penstock.endpoints.simple import Console, Rate, Void
from penstock.errors import BadEndpoint, BadFile, BadSchema, did_you_mean
from penstock.formats import Csv, Format, Json, Text, Xml
from penstock.schema import Struct, schema
from penstock.yaml.writing import write_function

if TYPE_CHECKING:
    from penstock.yaml.item import Item

_FORMAT_KEYS: dict[str, tuple[str, ...]] = {
    "json": ("schema",),
    "xml": ("schema", "root"),
    "csv": ("schema", "delimiter", "quote", "header"),
    "text": (),
}
_FORMATS = ("format", "schema", "root", "delimiter", "quote", "header")
_KEYS: dict[str, tuple[str, ...]] = {
    "files": ("record", "records", "mode", *_FORMATS),
    "parquet": ("schema", "mode"),
    "table": ("schema", "mode", "warehouse"),
    "postgres": ("table", "mode", "key"),
    "log": ("at", "key", "partitions", "headers", "token", "tls", "authority", *_FORMATS),
    "kafka": ("servers", "start", "end", "key", "partitions", "headers", "options", *_FORMATS),
    "memory": ("partitions", *_FORMATS),
    "rate": ("count", "message", *_FORMATS),
    "console": (),
    "void": (),
}
_NEEDED = {"postgres": ("table",)}


def read_endpoint(item: Item) -> Source | Sink:
    """An endpoint from a mapping, or from its name alone where it needs nothing else."""
    if not item.is_mapping:
        name = item.text()
        simple: dict[str, type[Source | Sink]] = {"void": Void, "console": Console, "memory": Memory}
        if name not in simple:
            raise BadEndpoint(f"{item.what}: there is no endpoint {name!r}", item.origin, did_you_mean(name, _KEYS))
        return simple[name]()
    entries = item.entries()
    known = [name for name in entries if name in _KEYS]
    kinds = [name for name in known if not any(name in _KEYS[other] for other in known)]
    if len(kinds) != 1:
        name = kinds[1] if kinds else next(iter(entries), "")
        said = f"is both {kinds[0]!r} and {kinds[1]!r}" if kinds else f"names no endpoint: {name!r} is none"
        origin = entries[name].origin if name else item.origin
        raise BadEndpoint(f"{item.what} {said}", origin, did_you_mean(name, _KEYS))
    kind = kinds[0]
    with item.located():
        return _made(kind, item.keys((kind, *_NEEDED.get(kind, ())), _KEYS[kind]))


def _made(kind: str, found: dict[str, Item]) -> Source | Sink:
    main = found.pop(kind)
    form = {name: found.pop(name) for name in _FORMATS if kind not in ("parquet", "table") and name in found}
    options: dict[str, Any] = {name: _option(name, item) for name, item in found.items()}
    if kind in ("files", "log", "kafka", "memory", "rate"):
        options["format"] = _format(form)
    match kind:
        case "files":
            return Files(main.text(), **options)
        case "parquet":
            return Parquet(main.text(), **options)
        case "table":
            return Table(main.text(), **options)
        case "postgres":
            return Postgres(main.text(), **options)
        case "log":
            return Log(main.text(), **options)
        case "kafka":
            return KafkaTopic(main.text(), **options)
        case "memory":
            return Memory((), **options)
        case "rate":
            return Rate(main.integer(), **options)
        case "console":
            return Console() if main.value() in (None, True) else Console(main.integer())
    return Void()


def _option(name: str, item: Item) -> object:
    match name:
        case "partitions" | "count":
            return item.integer()
        case "headers" | "tls":
            return item.boolean()
        case "schema":
            return _schema(item)
        case "key":
            return item.texts() if item.is_list else item.text()
        case "message":
            return item.function()
        case "options":
            return {name: one.value() for name, one in item.entries().items()}
        case "start" | "end" if item.is_mapping:
            return {_number(name, one): one.integer() for name, one in item.entries().items()}
    return item.text()


def _number(text: str, item: Item) -> int:
    if not text.isdecimal():
        raise BadFile(f"{text!r} is not a partition", item.origin, "write its number: 0, 1, ...")
    return int(text)


def _format(found: dict[str, Item]) -> Format | None:
    if not found:
        return None
    name = found["format"].text() if "format" in found else "json"
    first = next(iter(found.values()))
    if name not in _FORMAT_KEYS:
        raise BadSchema(f"unknown format {name!r}", found["format"].origin, did_you_mean(name, _FORMAT_KEYS))
    for key, item in found.items():
        if key != "format" and key not in _FORMAT_KEYS[name]:
            known = ("format", *_FORMAT_KEYS[name])
            raise BadFile(f"format {name!r} has no {key!r}", item.origin, did_you_mean(key, known))
    fields = _schema(found["schema"]) if "schema" in found else None
    with found.get("schema", first).located():
        if name == "text":
            return Text()
        if name == "xml":
            return Xml(fields, **({"root": found["root"].text()} if "root" in found else {}))
        if fields is None:
            raise BadSchema(f"format {name!r} needs a schema", first.origin, 'write schema: "id BIGINT, name STRING"')
        if name == "json":
            return Json(fields)
        signs = {key: found[key].text() for key in ("delimiter", "quote") if key in found}
        return Csv(fields, **signs, header="header" not in found or found["header"].boolean())


def _schema(item: Item) -> Struct:
    with item.located():
        return schema(item.plain() if item.is_mapping else item.text())  # type: ignore[arg-type]


def write_endpoint(end: Source | Sink) -> dict[str, object] | str:
    match end:
        case Files(path, form, record, mode, records):
            return {"files": path, **_options(record=record, records=records, mode=mode), **write_format(form)}
        case Parquet(path, fields, mode):
            return {"parquet": path, **_options(schema=_ddl(fields), mode=mode)}
        case Table(name, fields, mode, warehouse):
            elsewhere = warehouse if warehouse != Table("t").warehouse else None
            return {"table": name, **_options(schema=_ddl(fields), mode=mode, warehouse=elsewhere)}
        case Postgres(url, table, mode, key):
            if end.has_secret:
                raise BadEndpoint("a password is not written to a file", None,
                                  "put it into an environment variable and write ${NAME} in the url")  # fmt: skip
            return {"postgres": url, "table": table, **_options(mode=mode, key=list(key) or None)}
        case Log(topic, form, at, key, partitions, headers, token, tls, authority):
            if end.has_secret:
                raise BadEndpoint("a token is not written to a file", None,
                                  "put it into an environment variable and write ${NAME}")  # fmt: skip
            options = _options(at=at if at != LOCAL else None, key=key, partitions=partitions, authority=authority,
                               headers=headers or None, token=token or None, tls=tls or None)  # fmt: skip
            return {"log": topic, **options, **write_format(form)}
        case KafkaTopic():
            return _write_kafka(end)
        case Memory(messages, form, partitions):
            if messages:
                raise BadEndpoint("messages in memory cannot be written as YAML", None, "put them into a file")
            options = _options(partitions=partitions if partitions != 1 else None) | write_format(form)
            return {"memory": True, **options} if options else "memory"
        case Rate(per_second, count, message, form):
            made = None if message is Rate().message else write_function(message)
            return {"rate": per_second, "count": count, **_options(message=made), **write_format(form)}
        case Console(rows):
            return {"console": rows} if rows != Console().rows else "console"
        case Void():
            return "void"
    raise BadEndpoint(f"{end} cannot be written as YAML", None,
                      f"use one of {', '.join(sorted(_KEYS))}")  # fmt: skip


def _write_kafka(end: KafkaTopic) -> dict[str, object]:
    if end.has_secret:
        raise BadEndpoint("a password is not written to a file", None,
                          "put it into an environment variable and write ${NAME}")  # fmt: skip
    places = {"start": (end.start, EARLIEST), "end": (end.end, LATEST)}
    written = {name: given if isinstance(given, str) else dict(given) for name, (given, usual) in places.items()
               if given != usual}  # fmt: skip
    servers = end.servers if end.servers != LOCAL_KAFKA else None
    options = _options(servers=servers, key=end.key, partitions=end.partitions, headers=end.headers or None,
                       options=dict(end.options) or None)  # fmt: skip
    return {"kafka": end.topic, **options, **written, **write_format(end.format)}


def _options(**options: object) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None and (name, value) != ("mode", APPEND)}


def _ddl(fields: object) -> str | None:
    return None if fields is None else schema(fields).ddl()  # type: ignore[arg-type]


def write_format(form: Format | None) -> dict[str, object]:
    match form:
        case None:
            return {}
        case Csv(fields, delimiter, quote, header):
            usual = Csv(fields)
            signs = {"delimiter": delimiter, "quote": quote, "header": header}
            odd = {name: value for name, value in signs.items() if value != getattr(usual, name)}
            return {"format": "csv", "schema": fields.ddl(), **odd}
        case Xml(fields, root):
            rest = {"schema": fields.ddl()} if fields.fields else {}
            return {"format": "xml", **rest, **({"root": root} if root != Xml().root else {})}
        case Text():
            return {"format": "text"}
    return {"format": form.name, "schema": form.schema.ddl()}
