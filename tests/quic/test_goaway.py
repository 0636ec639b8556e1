"""GOAWAY, sent and noticed (RFC 9114 section 5.2)."""

from __future__ import annotations

from aioquic.h3.events import HeadersReceived
from aioquic.quic.events import QuicEvent, StreamDataReceived, StreamReset

from tenuto.quic import Http3
from tenuto.tls import DevPair
from tests.quic.test_sending import REQUEST
from tests.support.virtual import Endpoint, VirtualPair

REJECTED = 0x10B


class Ends:
    """Both HTTP/3 layers of a pair, fed with what arrives."""

    def __init__(self, dev_pair: DevPair) -> None:
        self.pair = VirtualPair(dev_pair)
        self.client = Http3(self.pair.client.quic)
        self.server = Http3(self.pair.server.quic)
        self.requests: list[int] = []
        self._feed(self.pair.client, self.client)
        self._feed(self.pair.server, self.server)
        self.run(0.2)

    def run(self, seconds: float) -> None:
        self.pair.transmit(self.pair.client)
        self.pair.transmit(self.pair.server)
        self.pair.run(seconds)

    def ask(self, stream_id: int) -> None:
        self.client.respond(stream_id, REQUEST, end_stream=True)
        self.run(0.2)

    def _feed(self, end: Endpoint, http: Http3) -> None:
        def feed(event: QuicEvent) -> None:
            for each in http.handle_event(event):
                if http is self.client or not isinstance(each, HeadersReceived):
                    continue
                if not http.refuses(each.stream_id):
                    self.requests.append(each.stream_id)

        end.on_event = feed


def test_later_requests_are_rejected_and_earlier_ones_answered(dev_pair: DevPair) -> None:
    ends = Ends(dev_pair)
    ends.ask(0)
    assert not ends.client.going_away
    ends.server.goaway()
    ends.server.goaway()
    ends.run(0.2)
    assert ends.client.going_away
    ends.ask(4)
    assert ends.requests == [0]
    resets = [e for e in ends.pair.client.events if isinstance(e, StreamReset)]
    assert [(e.stream_id, e.error_code) for e in resets] == [(4, REJECTED)]
    assert ends.server.respond(0, [(b":status", b"200")])
    assert ends.server.write(0, b"still here", end_stream=True)
    ends.run(0.2)
    data = [e for e in ends.pair.client.events if isinstance(e, StreamDataReceived)]
    assert any(e.stream_id == 0 and e.end_stream for e in data)
    assert ends.server.open_streams <= 4


def test_goaway_before_any_request_rejects_the_first(dev_pair: DevPair) -> None:
    ends = Ends(dev_pair)
    ends.server.goaway()
    ends.run(0.2)
    ends.ask(0)
    assert ends.requests == []
