"""PURE: what Remuda knows and decides. Data in, data out; no clock, no randomness, nothing but the standard library."""
