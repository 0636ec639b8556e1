"""From evidence to findings, a conclusion, a text and a JSON object."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tenuto.doctor.diagnosis.clock import Validity, judge_clock
from tenuto.doctor.diagnosis.conclusion import diagnose
from tenuto.doctor.diagnosis.evidence import (
    Carried,
    CertificateSeen,
    Evidence,
    Handshake,
    Icmp,
    IcmpKind,
    Ledger,
    Probe,
    Seen,
    ServerSeen,
    Silence,
    Transport,
)
from tenuto.doctor.diagnosis.findings import Code, Weight, bits, milliseconds
from tenuto.doctor.diagnosis.moment import date, iso, minute, second
from tenuto.doctor.diagnosis.nat import Binding, Nat, judge_nat, silences_up_to
from tenuto.doctor.diagnosis.reach import next_reach
from tenuto.doctor.diagnosis.report import as_document, as_text

NOW = 1_790_000_000.0
DAY = 86400.0
NEED = 32_250.0

CERTIFICATE = CertificateSeen(
    NOW - DAY, NOW + 10 * DAY, "Some CA", NOW, trusted=True, server_date=NOW
)
TCP = Handshake("tcp", connected=0.02, secured=0.045)
QUIC = Handshake("quic", secured=0.031)


def probes(answered: str, flow: int = 0, size: int = 1228) -> tuple[Probe, ...]:
    """One for each letter; a dot is silence."""
    return tuple(
        Probe(flow, number, size, 0.03 * number, None if letter == "." else 0.03 * number + 0.02)
        for number, letter in enumerate(answered)
    )


def carried(transport: Transport, share: float, failure: str = "", need: float = NEED) -> Carried:
    return Carried(transport, need, int(2.7 * share * NEED), 2.7, failure)


WELL = Evidence(
    "voice.example",
    443,
    address="192.0.2.7:443",
    udp=Ledger(probes("x" * 40)),
    mtu=Ledger(tuple(replace(p, size=1500) for p in probes("xxxx"))),
    handshakes=(TCP, QUIC, TCP, QUIC),
    certificate=CERTIFICATE,
    server=ServerSeen(is_tenuto=True, offers_quic=True, quic_port=443),
    carried=(carried("quic", 1.0), carried("tcp", 1.0)),
    outside=(Seen(0.0, "10.0.0.2", 5000, "10.0.0.2", 5000),),
)


def codes(evidence: Evidence) -> list[Code]:
    return [finding.code for finding in diagnose(evidence).findings]


def said(evidence: Evidence, code: Code) -> str:
    (says,) = [f.says for f in diagnose(evidence).findings if f.code is code]
    return says


def test_a_good_network() -> None:
    assert codes(WELL) == [
        Code.CERTIFICATE_GOOD,
        Code.UDP_OPEN,
        Code.TCP_READY,
        Code.QUIC_READY,
        Code.VOICE_FLOWS,
        Code.VOICE_FLOWS,
        Code.MTU_FULL,
        Code.NAT_NONE,
    ]
    diagnosis = diagnose(WELL)
    assert (diagnosis.conclusion.transport, diagnosis.conclusion.status) == ("quic", 0)
    assert diagnosis.asks == ()
    assert all(finding.weight is Weight.GOOD for finding in diagnosis.findings)


def test_the_text_is_short_lines_that_can_be_forwarded() -> None:
    text = as_text(WELL, NOW, "1.2")
    assert text.splitlines()[0] == (
        "tenuto doctor 1.2, 2026-09-21 14:13 UTC: voice.example port 443 (192.0.2.7:443)"
    )
    assert text.endswith("Tenuto will use: QUIC, which works well here.")
    assert max(map(len, text.splitlines())) <= 92


def test_others_and_an_interruption_are_told() -> None:
    evidence = Evidence("h", 1, others=("[2001:db8::1]:1",), interrupted=True)
    text = as_text(evidence, NOW, "1")
    assert "Not examined: [2001:db8::1]:1." in text
    assert "Interrupted" in text
    assert diagnose(evidence).conclusion.transport == "unknown"
    document = as_document(evidence, NOW, "1")
    assert document["interrupted"] is True
    unknown = ("udp", "mtu", "nat", "certificate", "address")
    assert [document[name] for name in unknown] == [None] * 5


def test_the_document_is_json_with_the_figures() -> None:
    document = json.loads(json.dumps(as_document(WELL, NOW, "1")))
    assert document["at"] == "2026-09-21T14:13:20Z"
    assert document["udp"]["state"] == "open"
    assert document["udp"]["round_trip"] == pytest.approx(0.02)
    assert document["mtu"] == {"bytes": 1500, "told_by": None}
    assert document["nat"]["binding"] == "no-translation"
    assert document["handshakes"]["tcp"] == {"tried": 2, "succeeded": 2, "median": 0.02}
    assert document["handshakes"]["tls"]["median"] == 0.045
    assert document["handshakes"]["quic"]["median"] == 0.031
    assert document["voice"]["quic"]["needed"] == 258_000
    assert document["certificate"]["state"] == "good"
    assert document["certificate"]["days_left"] == 10.0
    empty = as_document(replace(WELL, carried=(), handshakes=()), NOW, "1")
    assert empty["voice"] == {"quic": None, "tcp": None}
    assert empty["handshakes"]["quic"] == {"tried": 0, "succeeded": 0, "median": None}


def blocked(icmp: IcmpKind | None = None, by: str = "192.0.2.1") -> Evidence:
    errors = () if icmp is None else tuple(Icmp(0.1, 0, icmp, by) for _ in range(3))
    return replace(
        WELL,
        udp=Ledger(probes("." * 40), errors),
        mtu=None,
        handshakes=(TCP,),
        carried=(carried("tcp", 1.0),),
        outside=(),
    )


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (None, Code.UDP_BLOCKED, "nobody said why"),
        (IcmpKind.PORT, Code.UDP_REJECTED, "192.0.2.1 answers with ICMP port unreachable"),
        (IcmpKind.PROHIBITED, Code.UDP_PROHIBITED, "administratively prohibited"),
        (IcmpKind.UNREACHABLE, Code.UDP_UNREACHABLE, "ICMP unreachable"),
    ],
)
def test_blocked_udp_leads_to_tcp(kind: IcmpKind | None, code: Code, words: str) -> None:
    evidence = blocked(kind)
    assert code in codes(evidence)
    assert words in said(evidence, code)
    assert "TCP to the same port passes" in said(evidence, code)
    diagnosis = diagnose(evidence)
    assert (diagnosis.conclusion.transport, diagnosis.conclusion.status) == ("tcp", 1)
    assert diagnosis.asks == ("Let UDP to 192.0.2.7:443 pass, both ways.",)


@pytest.mark.parametrize(
    ("by", "mtu", "words"),
    [
        ("192.0.2.1", 1200, "up to 1200 bytes pass towards the server, as ICMP from 192.0.2.1"),
        ("", 1200, "up to 1200 bytes pass towards the server, as this machine's interface says"),
        ("192.0.2.1", 0, "Only packets of less than 1,200 bytes pass"),
    ],
)
def test_a_path_too_small_for_quic_is_called_that(by: str, mtu: int, words: str) -> None:
    error = Icmp(0.1, 0, IcmpKind.TOO_BIG, by, mtu)
    evidence = replace(blocked(), udp=Ledger(probes("." * 40), (error,)))
    assert words in said(evidence, Code.UDP_SMALL)
    assert "QUIC needs 1228" in said(evidence, Code.UDP_SMALL)
    assert as_document(evidence, NOW, "1")["udp"]["state"] == "small-packets-only"
    conclusion = diagnose(evidence).conclusion
    assert (conclusion.transport, conclusion.status) == ("tcp", 1)
    assert "larger packets than pass" in conclusion.says
    assert "of 1228 bytes and more pass" in diagnose(evidence).asks[0]


def test_quic_may_connect_in_fragments() -> None:
    error = Icmp(0.1, 0, IcmpKind.TOO_BIG, "192.0.2.1", 1200)
    evidence = replace(WELL, udp=Ledger(probes("." * 40), (error,)), mtu=None)
    assert "up to 1200 bytes pass" in said(evidence, Code.UDP_OPEN)
    assert "in fragments" in said(evidence, Code.UDP_OPEN)
    assert diagnose(evidence).conclusion.transport == "quic"


def test_who_claims_that_larger_ones_pass_is_not_believed() -> None:
    error = Icmp(0.1, 0, IcmpKind.TOO_BIG, "192.0.2.1", 1400)
    evidence = replace(blocked(), udp=Ledger(probes("." * 40), (error,)))
    assert "no packet of 1228 bytes passes" in said(evidence, Code.UDP_BLOCKED)


def test_large_packets_of_tcp_that_vanish_too_are_a_black_hole() -> None:
    evidence = replace(blocked(), large_hangs=True)
    assert "over UDP and over TCP" in said(evidence, Code.UDP_SMALL)
    assert Code.UDP_REJECTED in codes(replace(blocked(IcmpKind.PORT), large_hangs=True))


def test_silent_probes_are_overruled_by_a_handshake() -> None:
    evidence = replace(blocked(), handshakes=(TCP, QUIC), carried=(carried("quic", 1.0),))
    assert "None of 40 probes was answered" in said(evidence, Code.UDP_OPEN)
    conclusion = diagnose(evidence).conclusion
    assert (conclusion.transport, conclusion.status) == ("quic", 0)
    assert as_document(evidence, NOW, "1")["udp"]["answered"] == 0


def test_another_service_on_the_port_is_not_called_a_block() -> None:
    evidence = replace(blocked(), udp=Ledger(probes("." * 40), strange=3))
    assert "it is not QUIC" in said(evidence, Code.UDP_FOREIGN)
    assert Ledger(strange=1).and_then(Ledger(strange=2)).strange == 3
    assert "is not QUIC" in diagnose(evidence).conclusion.says


def test_a_server_that_has_no_quic_is_no_matter_for_a_firewall() -> None:
    evidence = replace(blocked(IcmpKind.PORT), server=ServerSeen(is_tenuto=True, offers_quic=False))
    assert diagnose(evidence).asks == ("If that is not meant, look at the server's option --quic.",)


def test_a_failed_quic_is_not_told_twice_where_nothing_passes() -> None:
    failed = Handshake("quic", failure="no answer within 5 s", kind="timeout")
    evidence = replace(blocked(), handshakes=(TCP, failed))
    assert Code.QUIC_FAILS not in codes(evidence)
    speaks = Handshake("quic", failure="it speaks QUIC, but not HTTP/3", kind="protocol")
    assert Code.QUIC_FAILS in codes(replace(evidence, handshakes=(TCP, speaks)))
    passes = replace(WELL, handshakes=(TCP, failed), carried=())
    assert "may not pass towards this machine" in said(passes, Code.QUIC_FAILS)


def test_whoever_rejects_may_be_unnamed() -> None:
    assert "this machine, or one that it does not name, answers" in said(
        blocked(IcmpKind.PORT, ""), Code.UDP_REJECTED
    )


def rows(first: str, late: str, second: str, gentle: str = "", third: str = "") -> Ledger:
    old = tuple(replace(p, number=40 + p.number) for p in probes(late))
    groups = (probes(first), probes(second, 1), old, probes(gentle, 2), probes(third, 3))
    return Ledger(tuple(probe for group in groups for probe in group))


DIES = rows("x" * 20 + "." * 20, "." * 10, "x" * 20 + "." * 20, "xxxx")
FIRST = rows("x" + "." * 39, "." * 10, "x" + "." * 39, "x...")
THROTTLED = rows("xx" + "." * 38, "." * 10, "x" + "." * 39, "xxxx", "x" + "." * 39)


@pytest.mark.parametrize(
    ("ledger", "code", "words"),
    [
        (DIES, Code.UDP_DIES, "after about 20 packets"),
        (FIRST, Code.UDP_FIRST_PACKET, "the first packet passes"),
        (THROTTLED, Code.UDP_THROTTLED, "TCP carried 258 kbit/s"),
    ],
)
def test_hindered_udp_leads_to_tcp(ledger: Ledger, code: Code, words: str) -> None:
    assert next_reach(ledger, 1228) is None
    failed = Handshake("quic", failure="no answer within 5 s", kind="timeout")
    evidence = replace(blocked(), udp=ledger, handshakes=(TCP, failed))
    assert words in said(evidence, code)
    diagnosis = diagnose(evidence)
    assert (diagnosis.conclusion.transport, diagnosis.conclusion.status) == ("tcp", 1)
    assert Code.QUIC_FAILS in codes(evidence)


def test_a_throttle_may_leave_no_tcp_either() -> None:
    evidence = replace(blocked(), udp=THROTTLED, handshakes=(QUIC,), carried=())
    assert said(evidence, Code.UDP_THROTTLED).endswith("needs 300 kbit/s.")
    assert diagnose(evidence).conclusion.says.startswith("Little")


def test_udp_towards_us_can_be_throttled_alone() -> None:
    evidence = replace(
        WELL, carried=(carried("quic", 0.1), carried("quic", 0.2), carried("tcp", 1.0))
    )
    assert Code.UDP_THROTTLED in codes(evidence)
    assert "52 kbit/s pass" in said(evidence, Code.UDP_THROTTLED)
    assert diagnose(evidence).conclusion.transport == "tcp"


def test_loss_explains_a_slow_quic_and_no_throttle_is_seen() -> None:
    evidence = replace(
        WELL,
        udp=Ledger(probes("xxx." * 10)),
        carried=(carried("quic", 0.3, "cut"), carried("tcp", 1.0)),
    )
    assert codes(evidence)[1:3] == [Code.UDP_OPEN, Code.UDP_LOSSY]
    assert said(evidence, Code.VOICE_LATE).endswith(": cut.")
    conclusion = diagnose(evidence).conclusion
    assert (conclusion.transport, conclusion.status) == ("quic", 1)
    assert "packets are lost" in conclusion.says


def test_a_slow_line_is_called_one() -> None:
    evidence = replace(WELL, carried=(carried("quic", 0.6), carried("tcp", 0.6)))
    assert "the line, or the server, is slow" in diagnose(evidence).conclusion.says
    assert codes(evidence).count(Code.VOICE_LATE) == 2


def test_a_slow_quic_beside_a_quick_tcp_is_not_called_a_slow_line() -> None:
    evidence = replace(WELL, carried=(carried("quic", 0.8), carried("tcp", 1.0)))
    assert "UDP is slower here than TCP" in diagnose(evidence).conclusion.says
    assert diagnose(evidence).conclusion.status == 1


def test_packets_that_overtake_are_no_throttle() -> None:
    early = [
        replace(p, answered=p.sent + (0.1 if p.number % 4 else 0.01)) for p in probes("x" * 40)
    ]
    late = (carried("quic", 0.5), carried("tcp", 1.0))
    evidence = replace(WELL, udp=Ledger(tuple(early)), carried=late)
    assert Code.UDP_THROTTLED not in codes(evidence)
    assert "overtake one another (22%)" in said(evidence, Code.UDP_REORDERED)
    assert "packets overtake" in diagnose(evidence).conclusion.says
    assert as_document(evidence, NOW, "1")["udp"]["reordered"] == 0.225


def test_what_was_not_seen_is_not_said_to_work() -> None:
    conclusion = diagnose(replace(WELL, carried=(carried("tcp", 1.0),))).conclusion
    assert (conclusion.transport, conclusion.status) == ("quic", 1)
    assert "was not seen" in conclusion.says


def test_a_voice_that_never_began_has_no_rate() -> None:
    late = replace(carried("quic", 0.0, "nothing came of it"), seconds=0.0)
    evidence = replace(WELL, carried=(late, carried("tcp", 1.0)))
    assert said(evidence, Code.VOICE_LATE) == (
        "A voice at 16 kHz does not begin over QUIC: nothing came of it."
    )


POLICED = rows("x..x." * 8, "..." * 3 + ".", "x..x." * 8, "x...")
SLOWLY = Ledger(tuple(replace(p, sent=9 + 8 * p.sent) for p in probes("x" * 12, 4)))
SLOWLY_LOST = Ledger(tuple(replace(p, sent=9 + 8 * p.sent) for p in probes("x..x." * 2 + "x.", 4)))


def test_a_limit_is_told_from_loss_by_a_slow_row() -> None:
    assert next_reach(POLICED, 1228) is not None
    limited = replace(WELL, udp=POLICED.and_then(SLOWLY))
    assert next_reach(POLICED.and_then(SLOWLY), 1228) is None
    late = (carried("quic", 0.5), carried("tcp", 1.0))
    assert Code.UDP_THROTTLED in codes(replace(limited, carried=late))
    lossy = replace(WELL, udp=POLICED.and_then(SLOWLY_LOST), carried=late)
    assert Code.UDP_THROTTLED not in codes(lossy)
    assert "also of what is sent slowly" in said(lossy, Code.UDP_LOSSY)
    # Towards the server only: a voice towards us keeps pace.
    assert "UDP towards the server has about 129 kbit/s" in said(limited, Code.UDP_LOSSY)
    conclusion = diagnose(limited).conclusion
    assert (conclusion.transport, conclusion.status) == ("quic", 0)
    assert "keeps pace, though packets are lost" in conclusion.says


def test_a_strangers_quic_is_not_said_to_carry_a_voice() -> None:
    evidence = replace(
        WELL, udp=Ledger(probes("xxx." * 10)), server=ServerSeen(is_tenuto=False), carried=()
    )
    assert diagnose(evidence).conclusion.says == "QUIC, though packets are lost."


def test_attempts_that_failed_are_counted() -> None:
    failed = Handshake("quic", failure="no answer within 5 s", kind="timeout")
    evidence = replace(WELL, handshakes=(TCP, QUIC, failed, QUIC))
    says = said(evidence, Code.QUIC_READY)
    assert says.endswith("(the median of 2). 1 of 3 attempts failed: no answer within 5 s.")
    assert Weight.NOTE in {f.weight for f in diagnose(evidence).findings}


def test_a_server_that_answers_over_quic_is_running() -> None:
    refused = Handshake("tcp", failure="192.0.2.7:443 refused", kind="refused")
    evidence = replace(WELL, handshakes=(refused, QUIC), carried=(carried("quic", 1.0),))
    assert diagnose(evidence).asks == (
        "Let TCP to that port pass, too: it is the way out where UDP fails.",
    )


def test_an_outage_is_told() -> None:
    evidence = replace(WELL, udp=Ledger(probes("x" * 15 + "." * 10 + "x" * 15)))
    assert "for about 0.3 s" in said(evidence, Code.UDP_OUTAGE)
    slow = replace(evidence, carried=(carried("quic", 0.3), carried("tcp", 1.0)))
    assert Code.UDP_THROTTLED not in codes(slow)


@pytest.mark.parametrize("quic", [True, False])
def test_streams_of_a_stranger_say_nothing_of_voice(quic: bool) -> None:
    looks = (carried("quic", 0.1, need=0.0),) if quic else ()
    evidence = replace(
        WELL,
        server=ServerSeen(is_tenuto=False),
        carried=(*looks, carried("tcp", 1.0, need=0.0)),
    )
    assert not {Code.VOICE_FLOWS, Code.VOICE_LATE, Code.UDP_THROTTLED} & set(codes(evidence))
    assert diagnose(evidence).conclusion.status == 0
    assert Carried("tcp", 0.0, 1, 0.0).rate == 0.0
    assert Carried("tcp", 0.0, 1, 1.0).share == 0.0


def test_quic_that_fails_where_udp_passes() -> None:
    failed = Handshake("quic", failure="192.0.2.7:443 speaks QUIC, but not HTTP/3", kind="protocol")
    evidence = replace(WELL, handshakes=(TCP, failed), carried=(), outside=())
    assert "though UDP passes: 192.0.2.7:443 speaks QUIC" in said(evidence, Code.QUIC_FAILS)
    assert "QUIC does not connect" in diagnose(evidence).conclusion.says
    assert diagnose(evidence).conclusion.transport == "tcp"


def test_without_tls_quic_may_show_a_certificate_that_is_not_trusted() -> None:
    failed = Handshake("quic", failure="the certificate is not trusted (bad)", kind="untrusted")
    evidence = replace(WELL, handshakes=(failed,), certificate=None, carried=(), outside=())
    assert said(evidence, Code.CERTIFICATE_UNTRUSTED) == "The certificate is not trusted (bad)."
    assert diagnose(evidence).conclusion.status == 2


def test_nothing_gets_through() -> None:
    silent = Handshake("tcp", failure="no answer within 5 s", kind="timeout")
    evidence = replace(blocked(), handshakes=(silent,), certificate=None, server=None, carried=())
    assert Code.TCP_FAILS in codes(evidence)
    assert "TCP to the same port passes" not in said(evidence, Code.UDP_BLOCKED)
    conclusion = diagnose(evidence).conclusion
    assert (conclusion.transport, conclusion.status) == ("none", 1)
    refused = replace(evidence, handshakes=(replace(silent, kind="refused", failure="refused"),))
    assert Code.TCP_REFUSED in codes(refused)


def test_tls_may_hang_where_tcp_connects() -> None:
    hangs = Handshake("tcp", connected=0.02, failure="no answer within 5 s", kind="timeout")
    evidence = replace(WELL, handshakes=(hangs, QUIC), carried=())
    assert "TLS does not follow" in said(evidence, Code.TLS_FAILS)
    assert diagnose(evidence).conclusion.says.endswith("There is no TCP to fall back to.")


def test_an_interrupted_examination_concludes_nothing() -> None:
    evidence = Evidence("h", 1, address="192.0.2.7:1", udp=Ledger(probes("x" * 40)))
    assert diagnose(evidence).conclusion.transport == "unknown"
    assert codes(evidence) == [Code.UDP_OPEN]


@pytest.mark.parametrize(
    ("limit", "icmp", "code", "words"),
    [
        (1280, ("192.0.2.9", 1280), Code.MTU_SMALL, "as ICMP from 192.0.2.9 says"),
        (1280, ("", 1280), Code.MTU_SMALL, "as this machine's interface says"),
        (1280, None, Code.MTU_BLACK_HOLE, "more than 1280 bytes vanish"),
    ],
)
def test_the_largest_packet(
    limit: int, icmp: tuple[str, int] | None, code: Code, words: str
) -> None:
    sent = []
    for number in range(8):
        sent.append(Probe(0, 3 * number, 1228, 0.1 * number, 0.1 * number + 0.01))
        sent.append(Probe(0, 3 * number + 1, limit, 0.1 * number, 0.1 * number + 0.01))
        sent.append(Probe(0, 3 * number + 2, limit + 1, 0.1 * number, None))
    told = () if icmp is None else (Icmp(0.0, 0, IcmpKind.TOO_BIG, *icmp),)
    evidence = replace(WELL, mtu=Ledger(tuple(sent), told))
    assert words in said(evidence, code)
    by = {None: None, "": "this machine"}.get(icmp and icmp[0], icmp and icmp[0])
    assert as_document(evidence, NOW, "1")["mtu"] == {"bytes": 1280, "told_by": by}


def test_a_search_that_found_nothing_says_so() -> None:
    evidence = replace(WELL, mtu=Ledger(probes("....")))
    assert Code.MTU_UNKNOWN in codes(evidence)
    assert as_document(evidence, NOW, "1")["mtu"] is None
    # Without a row of probes there is no loss to judge a search by.
    assert as_document(replace(evidence, udp=None), NOW, "1")["mtu"] is None


def test_ipv6_has_larger_headers() -> None:
    assert (WELL.overhead, replace(WELL, address="[2001:db8::1]:443").overhead) == (28, 48)


# NAT


def seen(at: float, port: int) -> Seen:
    return Seen(at, "10.0.0.2", 5000, "198.51.100.1", port)


def silence(seconds: float, *, forgotten: bool) -> Silence:
    return Silence(seconds, seen(0.0, 1000), seen(seconds, 1001 if forgotten else 1000))


LOST = Silence(6.0, seen(0.0, 1000), None)
OUTSIDE = "198.51.100.1 port 1000"


@pytest.mark.parametrize(
    ("steady", "silences", "nat", "code"),
    [
        ([1000], [], Nat(Binding.UNCLEAR, OUTSIDE), Code.NAT_SEEN),
        ([1000], [LOST], Nat(Binding.UNCLEAR, OUTSIDE), Code.NAT_SEEN),
        (
            [1000, 1000],
            [silence(6, forgotten=False), silence(11, forgotten=False)],
            Nat(Binding.KEPT, OUTSIDE, kept=11),
            Code.NAT_KEEPS,
        ),
        (
            [1000],
            [silence(6, forgotten=False), silence(11, forgotten=True), LOST],
            Nat(Binding.FORGOTTEN, OUTSIDE, kept=6, lost=11),
            Code.NAT_FORGETS,
        ),
        (
            [1000],
            [silence(125, forgotten=True)],
            Nat(Binding.FORGOTTEN, OUTSIDE, lost=125),
            Code.NAT_FORGETS,
        ),
        (
            [1000],
            [silence(6, forgotten=True), silence(11, forgotten=False)],
            Nat(Binding.UNCLEAR, OUTSIDE, kept=11, lost=6),
            Code.NAT_UNCLEAR,
        ),
        (
            [1000, 1000, 1007],
            [silence(6, forgotten=True)],
            Nat(Binding.REBINDS, OUTSIDE, within=3.0),
            Code.NAT_REBINDS,
        ),
    ],
)
def test_a_nat_is_judged_by_its_ports(
    steady: list[int], silences: list[Silence], nat: Nat, code: Code
) -> None:
    looks = tuple(seen(3.0 * number, port) for number, port in enumerate(steady))
    assert judge_nat(looks, silences) == nat
    evidence = replace(WELL, outside=looks, silences=tuple(silences), nat_limit=35.0)
    assert code in codes(evidence)
    assert as_document(evidence, NOW, "1")["nat"]["binding"] == nat.binding.value
    assert diagnose(evidence).conclusion.status == 0


def test_a_nat_nobody_looked_at_longer_is_still_seen() -> None:
    evidence = replace(WELL, outside=(seen(0.0, 1000),))
    assert not said(evidence, Code.NAT_SEEN).endswith("completed.")
    assert said(replace(evidence, nat_limit=35.0), Code.NAT_SEEN).endswith("completed.")


def test_without_a_look_there_is_no_judgement() -> None:
    assert judge_nat([], [silence(6, forgotten=True)]) is None


def test_silences_are_bounded_by_what_was_asked_for() -> None:
    assert silences_up_to(35) == (6.0, 11.0, 21.0, 33.0)
    assert silences_up_to(310) == (6.0, 11.0, 21.0, 33.0, 63.0, 125.0, 305.0)
    assert silences_up_to(2) == (2,)
    assert silences_up_to(0) == ()


# Clocks and certificates


@pytest.mark.parametrize(
    ("changed", "validity", "code", "words", "status"),
    [
        ({"server_date": None}, Validity.GOOD, Code.CERTIFICATE_GOOD, "good for 10.0 days.", 0),
        ({"server_date": NOW - 30}, Validity.GOOD, Code.CERTIFICATE_GOOD, "10.0 days.", 0),
        ({"not_after": NOW + DAY}, Validity.GOOD, Code.CERTIFICATE_GOOD, "for 1.0 days", 0),
        (
            {"server_date": NOW - 400},
            Validity.SKEWED,
            Code.CLOCK_DIFFERS,
            "clock is 7 min ahead of the server's",
            0,
        ),
        (
            {"server_date": NOW + 100},
            Validity.SKEWED,
            Code.CLOCK_DIFFERS,
            "clock is 100 s behind the server's",
            0,
        ),
        (
            {"now": NOW + 30 * DAY, "trusted": False},
            Validity.CLOCK_WRONG,
            Code.CLOCK_WRONG,
            "30 days ahead of",
            2,
        ),
        (
            {"now": NOW - 30 * DAY, "server_date": None},
            Validity.NOT_YET,
            Code.CERTIFICATE_NOT_YET,
            "not valid yet",
            2,
        ),
        (
            {"now": NOW + 30 * DAY, "server_date": NOW + 30 * DAY},
            Validity.EXPIRED,
            Code.CERTIFICATE_EXPIRED,
            "has expired by this machine's clock (2026-10-21 14:13:20 UTC)",
            2,
        ),
        (
            {"trusted": False, "refusal": "issued by nobody", "remedy": "trust it"},
            Validity.UNTRUSTED,
            Code.CERTIFICATE_UNTRUSTED,
            "not trusted here: issued by nobody.",
            2,
        ),
        (
            {"trusted": False, "refusal": "issued by nobody"},
            Validity.UNTRUSTED,
            Code.CERTIFICATE_UNTRUSTED,
            "(by Some CA)",
            2,
        ),
    ],
)
def test_a_certificate_and_two_clocks(
    changed: dict[str, object], validity: Validity, code: Code, words: str, status: int
) -> None:
    certificate = replace(CERTIFICATE, **changed)  # type: ignore[arg-type]
    assert judge_clock(certificate).validity is validity
    evidence = replace(WELL, certificate=certificate)
    assert words in said(evidence, code)
    assert diagnose(evidence).conclusion.status == status


def test_what_only_the_user_can_set_right_is_asked_first() -> None:
    certificate = replace(CERTIFICATE, trusted=False, refusal="no", remedy="trust it")
    asks = diagnose(replace(blocked(), certificate=certificate)).asks
    assert (
        asks[0] == "Trust it. If Some CA did not issue it for this server, a proxy in the way did."
    )
    assert "What to ask for:\n  - Trust it." in as_text(
        replace(blocked(), certificate=certificate), NOW, "1"
    )


# Names and servers


def test_a_name_without_an_address() -> None:
    evidence = Evidence("nowhere.example", 443, no_name="no address for nowhere.example: unknown")
    assert codes(evidence) == [Code.NO_NAME]
    assert diagnose(evidence).conclusion.status == 2


@pytest.mark.parametrize(
    ("server", "code", "words"),
    [
        (ServerSeen(False, why_not="404"), Code.NOT_TENUTO, "no Tenuto server (404)"),
        (ServerSeen(True, offers_quic=False), Code.QUIC_NOT_OFFERED, "offers this client no QUIC"),
        (ServerSeen(True, True, 444), Code.QUIC_NOT_OFFERED, "UDP port 444"),
    ],
)
def test_what_a_server_says_of_itself(server: ServerSeen, code: Code, words: str) -> None:
    assert words in said(replace(WELL, server=server), code)


@pytest.mark.parametrize("server", [None, ServerSeen(True), ServerSeen(True, True, 443)])
def test_a_server_as_it_should_be(server: ServerSeen | None) -> None:
    assert codes(replace(WELL, server=server)) == codes(WELL)


def test_what_was_left_out_is_said() -> None:
    evidence = replace(WELL, skipped=("It took too long.",))
    assert said(evidence, Code.LEFT_OUT) == "It took too long."


# Figures


def test_figures_are_rounded_for_people() -> None:
    assert milliseconds(0.0004) == "0.4 ms"
    assert milliseconds(0.0304) == "30 ms"
    assert bits(8187.0) == "8 kbit/s"
    assert bits(2_340_000.0) == "2.3 Mbit/s"


def test_moments_are_written_in_utc() -> None:
    assert date(0) == "1970-01-01"
    assert date(951_782_400) == "2000-02-29"
    assert minute(1_709_251_199) == "2024-02-29 23:59 UTC"
    assert second(-1) == "1969-12-31 23:59:59 UTC"
    assert iso(4_107_542_400) == "2100-03-01T00:00:00Z"
