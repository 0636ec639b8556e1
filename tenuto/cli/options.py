"""The options that `play` and `speak` share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qs

import click

from tenuto.cli.paths import NamedPath
from tenuto.cli.place import same_place, shown
from tenuto.cli.recorder import check_recording
from tenuto.cli.sink import check_output
from tenuto.client import RETRY, PathStore, RetryPolicy, Target, TransportChoice, Trust
from tenuto.errors import ErrorCode, OperatorError, RequestError
from tenuto.redaction import redact
from tenuto.session import DEFAULT_LEAD, LIVE_LEAD
from tenuto.tls import DEFAULT_FOLDER

if TYPE_CHECKING:
    from tenuto.playout import PlayoutMode  # it takes its time to load

__all__ = [
    "DEFAULT_SERVER",
    "ListenOptions",
    "ca_option",
    "insecure_option",
    "listening",
    "server_option",
    "server_origin",
    "trust_for",
]

DEFAULT_SERVER = "https://localhost:4433"

_DEV_CA = DEFAULT_FOLDER / "ca.pem"

Lead = float | Literal["max"]

F = TypeVar("F", bound=Callable[..., Any])


class LeadType(click.ParamType[Lead]):
    """Seconds, or `max`."""

    name = "seconds|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Lead:
        if value == "max":
            return "max"
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number of seconds nor max", param, ctx)


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """How to listen, as the command line says it."""

    transport: TransportChoice
    ca: Path | None
    insecure: bool
    output: str | None
    lead: Lead | None
    as_json: bool
    mode: PlayoutMode = "gapless"
    no_drift: bool = False
    record_arrivals: str | None = None
    patience: float = 60.0
    no_memory: bool = False
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.insecure and self.ca is not None:
            raise click.UsageError("--ca and --insecure contradict each other")
        if self.output is not None:
            check_output(self.output)
        if self.record_arrivals is not None:
            check_recording(self.record_arrivals)
            if self.output is not None and same_place(self.output, self.record_arrivals):
                raise OperatorError(
                    f"--output and --record-arrivals both write {shown(self.record_arrivals)}",
                    remedy="name two files",
                )

    def lead_for(self, url: str) -> Lead | None:
        """What to ask for beside the URL.

        A live listener wants to lag little. A file has no clock to wait for: it takes all as
        fast as it comes.
        """
        if self.lead is not None or "lead" in Target.parse(url).names:
            return self.lead
        if self.mode == "live":
            return LIVE_LEAD
        return "max" if self.output not in (None, "-") else None

    def pacing(self, url: str) -> float | None:
        """Seconds ahead of real time that the server will send; None for unpaced."""
        lead = self.lead_for(url)
        if lead is None:
            lead = _lead_of(parse_qs(Target.parse(url).query).get("lead", [""])[-1])
        return None if lead == "max" else lead

    def mode_for(self, url: str) -> PlayoutMode | None:
        """What to ask for after time away, beside the URL.

        A file is to have all of it, whatever it is of. Who hears the sound is served as suits the
        session, unless it is to be the present.
        """
        if self.mode == "live":
            return "live"
        if "mode" in Target.parse(url).names:
            return None
        return None if self.output in (None, "-") else "gapless"

    @property
    def resume(self) -> RetryPolicy | None:
        """How a stream goes on that was cut; None where nobody waits for it."""
        return replace(RETRY, patience=self.patience) if self.patience else None

    @property
    def memory(self) -> PathStore | None:
        """Where it is kept which networks let no QUIC through; None for the user's own file."""
        return PathStore() if self.no_memory else None

    def trust(self, url: str) -> Trust:
        """`--ca`, else $TENUTO_CA, else the development CA for this machine's own names."""
        return trust_for(Target.parse(url).host, self.ca, insecure=self.insecure)


