"""What a body may cost before it is refused: one place, so that every format and backend agrees."""

from __future__ import annotations

MAX_BODY_BYTES = 768 * 1024 * 1024
"""A larger body is a dead letter named BodyTooLarge; it is never parsed."""

MAX_DEPTH = 500
"""Objects and arrays inside one another, the body itself counted as one. Deeper is MalformedBody."""

MAX_SHOWN = 40
"""Characters of a wrong value that a reason repeats."""
