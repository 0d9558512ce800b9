from __future__ import annotations

import re
import threading
import time
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given

from penstock import App, Json, Memory, Route
from penstock.errors import BadExpression
from penstock.expr import patterns
from penstock.expr.jsonpath import holds, jsonpath
from penstock.expr.patterns import extract, is_pattern, matches, parts, search
from penstock.expr.text import parse
from penstock.expr.types import type_of
from penstock.schema import schema
from penstock.testing import run
from tests.expr.regular import PATTERNS, TEXTS

HOSTILE = ["(a|aa)+b", "(a*)*b", "(a+)+b", "(a|a)*b", "((a*)*)*b"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_takes_no_longer_than_one_walk_over_the_text(pattern: str) -> None:
    began = time.perf_counter()
    assert not matches("a" * 1_000_000, pattern)
    assert not search("a" * 1_000_000, pattern)
    assert time.perf_counter() - began < 5


def test_a_jsonpath_pattern_from_the_message_takes_no_longer_either() -> None:
    began = time.perf_counter()
    for pattern in HOSTILE:
        assert not holds("$[?match(@.a, @.b)]", [{"a": "a" * 100_000, "b": pattern}])
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("pattern", ["(" * 100_000 + ")" * 100_000, "\ud800", "a{2,1}", "[z-a]", "(a{1000}){1000}"])
def test_a_message_that_brings_a_broken_or_huge_pattern_matches_nothing(pattern: str) -> None:
    assert not is_pattern(pattern)
    assert not holds("$[?match(@.a, @.b)]", [{"a": "a", "b": pattern}])


def test_a_message_that_brings_much_work_is_refused_alone() -> None:
    much = {"a": "ac" * 100_000, "b": "[ac]*a[ac]{1000}b"}
    app = App("a", Route("in", Memory(format=Json("n BIGINT")))
              .filter(jsonpath("$.x[?match(@.a, @.b)]")).to("out", Memory()))  # fmt: skip
    result = run(app, [{"x": [much]}, {"x": [{"a": "ab", "b": "ab"}]}])
    assert [(letter.error, letter.reason.partition(":")[0]) for letter in result.dead] == [
        ("WrongType", "JSONPath cannot be evaluated")
    ]
    assert len(result.messages("out")) == 1


def test_half_of_a_surrogate_pair_in_a_text_is_a_character_like_another() -> None:
    assert matches("a\ud800b", "a.b")
    assert extract("a\ud800b", "(.*)") == "a?b"


def python_pattern(pattern: str) -> str:
    """The same for Python's own engine."""
    meanings = {".": r"[^\n\r]", "$": r"(?![\s\S])"}, {"&": r"\&", "|": r"\|", "~": r"\~"}
    return "".join(meanings[in_class].get(part, part) for part, in_class in parts(pattern))


@given(PATTERNS, TEXTS)
def test_a_pattern_means_what_it_means_in_python(pattern: str, text: str) -> None:
    if r"\p" in pattern.lower():
        return  # Python's own expressions have no classes of Unicode
    expected = re.compile(python_pattern(pattern))
    assert matches(text, pattern) == (expected.fullmatch(text) is not None)
    assert search(text, pattern) == (expected.search(text) is not None)


@given(PATTERNS, TEXTS)
def test_a_batch_says_what_single_texts_say(pattern: str, text: str) -> None:
    texts = pa.array([text, None, "", "ab"])
    for name in ("matches", "search"):
        single = [None if one is None else getattr(patterns, name)(one, pattern) for one in texts.to_pylist()]
        assert patterns.test_batch(name, texts, pattern).to_pylist() == single


@pytest.mark.parametrize("category", ["L", "Lu", "M", "N", "P", "S", "Z", "C", "Cc", "Cf", "Cn", "Co"])
def test_classes_of_characters_are_those_of_unicode(category: str) -> None:
    some = [chr(code) for code in (*range(0x378), 0x378, 0xAD, 0xE000, 0x2028, 0x10FFFF)]
    expected = [character for character in some if unicodedata.category(character).startswith(category)]
    assert [one for one in some if matches(one, rf"\p{{{category}}}")] == expected
    assert [one for one in some if matches(one, rf"[\p{{{category}}}]")] == expected
    assert [one for one in some if not matches(one, rf"\P{{{category}}}")] == expected
    assert [one for one in some if not matches(one, rf"[^\p{{{category}}}]")] == expected


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a{2000}", "repeats more than 1,000 times"), ("a{99999999999}", "repeats more than 1,000 times"),
        (r"\d+", "is not a portable regular expression"),
        ("(" * 101 + ")" * 101, "has more than 100 groups inside one another"),
        ("(a{1000}){1000}", "cannot be matched: invalid repetition size"),
        (r"\p{L}{1000}", "cannot be matched: pattern too large"),
        ("a{2,1}", "cannot be matched: invalid repetition size"),
        ("[z-a]", "cannot be matched: invalid character class range"),
        ("a" * 5000, "a regular expression of 5,000 characters is longer than 4,096"),
    ],
)
def test_a_pattern_that_is_too_much_is_refused_when_it_is_written(pattern: str, what: str) -> None:
    with pytest.raises(BadExpression, match=re.escape(what)):
        type_of(parse(f"matches(a, '{pattern}')"), schema("a STRING"))
    if "portable" not in what:
        with pytest.raises(BadExpression, match=re.escape(what)):
            jsonpath("$.a[?match(@, '{}')]".format(pattern.replace("\\", r"\\")))


def test_patterns_that_were_compiled_are_not_kept_for_ever() -> None:
    for number in range(1000):
        search("a", f"a{number}")
    assert patterns._compiled.cache_info().currsize <= 128


def test_other_threads_go_on_while_a_pattern_is_matched() -> None:
    text = "ac" * 20_000
    matching = threading.Thread(target=matches, args=(text, "[ac]*a[ac]{1000}b"))
    matching.start()
    turns = 0
    while matching.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 20
