"""`list` and `show`: which profiles there are, and what each of them says."""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import click

from netem.catalogue import ENVIRONMENT, Catalogue
from netem.profile import Profile, Schedule, Way

__all__ = ["list_profiles", "profiles_option", "show_profile"]

profiles_option = click.option(
    "--profiles",
    type=click.Path(path_type=Path),
    envvar=ENVIRONMENT,
    help=f"A folder of your own profiles, which go before ours; or {ENVIRONMENT}.",
)


@click.command("list")
@profiles_option
def list_profiles(profiles: Path | None) -> None:
    """List the profiles."""
    catalogue = Catalogue.from_environment(profiles)
    names = catalogue.names()
    width = max(map(len, names), default=0)
    for name in names:
        click.echo(f"{name:{width}}  {catalogue.load(name).summary}")


@click.command("show")
@profiles_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.argument("profile")
def show_profile(profiles: Path | None, as_json: bool, profile: str) -> None:
    """Show what a profile does: resolved values, in seconds, bits/s and fractions, and sources."""
    loaded = Catalogue.from_environment(profiles).load(profile)
    if as_json:
        click.echo(json.dumps(described(loaded), indent=2, ensure_ascii=False))
        return
    click.echo(f"{loaded.name}: {loaded.summary}")
    for name, value in _rows("", described(loaded)):
        click.echo(f"  {name:28} {value}")
    for key, source in sorted(loaded.sources.items()):
        click.echo(f"  {key}: {source or 'no source given'}")


def described(profile: Profile) -> dict[str, object]:
    """What the profile sets, without what it leaves as it is."""
    ways = {way.value: _plain(profile.conditions(way)) for way in Way}
    rest = {name: _plain(getattr(profile, name)) for name in ("block", "police", "udp_port", "nat")}
    return {**ways, **{name: value for name, value in rest.items() if value is not None}}


def _plain(value: object) -> object:
    if isinstance(value, Schedule):
        opportunities = len(value.opportunities)
        return {"trace": value.name, "opportunities": opportunities, "queue": value.queue}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        defaults = {field.name: field.default for field in fields(value)}
        return {
            name: _plain(item) for name, item in named.items() if item != defaults[name] or not item
        }
    return value


def _rows(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _rows(f"{prefix}.{name}" if prefix else name, item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _rows(f"{prefix}[{number}]", item)
    elif value not in (None, 0, False):
        yield prefix, value
