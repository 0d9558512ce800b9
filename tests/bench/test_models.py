from __future__ import annotations

import csv
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from penstock.bench import messages as making
from penstock.bench.models import MODELS, SCHEMAS, BadModel, model_files
from penstock.bench.spelling import COMPACT, SPACED
from penstock.bench.tpch import table
from penstock.bench.variants import as_csv, as_xml
from penstock.schema import DOUBLE, INTEGER, STRING, Array, Struct, Type, schema

SCALE = 0.01
ORDERS, CUSTOMERS = 15_000, 1_500


def read(directory: Path, model: str, messages: int | None = None) -> list[dict[str, Any]]:
    files = model_files(directory, model, SCALE, messages)
    return [json.loads(line) for path in files.paths for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("model", ["orders", "customers", "multi", "nested", "scaled-3", "collections-16", "fields"])
def test_the_sizes_are_those_of_the_files(tables: Path, model: str) -> None:
    files = model_files(tables, model, SCALE, 100)
    texts = [path.read_bytes() for path in files.paths]
    assert files.bytes == sum(map(len, texts))
    assert files.messages == sum(text.count(b"\n") for text in texts)
    assert files.bytes_per_message == files.bytes / files.messages


def test_sizes_are_about_those_of_the_paper(tables: Path) -> None:
    def size(model: str) -> float:
        count = 1 if model.startswith("scaled") else None
        return model_files(tables, model, SCALE, count, COMPACT).bytes_per_message

    assert 250 < size("orders") < 354
    assert 270 < size("customers") < 310
    assert 1_000 < size("scaled-1") < 1_500
    customer = (size("scaled-12") - size("scaled-2")) / (4 * (2**11 - 2))
    assert 500e6 < customer * 4 * 2**19 < 560e6


def test_files_are_slices_in_order(tables: Path) -> None:
    files = model_files(tables, "orders", SCALE)
    assert [path.name for path in files.paths] == [f"part-{number}.jsonl" for number in range(4)]
    assert [message["msgId"] for message in read(tables, "orders")] == list(range(ORDERS))
    few = model_files(tables, "orders", SCALE, 3)
    assert [path.name for path in few.paths] == ["part-0.jsonl", "part-1.jsonl", "part-2.jsonl"]


@pytest.mark.parametrize("model", ["orders", "multi", "nested", "entries", "sequences-10"])
@pytest.mark.parametrize(("spelling", "separators"), [(SPACED, (", ", ": ")), (COMPACT, (",", ":"))])
def test_lines_are_as_json_dumps_writes_them_or_compact(
    tables: Path, model: str, spelling: str, separators: tuple[str, str]
) -> None:
    for path in model_files(tables, model, SCALE, 50, spelling).paths:
        for line in path.read_text().splitlines():
            assert json.dumps(json.loads(line), separators=separators) == line


def test_amounts_are_the_doubles_nearest_to_the_cents(tables: Path) -> None:
    prices = table(tables, "orders", SCALE)["OTOTALPRICE"].to_pylist()
    balances = table(tables, "customers", SCALE)["CACCTBAL"].to_pylist()
    assert all(float(f"{amount:.2f}") == amount for amount in prices + balances)
    assert prices[:2] == [172799.49, 38426.09]


def test_the_first_rows_of_a_table_are_those_of_the_whole(tables: Path) -> None:
    assert table(tables, "orders", SCALE, 7).equals(table(tables, "orders", SCALE).slice(0, 7))


def test_foreign_keys_lead_to_rows(tables: Path) -> None:
    orders, customers, nations, regions = (read(tables, name) for name in ("orders", "customers", "nations", "regions"))
    assert (len(orders), len(customers), len(nations), len(regions)) == (ORDERS, CUSTOMERS, 25, 5)
    assert {order["OCUSTKEY"] for order in orders} <= {customer["CCUSTKEY"] for customer in customers}
    assert {customer["CNATIONKEY"] for customer in customers} <= {nation["NNATIONKEY"] for nation in nations}
    assert {nation["NREGIONKEY"] for nation in nations} == {region["RREGIONKEY"] for region in regions}


def test_tables_never_repeat(tables: Path) -> None:
    assert len(read(tables, "customers", 10 * CUSTOMERS)) == CUSTOMERS
    assert len(read(tables, "nations", 1_000)) == 25


def without(message: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}


def test_multi_has_a_customer_and_all_nations_and_regions(tables: Path) -> None:
    customers, nations, regions = (
        [without(message, "msgId", "type") for message in read(tables, name)]
        for name in ("customers", "nations", "regions")
    )
    for number, message in enumerate(read(tables, "multi", CUSTOMERS + 10)):
        expected = {"msgId": number, "type": "MULTI", "customer": customers[number % CUSTOMERS]}
        assert message == {**expected, "nations": nations, "regions": regions}


def test_nested_customers_hold_their_nation(tables: Path) -> None:
    nations = {n["NNATIONKEY"]: without(n, "msgId", "type", "NNATIONKEY") for n in read(tables, "nations")}
    customers = [
        {**without(customer, "msgId", "type", "CNATIONKEY"), "nation": nations[customer["CNATIONKEY"]]}
        for customer in read(tables, "customers")
    ]
    found = read(tables, "nested", 400)
    assert [message["msgId"] for message in found] == list(range(400))
    assert [one for message in found for one in message["customers"]] == (customers * 2)[:1_600]


def test_scaled_messages_double_their_customers(tables: Path) -> None:
    customers = [without(customer, "msgId", "type") for customer in read(tables, "customers")]
    orders = read(tables, "orders", 3)
    for eta in (1, 2, 9):
        found = read(tables, f"scaled-{eta}", 3)
        count = 4 * 2 ** (eta - 1)
        assert [without(message, "customers") for message in found] == orders
        assert [one for message in found for one in message["customers"]] == (customers * 3)[: 3 * count]


def test_a_large_message_written_in_pieces_is_the_same(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(tables, "scaled-6", 3)
    monkeypatch.setattr(making, "BLOCK", 10)
    assert read(tables, "scaled-6", 2) == whole[:2]


def test_collections_hold_consecutive_orders(tables: Path) -> None:
    found = read(tables, "collections-16", 100)
    assert [len(message["orders"]) for message in found] == [16] * 6 + [4]
    assert [order for message in found for order in message["orders"]] == read(tables, "orders", 100)
    assert [(message["msgId"], message["type"]) for message in found] == [(n, "COLLECTION") for n in range(7)]


def test_fields_are_orders_in_eleven_parts(tables: Path) -> None:
    expected = [
        {"order": order["msgId"], name: value} for order in read(tables, "orders", 30) for name, value in order.items()
    ]
    assert read(tables, "fields", 30) == expected
    assert model_files(tables, "fields", SCALE, 30).messages == 330


def test_entries_have_the_head_one_field_and_the_tail(tables: Path) -> None:
    found = read(tables, "entries", 30)
    assert len(found) == 180
    for order, parts in zip(read(tables, "orders", 30), zip(*[iter(found)] * 6, strict=True), strict=True):
        assert [list(part)[4] for part in parts] == list(order)[4:10]
        assert all(list(part) == [*list(order)[:4], list(part)[4], "OCOMMENT"] for part in parts)
        assert {name: value for part in parts for name, value in part.items()} == order


def test_positions_in_a_sequence_follow_the_price(tables: Path) -> None:
    found = read(tables, "sequences-100", 1_050)
    assert [message["msgId"] for message in found] == list(range(1_000))
    groups = [list(group) for _, group in groupby(found, key=lambda message: message["group"])]
    assert [len(group) for group in groups] == [100] * 10
    for group in groups:
        by_price = sorted(group, key=lambda message: (message["OTOTALPRICE"], message["msgId"]))
        assert [message["position"] for message in by_price] == list(range(1, 101))
        assert group != by_price


def test_equal_prices_are_in_the_order_of_the_messages(tables: Path) -> None:
    found = read(tables, "sequences-10000")
    assert len({message["OTOTALPRICE"] for message in found}) < len(found)
    by_price = sorted(found, key=lambda message: (message["OTOTALPRICE"], message["msgId"]))
    assert [message["position"] for message in by_price] == list(range(1, 10_001))


def test_duplicates_are_a_distance_apart(tables: Path) -> None:
    numbers = [message["msgId"] for message in read(tables, "duplicates-40", 100)]
    blocks = [range(0, 40), range(0, 40), range(40, 80), range(40, 80), range(80, 100), range(80, 100)]
    assert numbers == [number for block in blocks for number in block]
    assert [message["msgId"] for message in read(tables, "duplicates", 100)] == [*range(100), *range(100)]


def test_the_distance_of_duplicates_is_a_hundred_thousand(tmp_path: Path) -> None:
    files = model_files(tmp_path, "duplicates", 0.1, 100_001)
    lines = [line for path in files.paths for line in path.read_bytes().splitlines()]
    assert len(lines) == 200_002
    assert lines[:100_000] == lines[100_000:200_000]
    assert json.loads(lines[200_000])["msgId"] == json.loads(lines[200_001])["msgId"] == 100_000


def from_xml(element: etree._Element, kind: Type) -> Any:
    if isinstance(kind, Struct):
        return {
            name: [from_xml(child, inner.element) for child in element.findall(name)]
            if isinstance(inner, Array)
            else from_xml(element.find(name), inner)
            for name, inner in kind.fields
        }
    return {"BIGINT": int, "DOUBLE": float, "STRING": str}[str(kind)](element.text)


@pytest.mark.parametrize("model", ["orders", "customers", "nations", "regions", "multi", "nested"])
def test_xml_holds_the_same_values(tables: Path, model: str) -> None:
    files = model_files(tables, f"{model}-xml", SCALE, 50)
    found = []
    for path in files.paths:
        root = etree.parse(path).getroot()
        assert root.tag == "messages"
        found += [from_xml(message, schema(SCHEMAS[model])) for message in root.findall("message")]
    assert found == read(tables, model, 50)
    assert len(found) == files.messages


@pytest.mark.parametrize("model", ["orders", "customers", "nations", "regions"])
def test_csv_holds_the_same_values(tables: Path, model: str) -> None:
    types = {name: {"BIGINT": int, "DOUBLE": float, "STRING": str}[str(kind)]
             for name, kind in schema(SCHEMAS[model]).fields}  # fmt: skip
    found = []
    for path in model_files(tables, f"{model}-csv", SCALE, 50).paths:
        with open(path, newline="") as file:
            found += [{name: types[name](value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert found == read(tables, model, 50)


def test_signs_of_xml_and_csv_in_text_are_escaped() -> None:
    lines = [json.dumps({"text": text}).encode() + b"\n" for text in ("a<b>&amp;", 'say "a,b"')]
    root = etree.fromstring(b"".join(as_xml(lines)))
    assert [message.findtext("text") for message in root] == ["a<b>&amp;", 'say "a,b"']
    rows = csv.reader(b"".join(as_csv(lines)).decode().splitlines())
    assert list(rows) == [["text"], ["a<b>&amp;"], ['say "a,b"']]


def fits(value: Any, kind: Type) -> bool:
    if isinstance(kind, Struct):
        return list(value) == list(kind.names) and all(fits(value[name], inner) for name, inner in kind.fields)
    if isinstance(kind, Array):
        return bool(value) and all(fits(one, kind.element) for one in value)
    return {INTEGER: int, DOUBLE: float, STRING: str}[kind] is type(value)


@pytest.mark.parametrize("family", sorted({model.split("-")[0] for model in SCHEMAS} - {"fields", "entries", "cars"}))
def test_schemas_fit_the_messages(tables: Path, family: str) -> None:
    model = next(model for model in SCHEMAS if model.split("-")[0] == family)
    assert all(fits(message, schema(SCHEMAS[model])) for message in read(tables, model, 20))


@pytest.mark.parametrize("model", ["fields", "entries"])
def test_schemas_of_parts_have_all_their_fields(tables: Path, model: str) -> None:
    kinds = schema(SCHEMAS[model])
    found = read(tables, model, 20)
    assert {name for message in found for name in message} == set(kinds.names)
    for message in found:
        assert fits(message, Struct(tuple((name, kind) for name, kind in kinds.fields if name in message)))


def test_files_are_written_once_and_only_as_a_whole(tables: Path) -> None:
    leftover = tables / "scale-0.01" / "orders" / "77-spaced.partial"
    leftover.mkdir(parents=True)
    (leftover / "part-9.jsonl").write_text("torn")
    first = model_files(tables, "orders", SCALE, 77)
    times = [path.stat().st_mtime_ns for path in first.paths]
    again = model_files(tables, "orders", SCALE, 77)
    assert again == first
    assert [path.stat().st_mtime_ns for path in again.paths] == times
    assert sorted(path.name for path in first.paths[0].parent.iterdir()) == [
        "_sizes.json", "part-0.jsonl", "part-1.jsonl", "part-2.jsonl", "part-3.jsonl",
    ]  # fmt: skip
    assert not leftover.exists()


def test_every_name_in_models_is_a_model(tables: Path) -> None:
    for model in ("nations-xml", "regions-csv", "collections-1024", "sequences-10"):
        assert model in MODELS
        assert model_files(tables, model, SCALE, 20).messages > 0


@pytest.mark.parametrize("model", ["order", "scaled", "orders-3", "fields-xml", "multi-csv", "sequences-0", "fields-1"])
def test_other_names_are_refused(tables: Path, model: str) -> None:
    with pytest.raises(BadModel, match=f"there is no message model '{model}'"):
        model_files(tables, model, SCALE, 1)


def test_too_few_orders_are_an_error(tables: Path) -> None:
    with pytest.raises(BadModel, match=r"'fields': scale 0\.01 has 15,000 orders, 15,001 were asked for"):
        model_files(tables, "fields", SCALE, 15_001)
    with pytest.raises(BadModel, match="'sequences-100000': 15,000 orders hold no sequence of 100,000"):
        model_files(tables, "sequences-100000", SCALE)
    with pytest.raises(BadModel, match="0 messages"):
        model_files(tables, "orders", SCALE, 0)
