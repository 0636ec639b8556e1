"""Tenuto: live voice over HTTP/3, with TCP beside it."""

__all__ = ["__version__"]

__version__ = "0.1.0"
