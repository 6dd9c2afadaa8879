"""The version, where anyone may read it without importing anything else."""

__version__ = "0.1.0"
