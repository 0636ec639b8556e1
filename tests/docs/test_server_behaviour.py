"""docs/server-behaviour.md is what the code says: limits, errors, routes, metrics, events."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import MISSING, fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from fallback import TcpLimits
from quicserver.limits import DoorLimits
from tenuto.cli.main import cli
from tenuto.client import Deadlines
from tenuto.errors import ErrorCode
from tenuto.host import SessionHost, Tally
from tenuto.policy import WatchPolicy
from tenuto.quic import ReceiveWindow
from tenuto.session import SessionLimits
from tenuto.settings import ServerSettings
from tenuto.sources.kinds import KINDS
from tenuto.telemetry.events import Event
from tenuto.web import create_app
from tenuto.web.guard import Guard
from tenuto.web.negotiate import OFFERED
from tenuto.web.routes import WebOptions
from tests.conftest import StartServer
from tests.docs.pages import ROOT, table
from tests.support.fetch import fetch_soon

PAGE = ROOT / "docs" / "server-behaviour.md"

LIMITS = table(PAGE, "limit")

UNITS: dict[str, float] = {
    "ms": 0.001, "s": 1, "min": 60, "h": 3600, "days": 86400, "KiB": 1024, "MiB": 1024 * 1024,
}  # fmt: skip

BOUNDED = (
    SessionLimits, DoorLimits, TcpLimits, ReceiveWindow, Deadlines, ServerSettings, WatchPolicy,
)  # fmt: skip

# Numbers that bound nothing: codes, formats, arithmetic, what a message shows.
NO_LIMITS = {
    "_SLACK", "_GATEWAY", "_GET_ESSID", "_MAX_SSID", "_IPV4_CLASS", "_IPV6_CLASS", "_VERSION",
    "_TRIM_SHARE", "_SALT_SIZE",
    "ServerSettings.port", "ServerSettings.first_sequence",
    "_INTERRUPTED", "_CAPACITY", "HEADER_SIZE", "MAX_SIZE", "_PAST", "_NO_APPLICATION_PROTOCOL",
    "_RUN", "DEFAULT_PORT", "_MAX_DATAGRAM_SIZE", "H3_ERROR_BASE", "FRAMES_PER_SECOND", "_BUCKETS",
    "_GROUPS", "FRAME_OVERHEAD", "_BESIDE", "_CALM", "_MOST_TEXT", "_H3_REQUEST_CANCELLED",
    "_DATAGRAM_OVERHEAD", "_SETTINGS_MAX_FIELD_SECTION_SIZE", "_ROUNDING", "_SHOWN", "_LOOK_AHEAD",
    "RATE", "_SYNCHRONOUS", "_DONT_EXIT", "_CHARS_UTF8", "_END_PAUSE", "_POS_CHARACTER",
    "_EVENT_LIST_TERMINATED", "_EVENT_WORD", "_BYTES_PER_SECOND", "_SHOWN_NAME", "_FULL_SCALE",
    "_RUNS_PER_SECOND", "_EXTENSIBLE", "_PRIVATE", "_TWO_WEEKS", "_NOT_YET_VALID",
    "_EXPIRED", "_RETRY_DELAY", "_UNKNOWN_SIZE", "_FIXED", "FRAME_MILLISECONDS", "VERSION",
    "DEFAULT_SPEED", "DEFAULT_PITCH", "_SPEED", "_PITCH", "_PIPED_WIDTH",
    "_RATE_STEP", "_UNKNOWN_LENGTH", "HEAD_SIZE", "_IN_DS64", "_HALF_POWER",
    "SEQUENCE_MODULUS", "_HALF", "MAX_VARINT", "_H3_NO_ERROR", "_TCP_NOTSENT_LOWAT",
    "_MARGIN", "_GAIN", "_LOOK", "_LATE", "_RIFF_SIZE", "_FIXED_SIZE",
    "_TRIED", "_MODE", "_FLAGS", "_STDERR", "NEED", "_RECORD", "_DATAGRAM", "LONG_HEADER",
    "_PMTUDISC_PROBE", "_ORIGIN_LOCAL", "_ORIGIN_ICMP", "_ORIGIN_ICMP6", "_UNREACHABLE",
    "_UNREACHABLE6", "_TOO_BIG6", "_FRAGMENTATION_NEEDED", "_KID_SIZE", "_MOST_REASON",
    "_RECORD_OVERHEAD", "TOKEN_SIZE",
    "_LEAST_RESET", "_SHORT_HEADER", "_UNPREDICTABLE", "_INODE", "_DROPS",
    "_M_TRIM_THRESHOLD", "_M_MMAP_THRESHOLD", "_RESTARTING",
}  # fmt: skip


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def number(cell: str) -> float:
    """The first number of a cell in seconds, bytes or whatever it counts."""
    match = re.match(r"(?P<digits>[\d,.]+) ?(?P<unit>\w*)", cell)
    assert match is not None, cell
    return float(match["digits"].replace(",", "")) * UNITS.get(match["unit"], 1)


def plain(value: object) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)  # type: ignore[arg-type]


@cache
def module(path: str) -> Any:
    return importlib.import_module(path.removesuffix(".py").replace("/", "."))


def literals(path: str, name: str) -> list[float]:
    """Numbers given as `name=...` or in a pair (name, ...)."""
    found = []
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        value: ast.expr | None = None
        if isinstance(node, ast.keyword) and node.arg == name:
            value = node.value
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            first = node.elts[0]
            called = first.attr if isinstance(first, ast.Attribute) else None
            if isinstance(first, ast.Constant):
                called = first.value if isinstance(first.value, str) else None
            value = node.elts[1] if called == name else None
        if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            found.append(float(value.value))
    return found


def default(holder: Any, name: str) -> object:
    """A constant, the default of a dataclass's field, or that of a parameter in brackets."""
    if match := re.fullmatch(r"(.+)\((\w+)\)", name):
        called = holder
        for part in match[1].split("."):
            called = getattr(called, part)
        return inspect.signature(called).parameters[match[2]].default
    if "." in name:
        cls, _, field_name = name.partition(".")
        (field,) = (field for field in fields(getattr(holder, cls)) if field.name == field_name)
        return field.default
    return getattr(holder, name)


