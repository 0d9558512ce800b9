"""The numbers of a run for those who watch it: what Prometheus reads, files that are never half, a page."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.metrics import CONTENT_TYPE, Export, exposition
from penstock.summary import Latency, Step, Summary

STEPS = {
    "in.take.decode": Step(5, 4, 0, 1),
    'in.take.say "hi"\\': Step(4, 6, 1, 0, 0, 3),
    "out.merge": Step(6, 1, 0, 0, 2, -3),
}
RUN = Summary(
    "orders", 2, 5, 0, {"b": 1, "a": 0}, {'in.take.say "hi"\\': 1}, 1, 2, 0.5, STEPS,
    {"b": Latency(1, 0.25, 3.0, 0.25)}, {"out.merge": 7},
    {"in.take.decode": Latency(5, 1.25, 3.0, 0.5), "out.merge": Latency(6, 1.5, 3.0, 0.25)},
)  # fmt: skip

TEXT = """\
# HELP penstock_batches_total Batches that were published.
# TYPE penstock_batches_total counter
penstock_batches_total{app="orders"} 2
# HELP penstock_batch_seconds How long batches took.
# TYPE penstock_batch_seconds summary
penstock_batch_seconds_sum{app="orders"} 0.5
penstock_batch_seconds_count{app="orders"} 2
# HELP penstock_last_batch_timestamp_seconds When the last batch ended.
# TYPE penstock_last_batch_timestamp_seconds gauge
penstock_last_batch_timestamp_seconds{app="orders"} 1700000000.5
# HELP penstock_received_messages_total Messages from sources.
# TYPE penstock_received_messages_total counter
penstock_received_messages_total{app="orders"} 5
# HELP penstock_delivered_messages_total Messages in sinks, by channel.
# TYPE penstock_delivered_messages_total counter
penstock_delivered_messages_total{app="orders",channel="a"} 0
penstock_delivered_messages_total{app="orders",channel="b"} 1
# HELP penstock_messages_total Messages at every step, by what became of them.
# TYPE penstock_messages_total counter
penstock_messages_total{app="orders",route="in.take",step="decode",outcome="in"} 5
penstock_messages_total{app="orders",route="in.take",step="decode",outcome="out"} 4
penstock_messages_total{app="orders",route="in.take",step="decode",outcome="filtered"} 0
penstock_messages_total{app="orders",route="in.take",step="decode",outcome="dead"} 1
penstock_messages_total{app="orders",route="in.take",step="say \\"hi\\"\\\\",outcome="in"} 4
penstock_messages_total{app="orders",route="in.take",step="say \\"hi\\"\\\\",outcome="out"} 6
penstock_messages_total{app="orders",route="in.take",step="say \\"hi\\"\\\\",outcome="filtered"} 1
penstock_messages_total{app="orders",route="in.take",step="say \\"hi\\"\\\\",outcome="dead"} 0
penstock_messages_total{app="orders",route="in.take",step="say \\"hi\\"\\\\",outcome="copied"} 3
penstock_messages_total{app="orders",route="out",step="merge",outcome="in"} 6
penstock_messages_total{app="orders",route="out",step="merge",outcome="out"} 1
penstock_messages_total{app="orders",route="out",step="merge",outcome="filtered"} 0
penstock_messages_total{app="orders",route="out",step="merge",outcome="dead"} 0
penstock_messages_total{app="orders",route="out",step="merge",outcome="merged"} 3
# HELP penstock_held_messages Messages that wait at a step.
# TYPE penstock_held_messages gauge
penstock_held_messages{app="orders",route="in.take",step="decode"} 0
penstock_held_messages{app="orders",route="in.take",step="say \\"hi\\"\\\\"} 0
penstock_held_messages{app="orders",route="out",step="merge"} 7
# HELP penstock_message_latency_seconds From the time of a message to its publication.
# TYPE penstock_message_latency_seconds summary
penstock_message_latency_seconds_sum{app="orders",channel="b"} 0.25
penstock_message_latency_seconds_count{app="orders",channel="b"} 1
# HELP penstock_message_latency_max_seconds The longest latency of the last batch.
# TYPE penstock_message_latency_max_seconds gauge
penstock_message_latency_max_seconds{app="orders",channel="b"} 0.25
# HELP penstock_step_latency_seconds From the time of a message that came to a step to the publication of its batch.
# TYPE penstock_step_latency_seconds summary
penstock_step_latency_seconds_sum{app="orders",route="in.take",step="decode"} 1.25
penstock_step_latency_seconds_count{app="orders",route="in.take",step="decode"} 5
penstock_step_latency_seconds_sum{app="orders",route="out",step="merge"} 1.5
penstock_step_latency_seconds_count{app="orders",route="out",step="merge"} 6
# HELP penstock_step_latency_max_seconds The longest latency of the last batch.
# TYPE penstock_step_latency_max_seconds gauge
penstock_step_latency_max_seconds{app="orders",route="in.take",step="decode"} 0.5
penstock_step_latency_max_seconds{app="orders",route="out",step="merge"} 0.25
"""
LINE = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+-]+')


def test_the_text_that_prometheus_reads() -> None:
    assert exposition(RUN, 1_700_000_000.5) == TEXT
    assert all(line.startswith("#") or LINE.fullmatch(line) for line in TEXT.splitlines())


def test_a_run_that_has_begun_has_numbers_too() -> None:
    assert 'penstock_batches_total{app="idle"} 0\n' in exposition(Summary("idle"))
    assert "timestamp" not in exposition(Summary("idle"))
    assert "latency" not in exposition(Summary("idle"))


def test_names_with_line_breaks_stay_on_their_line() -> None:
    text = exposition(Summary("a", 1, 1, 0, {"x\ny": 1}))
    assert 'channel="x\\ny"} 1\n' in text


def test_files_by_their_ending(tmp_path: Path) -> None:
    paths = [tmp_path / "numbers.json", tmp_path / "numbers.prom"]
    with Export(map(str, paths)) as export:
        export.update(Summary("orders"))
        assert json.loads(paths[0].read_text())["batches"] == 0
        export.update(RUN)
    read = json.loads(paths[0].read_text())
    assert read["steps"]["out.merge"] == {"in": 6, "out": 1, "filtered": 0, "dead": 0, "held": 2, "copied": -3}
    assert read["latency"] == {"b": {"messages": 1, "mean": 0.25, "longest": 3.0}}
    assert read["step_latency"]["out.merge"] == {"messages": 6, "mean": 0.25, "longest": 3.0}
    assert read["waiting"] == {"out.merge": 7}
    assert "penstock_last_batch_timestamp_seconds" in paths[1].read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numbers.json", "numbers.prom"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers.prom"
    done = threading.Event()
    with Export([str(path)]) as export:
        export.update(RUN)

        def rewrite() -> None:
            for _ in range(200):
                export.update(RUN)
            done.set()

        threading.Thread(target=rewrite).start()
        while not done.is_set():
            assert path.read_text().endswith(TEXT.splitlines(keepends=True)[-1])


def test_a_page_while_it_runs() -> None:
    with Export(port=0) as export:
        export.update(RUN)
        assert export.address is not None
        with urllib.request.urlopen(export.address) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert 'penstock_held_messages{app="orders",route="out",step="merge"} 7\n' in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(export.address.replace("/metrics", "/other"))
        assert export.address.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(export.address)


def test_what_cannot_be_written_or_served_is_said(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"cannot tell the format of numbers.txt\n  fix  end it in .json or .prom"):
        Export(["numbers.txt"])
    with pytest.raises(PenstockError, match=r"cannot write .*/no/numbers.json: No such file"):
        Export([str(tmp_path / "no" / "numbers.json")]).update(RUN)
    with Export(port=0) as export:
        assert export.server is not None
        with pytest.raises(PenstockError, match=r"cannot serve the numbers at port \d+: Address already in use"):
            Export(port=export.server.server_port)
