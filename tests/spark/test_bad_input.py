"""Bad input at every door ends as a dead letter or as an error that says what to do; nothing is lost."""

from __future__ import annotations

import base64
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree
from pyspark.sql import SparkSession

from penstock import App, Csv, Files, Json, Memory, Route, Text, Void, Xml, body
from penstock.errors import PenstockError
from penstock.formats import base
from penstock.route.load import load
from penstock.route.yaml import from_yaml
from penstock.spark.read import files
from penstock.spark.run import run_batch
from penstock.testing import SPARK, run

ORDER = Json("id BIGINT, note STRING")


@pytest.fixture
def requests() -> Iterator[list[str]]:
    """What is asked of a server that nobody may ask anything; the first item is its address."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    asked.append(f"http://127.0.0.1:{server.server_port}")
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def documents(address: str, secret: Path) -> dict[str, bytes]:
    levels = "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 12))
    external = f'<!DOCTYPE m SYSTEM "{address}/m.dtd" [<!ENTITY % p SYSTEM "{address}/p"> %p;]>'
    return {
        "bomb.xml": f'<!DOCTYPE m [<!ENTITY x0 "ha">{levels}]><m><id>1</id><note>&x11;</note></m>'.encode(),
        "quoted.xml": f'<!DOCTYPE m [<!ENTITY x0 "ha">{levels}]><m a="&x11;"><id>1</id></m>'.encode(),
        "file.xml": f'<!DOCTYPE m [<!ENTITY e SYSTEM "file://{secret}">]><m><id>1</id><note>&e;</note></m>'.encode(),
        "web.xml": f'<!DOCTYPE m [<!ENTITY e SYSTEM "{address}/e">]><m><id>1</id><note>&e;</note></m>'.encode(),
        "dtd.xml": f"{external}<m><id>1</id></m>".encode(),
        "cut.xml": b"<m><id>1</id>",
        "empty.xml": b"",
        "null.xml": b"<m><id>1</id><note>\x00</note></m>",
        "latin.xml": b"<m><id>1</id><note>\xff</note></m>",
        "good.xml": b"<m><id>1</id><note>fine</note></m>",
    }


def test_hostile_documents_are_dead_letters_and_nothing_is_fetched(
    spark: SparkSession, tmp_path: Path, requests: list[str]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOP SECRET")
    written = documents(requests[0], secret)
    (tmp_path / "in").mkdir()
    for name, content in written.items():
        (tmp_path / "in" / name).write_bytes(content)
    elements = b"<m><id>1</id></m><m><id>2</id></m><m><id>3</id></m><m>&e;</m>"
    together = b'<!DOCTYPE all [<!ENTITY e SYSTEM "file://%s">]><all>%s</all>' % (os.fsencode(secret), elements)
    (tmp_path / "elements.xml").write_bytes(together)
    xml = Xml("id BIGINT, note STRING")
    app = App(
        "hostile",
        Route("r", Files(tmp_path / "in", xml)).filter("id > 0 AND (note IS NULL OR note != 'x')").to("x", Memory()),
        Route("q", Files(tmp_path / "elements.xml", xml, record="m")).filter(body.id >= 0).to("y", Memory()),
        Route("o", Files(tmp_path / "in" / "[cf]*.xml", xml)).to("z", Files(tmp_path / "out")),
        dead_letters=Memory(),
    )
    result = run_batch(app, spark)
    dead = {letter.message.position.topic: letter for letter in result.dead}
    passed = {message.position.topic for message in result.channels["x"]}
    assert passed == {"good.xml"}
    assert dead.keys() == {*written, "elements.xml"} - passed
    for name in written.keys() - passed:
        assert dead[name].message.raw == written[name]
        assert dead[name].error == "MalformedBody"
    assert len(result.channels["y"]) == 3
    assert dead["elements.xml"].message.raw == b"<m>&e;</m>"
    assert result.summary.conserved
    assert requests == requests[:1]
    sent = [element for path in (tmp_path / "out").iterdir() for element in etree.parse(str(path)).getroot()]
    assert [element.tag for element in sent] == ["unreadable", "unreadable"]
    assert sorted(base64.b64decode(str(element.text)) for element in sent) == [written["file.xml"], written["cut.xml"]]


def test_bytes_that_are_no_text_are_dead_letters_with_their_own_bytes(spark: SparkSession) -> None:
    bad = [
        b"\xff\xfe", b'{"id": 1}\x00', b"\x00", b"", b'{"id": 1', b"[1]", b'{"id": 1e400}', b'{"id": 1}{"id": 2}',
        b"\xef\xbb\xbf{}",
    ]  # fmt: skip
    app = App("bytes", Route("r", Memory((), ORDER)).filter(body.id > 0).to("x", Memory()))
    result = run(app, [*bad, {"id": 1}], SPARK)
    assert result.bodies("x") == [{"id": 1}]
    assert sorted(letter.message.raw for letter in result.dead) == sorted(bad)
    assert {letter.step for letter in result.dead} == {"decode"}
    assert result.summary.conserved


def test_a_message_of_a_hundred_megabytes_passes(spark: SparkSession, tmp_path: Path) -> None:
    path, size = tmp_path / "big.jsonl", 100 * 1024 * 1024
    with open(path, "wb") as file:
        file.write(b'{"id": 1}\n{"note": "')
        for _ in range(size // (1 << 20)):
            file.write(b"x" * (1 << 20))
        file.write(b'", "id": 2}\n{"id": 3}')
    route = Route("r", Files(path, ORDER)).filter(body.id > 1).to("x", Files(tmp_path / "out"))
    result = run_batch(App("big", route, dead_letters=Memory()), spark)
    assert result.summary.delivered == {"x": 2}
    assert result.summary.filtered == {"r.filter": 1}
    assert not result.dead
    sizes = [file.stat().st_size for file in (tmp_path / "out").iterdir()]
    assert sum(sizes) == path.stat().st_size - len(b'{"id": 1}\n') + 1


def test_a_body_over_the_limit_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_BODY_BYTES", 50)
    formats = {ORDER: b'{"id": 1, "note": "%s"}', Text(): b"%s", Csv("id BIGINT, note STRING"): b"1,%s",
               Xml("id BIGINT, note STRING"): b"<m><note>%s</note></m>"}  # fmt: skip
    for format, shape in formats.items():
        field = "value" if isinstance(format, Text) else "note"
        app = App("large", Route("r", Memory((), format)).filter(f"{field} != ''").to("x", Memory()))
        result = run(app, [shape % (b"x" * 60), shape % b"x"])
        assert len(result.messages("x")) == 1
        (letter,) = result.dead
        assert letter.error == "BodyTooLarge"
        assert letter.reason == f"the body has {len(shape) + 58} bytes, the limit is 50"


def said(make: object) -> str:
    with pytest.raises(PenstockError) as caught:
        make()  # type: ignore[operator]
    return str(caught.value)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "locked.jsonl"
    path.write_text("")
    path.chmod(0)
    source = Files(path, ORDER)
    entry = App("a", Route("r", source).to("x", Void())).plan.entries[0]
    assert said(lambda: files.check(source, entry, streaming=False)) == (
        f"BadEndpoint: route 'r' may not read {path}\n  fix  change the file's permissions"
    )


def test_a_route_file_that_does_not_load_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    assert said(lambda: load("broken.py")).startswith(
        "BadFile: broken.py does not load: ModuleNotFoundError: No module named 'nothing_of_that_name'\n"
        "  at   broken.py:1"
    )


def test_a_yaml_file_with_an_unknown_endpoint_or_key_says_where() -> None:
    text = "app: a\nroutes:\n  - route: r\n    from: {fils: x}\n    steps: [{to: x}]\nsinks: {x: void}\n"
    unknown = said(lambda: from_yaml(text, "a.yaml"))
    assert "'fils'" in unknown
    assert "a.yaml:4" in unknown
    assert "did you mean 'files'?" in unknown
    key = said(lambda: from_yaml(text.replace("fils: x", "files: x, formta: text"), "a.yaml"))
    assert "'formta'" in key
    assert "did you mean 'format'?" in key
