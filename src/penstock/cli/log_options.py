"""Options that the commands of the log have in common, and how a server is reached with them."""

from __future__ import annotations

import os
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import complain
from penstock.errors import BadEndpoint
from penstock.log.numbers import whole_number

if TYPE_CHECKING:
    from penstock.log.client.address import Address

SERVER = "127.0.0.1:19997"
ServerName = Annotated[
    str, typer.Option("--server", "-s", envvar="PENSTOCK_LOG_SERVER", help="Where the server is: host:port.")
]
Token = Annotated[
    str, typer.Option(envvar="PENSTOCK_LOG_TOKEN", help="The server's token; here, others see it.", show_envvar=True)
]
TokenFile = Annotated[
    str, typer.Option(envvar="PENSTOCK_LOG_TOKEN_FILE", help="A file with the server's token.", show_envvar=True)
]
Authority = Annotated[str | None, typer.Option(help="Use TLS; the file that holds the server's certificate.")]
TopicName = Annotated[str, typer.Argument(help="The topic.")]
Create = Annotated[list[str] | None, typer.Option(help="Make this topic if it is not there: name or name:4.")]


def address_of(server: str, token: str, token_file: str, authority: str | None) -> Address:
    from penstock.log.client.address import Address

    return Address.of(server, token_of(token, token_file), authority=authority)


def token_of(token: str, token_file: str) -> str:
    """The token that was given, however that was."""
    if _is_typed("--token"):
        complain("note: everybody on this machine can read a token on the command line, with ps:"
                 " give --token-file, or PENSTOCK_LOG_TOKEN")  # fmt: skip
        if _is_typed("--token-file"):
            raise BadEndpoint("a token and a file with one", None, "give --token-file alone")
        return token
    if not token_file:
        return token
    try:
        with open(token_file, encoding="utf-8") as file:
            found = file.read().strip()
            is_open = bool(os.fstat(file.fileno()).st_mode & 0o077)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadEndpoint(f"cannot read a token in {token_file}: {why}", None, "write it there, in one line") from None
    if not found or "\n" in found:
        raise BadEndpoint(f"{token_file} holds no token", None, "write it there, in one line")
    if is_open:
        complain(f"note: others on this machine can read {token_file}: chmod 600 {token_file}")
    return found


def _is_typed(name: str) -> bool:
    """Whether an option is on the command line; what stands behind -- is no option."""
    typed = takewhile(lambda text: text != "--", sys.argv[1:])
    return any(text == name or text.startswith(f"{name}=") for text in typed)


def topic_of(text: str) -> tuple[str, int]:
    name, colon, count = text.partition(":")
    partitions = whole_number(count) if colon else 1
    if partitions is None:
        raise BadEndpoint(f"{text!r} is not a topic", None, "write name or name:partitions")
    return name, partitions
