from __future__ import annotations

import pytest

from penstock.errors import BadExpression
from penstock.expr.xpath import checked, xpath, xpath_number, xpath_string, xpath_strings


def test_the_kind_of_result_is_chosen_by_the_function() -> None:
    columns = [xpath("//a"), xpath_string("//a"), xpath_number("//a"), xpath_strings("//a")]
    texts = ["xpath('//a')", "xpath_string('//a')", "xpath_number('//a')", "xpath_strings('//a')"]
    assert list(map(repr, columns)) == texts


@pytest.mark.parametrize(
    "path",
    [
        "/order/line[@price > 5]/sku",
        "//a/ancestor::b/following-sibling::*[last()]",
        "a and (b or not(c))",
        "and and (or)",
        "* * (3)",
        "count(//line[position() < 3]) mod (2) = 1",
        "@xml:lang",
        "contains(name, '$x p:q foo()')",
        "substring(a, string-length(concat(b, 'c')))",
        "text() | comment() | processing-instruction('x') | node()",
        "//body.head/change-date",
        "string( )",
    ],
)
def test_xpath_1_0_on_the_tree_is_accepted(path: str) -> None:
    assert checked(path) == path


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("//a[", "'//a[' is not an XPath: invalid expression\n  at   line 1, column 5\n       //a[\n           ^"),
        ("'a", "\"'a\" is not an XPath: unfinished literal"),
        ("a[$x]", "'a[$x]' is not an XPath: it has a variable\n  at   line 1, column 3\n       a[$x]\n         ^\n"
                  "  fix  write the value itself, in quotes or as a number"),
        ("//p:a", "'//p:a' is not an XPath: the namespace prefix 'p' is not declared\n  at   line 1, column 3\n"
                  "       //p:a\n         ^\n  fix  declare it: namespaces={\"p\": \"...\"}"),
        ("p:*", "'p:*' is not an XPath: the namespace prefix 'p' is not declared"),
        ("a[conut(b) > 1]", "'a[conut(b) > 1]' is not an XPath: there is no function conut()\n"
                            "  at   line 1, column 3\n       a[conut(b) > 1]\n         ^\n"
                            "  fix  did you mean 'count'? known: boolean,"),
        ("document('x')", "\"document('x')\" is not an XPath: there is no function document()"),
        ("re:test(a, 'b')", "\"re:test(a, 'b')\" is not an XPath: the namespace prefix 're' is not declared"),
        ("a[concat(b)]", "'a[concat(b)]' is not an XPath: concat() takes 2 or more arguments, not 1"),
        ("substring(a)", "'substring(a)' is not an XPath: substring() takes 2 to 3 arguments, not 1"),
        ("count('a')", "\"count('a')\" is not an XPath: invalid type"),
        ("a\0", "'a\\x00' is not an XPath: "),
    ],
)  # fmt: skip
def test_what_is_outside_the_subset_is_refused(path: str, error: str) -> None:
    with pytest.raises(BadExpression) as caught:
        xpath(path)
    assert str(caught.value).startswith(f"BadExpression: {error}")
