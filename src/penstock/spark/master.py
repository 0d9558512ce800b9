"""Read the address of a Spark master, and check that somebody answers there."""

from __future__ import annotations

import re
import socket

from penstock.errors import BadMachine

CONNECT_SECONDS = 5.0
_LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|localhost|\[::1\]")
_FIX = "write local[*], spark://host:7077, yarn or k8s://https://host:port"


def is_local(master: str) -> bool:
    """Whether tasks run in the process of the driver."""
    return master.startswith("local")


def is_loopback(master: str) -> bool:
    """Whether a standalone master is on this machine and can be reached from nowhere else."""
    return master.startswith("spark://") and all(_LOOPBACK.fullmatch(host) for host, _ in _hosts(master))


def check(master: str) -> None:
    """Find a wrong address before Java starts; Spark itself would try for a minute."""
    if master.startswith(("local", "k8s://")) or master == "yarn":
        return
    if not master.startswith("spark://") or not all(port for _, port in _hosts(master)):
        raise BadMachine(f"{master!r} is not the address of a Spark master", None, _FIX)
    problems = [_unreachable(host.strip("[]"), int(port)) for host, port in _hosts(master)]
    if all(problems):
        raise BadMachine(f"no Spark master answers at {master}: {problems[0]}", None,
                         "check the address, or start one here: penstock cluster start")  # fmt: skip


def _hosts(master: str) -> list[tuple[str, str]]:
    found = [re.fullmatch(r"(.+):(\d{1,5})", place) for place in master.removeprefix("spark://").split(",")]
    return [(place[1], place[2]) if place else ("", "") for place in found]


def _unreachable(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""
