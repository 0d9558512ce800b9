"""The numbers of a run: that they add up, and how they look."""

from __future__ import annotations

import json

from penstock.summary import Latency, Step, Summary, equation, steps_text, text

RUN = Summary("orders", 1, 1000, 20, {"cheap": 600, "rest": 300}, {"intake.filter": 100}, 20, 0, 2.5)


def test_every_message_is_somewhere() -> None:
    assert RUN.conserved
    assert not Summary("orders", 1, 1).conserved
    assert Summary("orders", 1, 5, held=5).conserved


def test_batches_add_up() -> None:
    second = Summary("orders", 1, 10, 0, {"cheap": 4, "new": 0}, {"intake.other": 1}, 2, 3, 0.5)
    total = RUN + second
    delivered, filtered = {"cheap": 604, "rest": 300, "new": 0}, {"intake.filter": 100, "intake.other": 1}
    assert total == Summary("orders", 2, 1010, 20, delivered, filtered, 22, 3, 3.0)
    assert total.conserved
    assert Summary("orders") + RUN == RUN


def test_rate_is_messages_per_second() -> None:
    assert RUN.rate == 400
    assert Summary("orders", 1, 1000).rate == 0


def test_the_table_and_the_equation() -> None:
    assert text(RUN) == (
        "orders: 1 batch in 2.5 s, 400 messages/s\n"
        "  in                       1,000\n"
        "  copied                      20\n"
        "  out       cheap            600\n"
        "            rest             300\n"
        "  filtered  intake.filter    100\n"
        "  dead                        20\n"
        "  1,000 in + 20 copied = 900 out + 100 filtered + 20 dead"
    )


def test_a_run_of_nothing_still_has_a_table() -> None:
    assert text(Summary("idle")) == (
        "idle: 0 batches in 0.0 s, 0 messages/s\n"
        "  in      0\n"
        "  dead    0\n"
        "  0 in = 0 out + 0 filtered + 0 dead"
    )  # fmt: skip


def test_what_is_missing_is_said() -> None:
    assert equation(Summary("a", 1, 5, 0, {"x": 3})) == "5 in ≠ 3 out + 0 filtered + 0 dead  (2 lost)"
    assert equation(Summary("a", 1, 1, 0, {"x": 3})) == "1 in ≠ 3 out + 0 filtered + 0 dead  (2 too many)"
    assert equation(Summary("a", 1, 5, 0, {}, held=5)) == "5 in = 0 out + 0 filtered + 0 dead + 5 held"


def test_what_was_merged_or_held_before_is_said() -> None:
    batch = Summary("a", 1, 1, -2, {"x": 1}, held=-2)
    assert equation(batch) == "1 in + 2 held before - 2 merged = 1 out + 0 filtered + 0 dead"
    assert "  merged      2\n" in text(batch)


def test_numbers_can_be_written_as_json() -> None:
    read = json.loads(json.dumps(RUN.as_dict()))
    assert read["delivered"] == {"cheap": 600, "rest": 300}
    assert read["conserved"] is True
    assert read["rate"] == 400


def test_steps_add_up_and_are_conserved() -> None:
    first, second = Step(10, 6, 1, 1, 2), Step(0, 1, 0, 0, -2, -1)
    assert first.conserved
    assert second.conserved
    assert first + second == Step(10, 7, 1, 1, 0, -1)
    assert not Step(1).conserved
    total = Summary("a", 1, steps={"r.x": first}, waiting={"r.x": 2}) + Summary("a", 1, steps={"r.x": second})
    assert (total.steps, total.waiting) == ({"r.x": first + second}, {})
    assert (total + Summary("a")).steps == total.steps


def test_latency_knows_its_longest_and_the_last_batch() -> None:
    total = Latency(2, 3.0, 2.0, 2.0) + Latency(1, 0.5, 0.5, 0.5)
    assert total == Latency(3, 3.5, 2.0, 0.5)
    assert total + Latency() == total
    assert total.as_dict() == {"messages": 3, "mean": 1.167, "longest": 2.0}


def test_the_latency_of_steps_adds_up_by_step() -> None:
    first = Summary("a", 1, step_latency={"r.x": Latency(2, 3.0, 2.0, 2.0), "r.y": Latency(1, 1.0, 1.0, 1.0)})
    second = Summary("a", 1, step_latency={"r.x": Latency(1, 0.5, 0.5, 0.5), "r.z": Latency(1, 4.0, 4.0, 4.0)})
    total = first + second
    assert total.step_latency == {
        "r.x": Latency(3, 3.5, 2.0, 0.5), "r.y": Latency(1, 1.0, 1.0, 1.0), "r.z": Latency(1, 4.0, 4.0, 4.0),
    }  # fmt: skip
    assert (Summary("a") + total).step_latency == (total + Summary("a")).step_latency == total.step_latency
    assert total.as_dict()["step_latency"]["r.x"] == {"messages": 3, "mean": 1.167, "longest": 2.0}


def test_the_table_of_steps() -> None:
    steps = {"intake.decode": Step(1000, 990, 0, 10), "intake.split": Step(990, 1980, 90, 0, 0, 1080)}
    assert steps_text(Summary("a", steps=steps)) == (
        "  step              in    out  filtered  dead  held  copied\n"
        "  intake.decode  1,000    990         0    10     0       0\n"
        "  intake.split     990  1,980        90     0     0   1,080"
    )
    assert steps_text(Summary("a", steps={"r.to": Step(1, 1)})) == (
        "  step  in  out  filtered  dead  held\n  r.to   1    1         0     0     0"
    )
    timed = Summary("a", steps={"r.a": Step(), "r.to": Step(1, 1)}, step_latency={"r.to": Latency(2, 2469.0)})
    assert steps_text(timed) == (
        "  step  in  out  filtered  dead  held     latency\n"
        "  r.a    0    0         0     0     0           -\n"
        "  r.to   1    1         0     0     0  1,234.50 s"
    )
