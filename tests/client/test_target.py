"""URLs taken apart, and what is no URL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenuto.client import Target
from tenuto.errors import RequestError


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("https://host", Target("host", 443, "/")),
        ("HTTPS://Host:4433/a?b=c d#x", Target("host", 4433, "/a", "b=c%20d")),
        ("https://[::1]:7/ä?text=你好", Target("::1", 7, "/%C3%A4", "text=%E4%BD%A0%E5%A5%BD")),
        ("https://bücher.example/", Target("xn--bcher-kva.example", 443, "/")),
        ("https://my_host.example./", Target("my_host.example.", 443, "/")),
        ("https://h/a%20b?x=%2F", Target("h", 443, "/a%20b", "x=%2F")),
    ],
)
def test_a_url_is_taken_apart(url: str, parsed: Target) -> None:
    assert Target.parse(url) == parsed


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "no https://"),
        ("localhost:4433/v1/speak", "no https://"),
        ("http://localhost/", "begins with http:"),
        ("https:/localhost", "no https://"),
        ("https:///v1", "names no host"),
        ("https://host:99999/", "out of range"),
        ("https://host:0/", "port 0"),
        ("https://host:x/", "Port could not"),
        ("https://[::1/", "Invalid IPv6"),
        ("https://me:secret@host/", "user name"),
        ("https://host/\udce4", "no UTF-8"),
        ("https://host/a\nb", "control characters"),
        ("https://ä..x/", "no host name"),
        ("https://a..b/", "no host name"),
        ("https://.example/", "no host name"),
        ("https://" + "x" * 64 + ".example/", "no host name"),
        ("https://" + "x." * 200 + "example/", "no host name"),
        ("https://exa mple/", "no host name"),
        ("https://%zz/", "no host name"),
        ("https://a|b/", "no host name"),
        ("https://a\u202eb../", "no host name"),
    ],
)
def test_nonsense_is_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        Target.parse(url)
    assert str(caught.value).isprintable()


def test_authority_and_path() -> None:
    target = Target.parse("https://[::1]/v1/speak?text=a")
    assert target.authority == "[::1]"
    assert replace(target, port=4433).origin == "https://[::1]:4433"
    assert target.request_path({"lead": "max"}) == "/v1/speak?text=a&lead=max"
    assert target.request_path({"text": "b&c"}) == "/v1/speak?text=b%26c"
    assert target.request_path() == "/v1/speak?text=a"
    assert replace(target, query="").request_path() == "/v1/speak"
    assert replace(target, query="a=1&&te%78t&b=").names == {"a", "text", "b"}
