import json

import pytest

from penstock.demo import demo
from penstock.errors import BadEndpoint

MESSAGES = 400


@pytest.fixture(scope="module")
def shown(spark, tmp_path_factory):
    """The directory of a demonstration that was run twice, and what the second one said."""
    out = tmp_path_factory.mktemp("demo") / "out"
    demo(str(out), MESSAGES // 4, lambda text: None)
    said = []
    demo(str(out), MESSAGES, said.append)
    return out, "\n".join(said)


def lines(directory):
    return sorted(line for path in directory.iterdir() for line in path.read_bytes().splitlines())


def test_it_says_what_came_in_and_where_it_went(shown):
    out, said = shown
    delivered, dead = len(lines(out / "delivered")), len(lines(out / "dead-letters"))
    filtered = MESSAGES - delivered - dead
    equation = f"{MESSAGES} in = {delivered} out + {filtered} filtered + {dead} dead"
    assert said.count(equation) == 2
    assert f"the same {delivered} messages" in said


def test_batch_and_stream_leave_the_same_messages(shown):
    out, _ = shown
    assert lines(out / "stream" / "delivered") == lines(out / "delivered")
    assert len(lines(out / "stream" / "dead-letters")) == len(lines(out / "dead-letters"))


def test_every_place_it_names_is_there(shown):
    out, said = shown
    for name in ("connected-cars.svg", "delivered", "stream/delivered", "dead-letters", "cars/owners.csv", "log"):
        assert str(out / name) in said
        assert (out / name).exists()


def test_the_picture_has_the_counts_of_the_run(shown):
    out, _ = shown
    picture = (out / "connected-cars.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert str(len(lines(out / "delivered"))) in picture


def test_it_shows_a_delivered_message_and_a_dead_letter(shown):
    out, said = shown
    first = json.loads(sorted((out / "delivered").iterdir())[0].read_bytes().splitlines()[0])
    assert f'"vin": "{first["vehicle"]["vin"]}"' in said
    assert '"reason": ' in said


def test_it_leaves_the_files_of_others_alone(tmp_path):
    (tmp_path / "delivered").mkdir()
    with pytest.raises(BadEndpoint, match="files that are not the demonstration's"):
        demo(str(tmp_path), 10, print)
    assert (tmp_path / "delivered").is_dir()


def test_it_wants_a_message(tmp_path):
    with pytest.raises(BadEndpoint, match="shows nothing"):
        demo(str(tmp_path), 0, print)
