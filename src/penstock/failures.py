"""The names of errors that a message can have at a step."""

from __future__ import annotations

DECODE = "decode"
"""The step that reads the fields of a body."""

MISSING_FIELD, FUNCTION_FAILED, SCRIPT_FAILED = "MissingField", "FunctionFailed", "ScriptFailed"
UNKNOWN_RECIPIENT, NOT_IN_TABLE = "UnknownRecipient", "NotInTable"


def said(error: Exception) -> str:
    """Why a function of the user's failed, as text that can be stored."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