def listening(function: F) -> F:
    """Adds the shared options; the command gets them as `options`, a `ListenOptions`."""

    def collected(**values: Any) -> Any:
        names = ListenOptions.__dataclass_fields__
        options = ListenOptions(**{name: values.pop(name) for name in names})
        return function(options=options, **values)

    collected.__name__ = function.__name__
    collected.__doc__ = function.__doc__
    collected.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def trust_for(host: str, ca: Path | None, *, insecure: bool) -> Trust:
    """What `--ca` and `--insecure` mean for this host."""
    if insecure:
        return Trust(insecure=True)
    named = ca or os.environ.get("TENUTO_CA")
    if named:
        return Trust(cafile=Path(named))
    if _loopback(host) and _DEV_CA.is_file():
        return Trust(cafile=_DEV_CA)
    return Trust()


server_option = click.option(
    "--server",
    metavar="URL",
    envvar="TENUTO_SERVER",
    default=DEFAULT_SERVER,
    show_default=True,
    help="The server to ask: scheme, host and port. $TENUTO_SERVER names another default.",
)

ca_option = click.option(
    "--ca",
    metavar="PEM",
    type=NamedPath(),
    help=f"Trust this CA alone.  [default: $TENUTO_CA; else {_DEV_CA} for localhost, if it "
    "is there; else the public CAs]",
)

insecure_option = click.option(
    "--insecure", is_flag=True, help="Verify no certificate: for looking, not for use."
)

_OPTIONS = (
    click.option(
        "--output",
        "-o",
        metavar="FILE|-",
        help="Write to FILE.wav or FILE.raw instead of the loudspeaker; - writes raw samples "
        "(16-bit little-endian) to standard output.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["gapless", "live"]),
        default="gapless",
        show_default=True,
        help="How the loudspeaker plays. gapless: every sample, whenever it comes. live: as "
        "near to the present as the network allows; asks for a lead of 0.2. A file has all of a "
        "live session that the server still holds, unless you say live.",
    ),
    click.option(
        "--no-drift",
        is_flag=True,
        help="With --mode gapless: play every sample as it came. Otherwise the clock of the "
        "loudspeaker is followed, up to 1 % off, by shortening or lengthening a few frames.",
    ),
    click.option(
        "--record-arrivals",
        metavar="FILE",
        help="Write down when the frames came, as JSON lines, beside playing them.",
    ),
    click.option(
        "--transport",
        type=click.Choice(["auto", "quic", "tcp"]),
        default="auto",
        show_default=True,
        help="auto races QUIC and TCP, and changes between them.",
    ),
    click.option(
        "--lead",
        type=LeadType(),
        metavar="SECONDS|max",
        help="How many seconds ahead of real time the server may send; max means as fast as "
        "it goes.  [default: max to a file, 0.2 with --mode live, else the server's]",
    ),
    click.option(
        "--patience",
        type=click.FloatRange(0, 86_400),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to try to go on where the connection is lost; 0 ends there.",
    ),
    click.option(
        "--no-memory",
        is_flag=True,
        help="Neither read nor write the file, in your folder for state, that remembers on which "
        "networks QUIC failed, so that TCP is tried first there.",
    ),
    click.option(
        "--token",
        metavar="JWT",
        envvar="TENUTO_TOKEN",
        help="What lets us in, where the server asks. $TENUTO_TOKEN is seen by fewer.",
    ),
    ca_option,
    insecure_option,
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print events as JSON lines and a summary as the last one; on standard error if "
        "standard output carries audio.",
    ),
)


def server_origin(server: str) -> str:
    """What `--server` names, without a slash at the end; a `RequestError` for any more."""
    remedy = f"write it like {DEFAULT_SERVER}"
    try:
        target = Target.parse(server)
    except RequestError as error:
        raise RequestError(error.code, error.message, remedy=remedy) from None
    extra = {"path": target.path != "/", "query": target.query, "fragment": "#" in server}
    if any(extra.values()):
        what = next(name for name, there in extra.items() if there)
        named = redact(server)[:80]
        raise RequestError(
            ErrorCode.BAD_REQUEST, f"the server {named!r} has a {what}", remedy=remedy
        )
    return target.origin


def _lead_of(text: str) -> Lead:
    """As the server will read it, which refuses what is no lead."""
    try:
        return "max" if text == "max" else float(text)
    except ValueError:
        return DEFAULT_LEAD


def _loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
