"""A stand-in for SGLang 0.5.11 with a DDTree fork on it: it computes nothing. See ../README.md."""

from .version import __version__

__all__ = ["__version__"]
