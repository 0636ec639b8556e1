"""`list` and `show`: which profiles there are, and what each of them says."""

import json
from pathlib import Path
from typing import Final

import click

from netem.catalogue import ENVIRONMENT, Catalogue
from netem.cli.describing import as_plain, in_words
from netem.cli.streams import say, tell
from netem.profile.errors import ProfileError

__all__ = ["BAD_PROFILE", "list_profiles", "profiles_option", "show_profile"]

profiles_option = click.option(
    "--profiles",
    type=click.Path(path_type=Path),
    envvar=ENVIRONMENT,
    help=f"A folder of your own profiles, which go before ours; or {ENVIRONMENT}.",
)

BAD_PROFILE: Final = 2


@click.command("list")
@profiles_option
def list_profiles(profiles: Path | None) -> int:
    """List the profiles, and say which of them are none."""
    catalogue = Catalogue.from_environment(profiles)
    names = catalogue.names()
    width = max(map(len, names), default=0)
    status = 0
    for name in names:
        try:
            tell(f"{name:{width}}  {catalogue.load(name).summary}")
        except ProfileError as error:
            say(f"netem: {error}")
            status = BAD_PROFILE
    return status


@click.command("show")
@profiles_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object: seconds, bits/s, shares.")
@click.argument("profile")
def show_profile(profiles: Path | None, as_json: bool, profile: str) -> None:
    """Show what PROFILE does, and where each value comes from."""
    loaded = Catalogue.from_environment(profiles).load(profile)
    if as_json:
        tell(json.dumps(as_plain(loaded), indent=2, ensure_ascii=False))
        return
    tell(f"{loaded.name}: {loaded.summary}")
    for line in in_words(loaded):
        tell(f"  {line}")
    for key, source in sorted(loaded.sources.items()):
        tell(f"  {key}: {source or 'no source given'}")
