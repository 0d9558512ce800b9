"""How large a body may be before it is refused, for every format and engine."""

from __future__ import annotations

MAX_BODY_BYTES = 768 * 1024 * 1024
"""A larger body is a dead letter named BodyTooLarge; it is never parsed."""

MAX_DEPTH = 500
"""Objects and arrays inside one another, the body itself counted as one. Deeper is MalformedBody."""

MAX_SHOWN = 40
"""Characters of a wrong value that a reason repeats."""

MAX_VARIANT_BYTES = 16 * 1024 * 1024
"""JSON text of one VARIANT. Spark holds 128 MiB of its own form of it, which may be three times as long as the text."""

MAX_VARIANT_KEY = 50_000
"""Characters (of UTF-16) of a key inside a VARIANT: what Spark's parser takes."""
