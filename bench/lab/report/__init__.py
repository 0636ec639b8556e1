"""The report of the lab: a page to forward, and a screen for who ran it."""

from bench.lab.report.page import page
from bench.lab.report.summary import summary

__all__ = ["page", "summary"]
