"""New ids, made at the edge: the domain takes them as they come."""

import secrets
import time


def new_id() -> str:
    """Unique, and in the order of time, so that a list of them reads like one."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(5)}"
