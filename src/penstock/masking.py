"""Text without the secrets that stand in it: addresses of servers, and lines of routes in Python or YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

SECRETS = (
    re.compile(r"""(?<=://)([^:@/?#\s"']*):([^\s"']*)(?=@)"""),
    re.compile(r"""\b(password)\s*=\s*('[^']*'|[^&\s"']*)"""),
)
"""How passwords stand in the address of a server; the second group is the password."""
_RUN = re.compile(r"""[^\s"']++""")
_WORDS = ("token", "password", "passwd", "secret", "apikey", "api_key", "credential")
_HIDDEN = "***"
_NAMED = re.compile(r"\$\{\w+\}")
_TOKEN = re.compile(
    r"""(?xs)
    (?P<comment> \#[^\n]*+ )
    | [rbfutRBFUT]{0,2}+ (?:
        (?P<long> \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: \"{3} | \\?+\Z )
                | '{3} (?: [^'\\] | \\. | '(?!'') )*+ (?: '{3} | \\?+\Z ) )
        | (?P<short> " (?: [^"\\\n] | \\. )*+ "?+ | ' (?: [^'\\\n] | \\. )*+ '?+ )
      )
    | (?P<name> \w++ )
    | (?P<space> \s++ )
    | (?P<sign> [=!<>]=++ | . )
    """
)
"""Of Python. Every character is looked at once or twice, whatever the text."""
_IN_BLOCK = re.compile(r"^[ \t]*+(?:-[ \t]++)?+(?P<name>[\w.-]++)[ \t]*+:[ \t]++(?P<value>[^\s\"'{\[#].*)$")
_IN_FLOW = re.compile(r"(?<![\w.-])(?P<name>[\w.-]++)[\"']?+[ \t]*+:[ \t]++(?P<value>[^\s\"'{\[#,}\]][^,}\]]*+)")


def masked(text: str) -> str:
    """The text without the passwords of the addresses in it."""
    return SECRETS[1].sub(r"\1=***", _RUN.sub(_without_password, text))


def _without_password(run: re.Match[str]) -> str:
    """Behind the last @ there is no password to look for, again and again."""
    head, at, tail = run[0].rpartition("@")
    return SECRETS[0].sub(r"\1:***", head + at) + tail


def is_secret(name: str) -> bool:
    """Whether what has this name is not to be shown."""
    lowered = name.lower()
    return any(word in lowered for word in _WORDS)


def masked_line(line: str, yaml: bool = False) -> str:
    """A line of a route without the secrets that are written out in it; a variable that is named is none."""
    hidden = masked(line)
    if not is_secret(hidden):
        return hidden
    hidden = _IN_BLOCK.sub(_without_value, _cut(hidden, _literals(hidden)))
    return _IN_FLOW.sub(_without_value, hidden) if yaml else hidden


@lru_cache(maxsize=8)
def masked_lines(text: str, yaml: bool) -> tuple[str, ...]:
    """The lines of a whole file: a secret may go over several of them."""
    if is_secret(text):
        text = _cut(text, _scalars(text) if yaml else _literals(text))
    return tuple(text.split("\n"))


def _without_value(found: re.Match[str]) -> str:
    shown = not is_secret(found["name"]) or _NAMED.fullmatch(found["value"].strip())
    return found[0] if shown else found[0].removesuffix(found["value"]) + _HIDDEN


def _cut(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """The text with asterisks for these parts of it, and as many lines as before."""
    found = [(start, end) for start, end in spans if start < end and not _NAMED.fullmatch(text[start:end])]
    kept = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *found, (len(text), len(text))])]
    hidden = ["\n".join([_HIDDEN] * (text.count("\n", start, end) + 1)) for start, end in found]
    return "".join(part for pair in zip(kept, [*hidden, ""], strict=True) for part in pair)


def _literals(text: str) -> Iterator[tuple[int, int]]:
    """Where texts stand in Python that are the value of a secret name, or part of it."""
    named = quoted = valued = False
    depth = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("space", "comment"):
            continue
        if kind in ("long", "short"):
            start, end = _inside(token, 3 if kind == "long" else 1)
            if valued:
                yield start, end
            else:
                named = quoted = is_secret(text[start:end])
            continue
        sign = token[0]
        if valued:
            depth += (sign in "([{") - (sign in ")]}")
            if depth > 0 or sign in ("(", "[", "{", "+", "\\") or (sign in ")]}" and depth == 0):
                continue
        valued = named and (sign in ("=", ":") or (sign == "," and quoted))
        named, quoted, depth = kind == "name" and is_secret(sign), False, 0


def _inside(token: re.Match[str], quote: int) -> tuple[int, int]:
    group = "long" if quote == 3 else "short"
    text = token[group]
    closed = len(text) >= 2 * quote and text.endswith(text[:quote])
    return token.start(group) + quote, token.end(group) - (quote if closed else 0)


def _scalars(text: str) -> Iterator[tuple[int, int]]:
    """Where the values of secret keys stand in YAML; behind a mistake, all that may be one."""
    import yaml

    opening = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken, yaml.BlockMappingStartToken,
               yaml.BlockSequenceStartToken)  # fmt: skip
    closing = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken, yaml.BlockEndToken)
    is_key = named = valued = False
    depth = end = 0
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            end = token.end_mark.index
            if valued:
                depth += isinstance(token, opening) - isinstance(token, closing)
                valued = depth > 0 or (depth == 0 and not isinstance(token, (yaml.KeyToken, yaml.FlowEntryToken)))
            if isinstance(token, yaml.ScalarToken):
                if valued:
                    yield _unquoted(text, token.start_mark.index, end)
                named = is_key and is_secret(token.value)
            elif isinstance(token, yaml.ValueToken) and not valued:
                valued, depth = named, 0
            is_key = isinstance(token, yaml.KeyToken) or (is_key and not isinstance(token, yaml.ScalarToken))
    except yaml.YAMLError:
        if valued:
            yield end, len(text)


def _unquoted(text: str, start: int, end: int) -> tuple[int, int]:
    if text[start] in "\"'":
        return start + 1, end - 1
    while text[end - 1].isspace():  # a block goes as far as the next token
        end -= 1
    return start, end