def values(name: str, paths: list[str]) -> list[float]:
    """What the code says of this name in these files."""
    found: list[float] = []
    for path in paths:
        holder = module(path)
        if re.match(r"TCP_|\w+=$", name):
            found += literals(path, name.removesuffix("="))
        elif hasattr(holder, re.split(r"[.(]", name)[0]):
            found.append(plain(default(holder, name)))
    return found


def names(row: dict[str, str]) -> list[str]:
    return ticked(row["limit"])


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row["limit"].replace("`", ""))
def test_limits_have_the_values_of_the_code(row: dict[str, str]) -> None:
    if row["limit"].startswith("**"):
        return
    assert names(row), row
    for name in names(row):
        found = values(name, ticked(row["file"]))
        assert found, f"{name} is not in {row['file']}"
        assert found == pytest.approx([number(row["value"])] * len(found)), name


def test_every_bounded_dataclass_is_listed_whole() -> None:
    listed = {name for row in LIMITS for name in names(row)} | NO_LIMITS
    missing = [
        f"{cls.__name__}.{field.name}"
        for cls in BOUNDED
        for field in fields(cls)
        if isinstance(field.default, int | float) and not isinstance(field.default, bool)
        if f"{cls.__name__}.{field.name}" not in listed
    ]
    assert missing == []
    assert all(field.default is not MISSING for field in fields(SessionLimits))


def test_every_numeric_constant_is_a_listed_limit_or_known_to_be_none() -> None:
    """A new bound needs a row; a new number that bounds nothing a word in NO_LIMITS."""
    listed = {(name, path) for row in LIMITS for name in names(row) for path in ticked(row["file"])}
    # The arithmetic of playout and doctor has pages of its own, and tests like this one.
    for page in ("playout.md", "doctor.md"):
        rows = table(ROOT / "docs" / page, "constant")
        listed |= {(ticked(row["constant"])[0], ticked(row["file"])[0]) for row in rows}
    missing = []
    for package in ("tenuto", "quicserver", "fallback"):
        for path in sorted((ROOT / package).rglob("*.py")):
            relative = path.relative_to(ROOT).as_posix()
            for name in constants(path):
                if name not in NO_LIMITS and (name, relative) not in listed:
                    missing.append(f"{relative}: {name}")
    assert missing == []


