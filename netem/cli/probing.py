"""`probe`: what is possible here, each thing really tried."""

import json
from dataclasses import asdict

import click

from netem.cli.streams import tell
from netem.kernel.probe import DriverFinding, Findings, probe

__all__ = ["probe_command"]


@click.command("probe")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def probe_command(as_json: bool) -> None:
    """Try what each driver needs, and say what is possible here.

    In children and namespaces of their own: nothing of yours is changed.
    """
    found = probe()
    if as_json:
        tell(json.dumps(_plain(found), indent=2, ensure_ascii=False))
        return
    width = max(map(len, found.refusals))
    for name, refusal in found.refusals.items():
        tell(f"{name:{width}}  {'yes' if refusal is None else f'no: {refusal}'}")
    tell()
    for driver in found.drivers:
        tell(_line(driver, width))
    tell(f"{'run PROFILE':{width}}  {_run(found)}")


def _line(driver: DriverFinding, width: int) -> str:
    if driver.possible:
        return f"driver {driver.driver:{width - 7}}  yes: {driver.shows}"
    return (
        f"driver {driver.driver:{width - 7}}  no, without {', '.join(driver.needs)}\n"
        f"{'':{width}}  {driver.way_out}"
    )


def _run(found: Findings) -> str:
    """Where the server side can be, which asks for more than a bed does."""
    beds = [each.driver for each in found.drivers if each.possible and each.driver in _BEDS]
    if not beds:
        return "only with --driver relay --server HOST:PORT, for UDP"
    if found.refusals["own network"] is not None:
        return f"by {beds[0]}, with --serve CMD: your own network cannot be changed"
    return f"by {beds[0]}, the server in your own network or with --serve CMD"


_BEDS = ("tun", "veth")


def _plain(found: Findings) -> dict[str, object]:
    return {
        "tried": {
            name: {"possible": refusal is None, "reason": refusal}
            for name, refusal in found.refusals.items()
        },
        "drivers": {each.driver: asdict(each) for each in found.drivers},
        "run": _run(found),
    }
