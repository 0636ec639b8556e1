"""Bare servers that do the same work with nothing of ours, to measure beside it."""