def constants(path: Path) -> list[str]:
    """Module-level names in capitals that are bound to a number."""
    targets: list[ast.expr] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    flat = [
        each
        for target in targets
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    wanted = [node.id for node in flat if isinstance(node, ast.Name) and node.id.isupper()]
    if not wanted:
        return []
    holder = module(path.relative_to(ROOT).as_posix().replace("/__init__", ""))
    return [
        name
        for name in dict.fromkeys(wanted)
        if isinstance(getattr(holder, name), int | float | timedelta)
        and not isinstance(getattr(holder, name), bool)
    ]


def test_sections_of_the_limits_are_told_apart() -> None:
    headings = [row["limit"].strip("*") for row in LIMITS if row["limit"].startswith("**")]
    wanted = {"Sessions", "Sources", "QUIC door", "TCP door", "Client"}
    assert wanted <= set(headings)
    assert len(headings) == len(set(headings))


def test_error_codes_are_listed_with_status_and_stream_code() -> None:
    listed = {
        (ticked(row["code"])[0], int(row["status"]), int(row["h3 error"], 16))
        for row in table(PAGE, "code")
    }
    assert listed == {(code.value, code.status, code.h3_error) for code in ErrorCode}
    for row in table(PAGE, "code"):
        assert row["meaning"], row
        assert row["remedy"], row


def app() -> Starlette:
    host = MagicMock(spec=SessionHost, tally=Tally())  # no request will come
    guard = create_app(host, WebOptions())
    assert isinstance(guard, Guard)
    inner = guard._app
    assert isinstance(inner, Starlette)
    return inner


def test_routes_and_their_methods_are_listed() -> None:
    listed = {
        ticked(row["path"])[0]: set(row["methods"].split(", ")) for row in table(PAGE, "path")
    }
    routes = [route for route in app().routes if isinstance(route, Route)]
    assert listed == {
        route.path: set(route.methods or ()) - {"HEAD", "OPTIONS"} for route in routes
    }


def test_sources_are_listed_with_their_parameters() -> None:
    listed = {
        ticked(row["source"])[0]: (row["live"] == "no", ticked(row["parameters"]))
        for row in table(PAGE, "source")
    }
    assert listed == {
        kind.name: (kind.live is False, [parameter.name for parameter in kind.parameters])
        for kind in KINDS
    }


def test_encodings_are_listed_in_their_order_of_preference() -> None:
    assert [ticked(row["media type"])[0] for row in table(PAGE, "media type")] == list(OFFERED)


async def test_metrics_are_those_of_a_server(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    answer = await fetch_soon("tcp", server.port, "/metrics", ca=ca_file)
    served = dict(re.findall(r"^# TYPE (\S+) (\w+)$", answer.body.decode(), re.MULTILINE))
    listed = {ticked(row["metric"])[0]: row["type"] for row in table(PAGE, "metric")}
    assert listed == served
    counting = {f"tenuto_{name}" for row in LIMITS for name in ticked(row["counted by"])}
    assert counting <= served.keys()


def test_events_are_listed_with_their_level_and_fields() -> None:
    listed = {
        ticked(row["event"])[0]: (row["level"], ticked(row["fields"]))
        for row in table(PAGE, "event")
    }
    assert listed == {
        event.__name__: (event.level.value, [field.name for field in fields(event)])
        for event in Event.__subclasses__()
        if event.__module__.startswith("tenuto.")
    }


def test_options_whose_variable_breaks_the_rule_are_listed() -> None:
    context = click.Context(cli, info_name="tenuto", auto_envvar_prefix="TENUTO")
    assert cli.context_settings["auto_envvar_prefix"] == "TENUTO"
    wanted = {}
    for command in cli.list_commands(context):
        found = cli.get_command(context, command)
        assert found is not None
        for option in found.params:
            if not isinstance(option, click.Option):
                continue
            long = option.opts[0].removeprefix("--").replace("-", "_").upper()
            assert option.name is not None
            if long != option.name.upper():
                name = f"tenuto {command} {option.opts[0]}"
                wanted[name] = f"TENUTO_{command.upper()}_{option.name.upper()}"
    rows = table(PAGE, "option")
    assert {ticked(r["option"])[0]: ticked(r["variable"])[0] for r in rows} == wanted


def test_other_variables_are_listed() -> None:
    code = [*(ROOT / "tenuto").rglob("*.py"), *(ROOT / "quicserver").rglob("*.py")]
    code += [*(ROOT / "scripts").rglob("*.py"), *(ROOT / "scripts").rglob("*.sh")]
    read = {
        name
        for path in code
        for name in re.findall(r"\bTENUTO_[A-Z]+\b(?!_)", path.read_text(encoding="utf-8"))
    }
    assert {ticked(row["variable"])[0] for row in table(PAGE, "variable")} == read
