"""Benchmarks: `make bench [ONLY=kernel]`. One subject a module; a figure's name starts with its subject."""
