"""`probe`."""

import click

__all__ = ["probe_command"]


@click.command("probe")
def probe_command() -> None:
    """Say what is possible here."""
