"""What a profile says, and every mistake in one, by the file, the key, and what to write."""

from collections.abc import Mapping

import pytest

from netem.profile.conditions import (
    Answer,
    Blackout,
    Block,
    Conditions,
    Distribution,
    Fades,
    GilbertElliott,
    Jitter,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Rate,
    Schedule,
    Way,
)
from netem.profile.document import Document, parse_document
from netem.profile.errors import ProfileError
from netem.profile.reading import read_profile
from netem.profile.units import BadValueError

TRACES = {"drive.trace": "1\n1\n\n4\n", "bad.trace": "1\nx\n", "empty.trace": "0\n"}
BASES = {
    "base": '[both]\ndelay = "30ms"\nloss = "5%"\nburst = 3\njitter = "2ms"\n'
    'distribution = "pareto"\nrate = "1mbit"\nqueue = 7\n[source]\ndefault = "a book"\n',
    "circle": 'extends = "circle2"',
    "circle2": 'extends = "circle"',
    **{f"deep{n}": f'extends = "deep{n + 1}"' for n in range(40)},
}


def text_of(name: str) -> str:
    try:
        return TRACES[name]
    except KeyError:
        raise BadValueError("there is no such trace", "look again") from None


def document(text: str, name: str = "mine") -> Document:
    return parse_document(text, name=name, file=f"{name}.toml", text_of=text_of)


def look_up(name: str, asking: Document) -> Document:
    if name not in BASES:
        raise ProfileError(asking.file, f"there is no {name}", "choose another", key="extends")
    return document(BASES[name], name)


def profile(text: str) -> Profile:
    return read_profile(document(text), look_up)


def both(text: str) -> Conditions:
    read = profile(f"[both]\n{text}")
    assert read.up == read.down
    return read.up


def test_an_empty_profile_does_nothing() -> None:
    assert profile("") == Profile(name="mine")


def test_a_direction_in_full() -> None:
    read = profile(
        """
        summary = "All of it"
        source = "ours"
        [up]
        delay = "30ms"
        jitter = "5ms"
        distribution = "uniform"
        reordering = true
        loss = "5%"
        fade = { every = "5s", length = "100ms", loss = "50%" }
        blackout = [
            { start = "10s", length = "2s", every = "15s" },
            { start = "0s", length = "1s" },
        ]
        rate = "9mbit"
        queue = 25
        reorder = "1%"
        duplicate = "2%"
        corrupt = "3%"
        mtu = 1280
        too_big = "icmp"
        """
    )
    assert read.summary == "All of it"
    assert read.down == Conditions()
    assert read.up == Conditions(
        delay=0.03,
        jitter=Jitter(spread=0.005, distribution=Distribution.UNIFORM, reordering=True),
        loss=RandomLoss(rate=0.05),
        fades=Fades(every=5.0, length=0.1, loss=0.5),
        blackouts=(
            Blackout(start=10.0, length=2.0, every=15.0),
            Blackout(start=0.0, length=1.0),
        ),
        bottleneck=Rate(bits_per_second=9e6, queue=25),
        reorder=0.01,
        duplicate=0.02,
        corrupt=0.03,
        mtu=Mtu(size=1280, answers=True),
    )
    assert set(read.sources.values()) == {"ours"}


def test_what_is_left_out_has_a_default() -> None:
    assert both('jitter = "5ms"').jitter == Jitter(spread=0.005)
    assert both('rate = "9mbit"').bottleneck == Rate(bits_per_second=9e6, queue=100)
    assert both("mtu = 1280").mtu == Mtu(size=1280, answers=False)
    assert both('fade = { every = "5s", length = "100ms" }').fades == Fades(every=5.0, length=0.1)
    assert both('blackout = { start = "1s", length = "2s" }').blackouts == (
        Blackout(start=1.0, length=2.0),
    )


def test_zero_is_nothing() -> None:
    assert (
        both('delay = "0s"\njitter = "0ms"\ndistribution = "normal"\nloss = "0%"') == Conditions()
    )
    assert both('loss = "0%"\nburst = 3').loss is None


def test_a_burst_is_a_gilbert_model_of_the_same_mean() -> None:
    model = both('loss = "5%"\nburst = 3').loss
    assert isinstance(model, GilbertElliott)
    assert model.to_good == pytest.approx(1 / 3)
    assert model.to_bad / (model.to_bad + model.to_good) == pytest.approx(0.05)


def test_gemodel_has_the_letters_of_tc() -> None:
    simple = both('gemodel = { p = "1%", r = "30%" }').loss
    assert simple == GilbertElliott(to_bad=0.01, to_good=0.3)
    full = both('gemodel = { p = "1%", r = "30%", h = "20%", k = "99%" }').loss
    assert isinstance(full, GilbertElliott)
    # h and k are the chances to get through.
    assert full.loss_bad == pytest.approx(0.8)
    assert full.loss_good == pytest.approx(0.01)
    assert both('gemodel = { p = "0%", r = "0%" }').loss == GilbertElliott(to_bad=0, to_good=0)


def test_a_trace_is_read_beside_the_file() -> None:
    assert both('trace = "drive.trace"').bottleneck == Schedule(
        opportunities=(1, 1, 4), queue=100, name="drive.trace"
    )


def test_up_and_down_go_over_both() -> None:
    read = profile(
        '[both]\nrate = "1mbit"\nloss = "1%"\n'
        '[up]\ntrace = "drive.trace"\n[down]\nloss = "none"\nrate = "2mbit"'
    )
    assert isinstance(read.up.bottleneck, Schedule)
    assert read.up.loss == RandomLoss(rate=0.01)
    assert read.down == Conditions(bottleneck=Rate(bits_per_second=2e6, queue=100))


def test_the_middle_of_the_path() -> None:
    read = profile(
        '[udp]\nblock = "reject"\npass_first = 2\npolice = "8kbit"\npolice_burst = "4kB"\n'
        "port = 443\n"
        '[nat]\nrebind_every = "5s"\nrebind_at = ["1s", "2s"]\nidle = "30s"\ninbound_refresh = true'
    )
    assert read.block == Block(answer=Answer.REJECT, first_packets=2)
    assert read.police == Police(bits_per_second=8e3, burst=4_000)
    assert read.udp_port == 443
    assert read.nat == Nat(rebind_every=5.0, rebind_at=(1.0, 2.0), idle=30.0, inbound_refresh=True)
    assert profile('[udp]\npolice = "8kbit"').police == Police(bits_per_second=8e3, burst=3_000)
    assert profile('[udp]\nblock = "drop"').block == Block()
    assert profile('[udp]\nblock = "drop"\nblock_way = "down"').block == Block(way=Way.DOWN)
    assert profile('[udp]\nblock = "drop"\nblock_way = "both"').block == Block()
    assert profile('[nat]\nidle = "30s"').nat == Nat(idle=30.0)


def test_a_profile_extends_another() -> None:
    same = profile('extends = "base"')
    assert same.up == same.down
    assert same.up.delay == 0.03
    assert same.up.bottleneck == Rate(bits_per_second=1e6, queue=7)
    mine = profile('extends = "base"\n[up]\ndelay = "10ms"\ntrace = "drive.trace"')
    assert mine.up.delay == 0.01
    assert mine.up.jitter == Jitter(spread=0.002, distribution=Distribution.PARETO)
    assert mine.up.bottleneck == Schedule(opportunities=(1, 1, 4), queue=7, name="drive.trace")
    assert mine.down == same.down


def test_none_takes_away_what_was_inherited_and_what_hangs_on_it() -> None:
    read = profile('extends = "base"\n[both]\nloss = "none"\njitter = "none"\nrate = "none"')
    assert read.up == Conditions(delay=0.03)
    other = profile('extends = "base"\n[both]\nrate = "none"\ntrace = "drive.trace"')
    assert other.up.bottleneck == Schedule(opportunities=(1, 1, 4), queue=7, name="drive.trace")


def test_one_kind_of_loss_takes_the_place_of_another() -> None:
    read = profile('extends = "base"\n[both]\ngemodel = { p = "1%", r = "30%" }')
    assert read.up.loss == GilbertElliott(to_bad=0.01, to_good=0.3)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ('source = "x"\n[both]\ndelay = "1ms"', {"delay": "x"}),
        ('[both]\ndelay = "1ms"', {"delay": ""}),
        ('[both]\ndelay = "1ms"\n[source]\ndelay = "y"', {"delay": "y"}),
        (
            '[both]\ndelay = "1ms"\n[source]\ndefault = "x"\n"up.delay" = "y"',
            {"up.delay": "y", "down.delay": "x"},
        ),
        ('[up]\nloss = "1%"\n[source]\nup.loss = "z"', {"up.loss": "z"}),
        ('[nat]\nidle = "9s"\n[source]\nidle = "z"', {"nat.idle": "z"}),
        ('[udp]\nblock = "drop"\n[source]\nudp.block = "z"', {"udp.block": "z"}),
    ],
)
def test_every_value_keeps_its_source(text: str, sources: Mapping[str, str]) -> None:
    assert dict(profile(text).sources) == sources


def test_an_inherited_value_keeps_its_source_and_a_new_one_has_its_own() -> None:
    read = profile('extends = "base"\n[both]\ndelay = "1ms"\n[source]\ndelay = "ours"')
    assert read.sources["delay"] == "ours"
    assert read.sources["loss"] == "a book"


MISTAKES = {
    # the file
    "x": "mine.toml: not TOML: ",
    "a = 1" + "0" * 5_000: "mine.toml: not TOML that can be read",
    "a = " + "[" * 5_000: "mine.toml: not TOML that can be read",
    # keys
    "delay = '3ms'": "delay: it stands outside of a table; put it below [both] or [up] or [down]",
    "[bosh]": 'mine.toml: bosh: there is no such key (did you mean "both"?); the tables are [both]',
    "[both]\ndely = 1": 'both.dely: there is no such key (did you mean "delay"?); [both] takes',
    "[udp]\nqqqq = 1": "udp.qqqq: there is no such key; [udp] takes block,",
    "both = 3": "mine.toml: both: 3 is not a table; write [both] on a line",
    "summary = 3": "summary: 3 is not a line of text",
    'summary = "a\\u001b[31m"': 'summary: "a\\x1b[31m" is not a line of text',
    'source = "a\\nb"': 'source: "a\\nb" names no source',
    # extends
    "extends = 3": 'extends: 3 is not the name of a profile; write one, as in extends = "4g"',
    "extends = 'circle'": "extends itself in a circle: circle -> circle2 -> circle",
    "extends = 'deep0'": "mine.toml: extends: extends more than 16 profiles",
    "extends = 'nothing'": "mine.toml: extends: there is no nothing; choose another",
    # sources
    "source = 3": "source: 3 names no source",
    "[both]\ndelay='1ms'\n[source]\ndelai='x'": (
        'source.delai: this file gives no such value (did you mean "delay"?)'
    ),
    "[both]\ndelay='1ms'\n[source]\ndelay=3": "source.delay: 3 is not a line of text",
    "[both]\ndelay='1ms'\n[source]\ndelay=\"a\\nb\"": 'source.delay: "a\\nb" is not a line of text',
    "both = 3\n[source]\nq='x'": "source.q: this file gives no such value",
    # quantities
    "[both]\ndelay = 30": 'both.delay: 30 has no unit; give it a unit, as in "30ms" (us, ms, s)',
    "[both]\ndelay = '30'": 'both.delay: "30" has no unit; give it a unit',
    "[both]\ndelay = true": "both.delay: true or false is not a delay",
    "[both]\ndelay = [1]": "both.delay: a list is not a delay",
    "[both]\ndelay = {a=1}": "both.delay: a table is not a delay",
    "[both]\ndelay = 1979-05-27": "both.delay: a date or time of day is not a delay",
    "[both]\ndelay = '-3ms'": 'both.delay: "-3ms" is negative; give from 0s to 60s',
    "[both]\ndelay = 'nan'": 'both.delay: "nan" is not a delay; write it as in "30ms"',
    "[both]\ndelay = '3min'": '"min" is not a unit of a delay',
    "[both]\ndelay = '61s'": 'both.delay: "61s" is out of range; give from 0s to 60s',
    "[both]\nrate = '9Mbit'": '"Mbit" is not a unit of a rate (did you mean "mbit"?)',
    "[both]\nrate = '9mbps'": '"mbps" is not a unit of a rate',
    "[both]\nrate = '0bit'": 'both.rate: "0bit" is out of range; give from 1kbit to 100gbit',
    "[both]\nrate = inf": "both.rate: inf has no unit",
    "[both]\nloss = '101%'": 'both.loss: "101%" is out of range; give from 0% to 100%',
    "[both]\nloss = '" + "9" * 99 + "%'": 'both.loss: "99999',
    "[both]\nloss = 0x" + "f" * 5_000: "both.loss: a number of thousands of digits has no unit",
    "[both]\nmtu = '1280'": 'both.mtu: "1280" is not a number of bytes',
    "[both]\nmtu = 20": "both.mtu: 20 bytes is out of range; give from 68 to 65535",
    "[both]\nrate='1mbit'\nqueue = true": "both.queue: True is not a number of packets",
    "[both]\nloss='1%'\nburst = 0.5": "both.burst: 0.5 packets is out of range",
    "[both]\nloss='1%'\nburst = nan": "both.burst: nan packets is out of range",
    "[both]\nloss='1%'\nburst = '3'": 'both.burst: "3" is not a mean number of packets',
    # words
    "[both]\njitter='1ms'\ndistribution='normall'": (
        'both.distribution: "normall" is not known here (did you mean "normal"?); '
        'write "normal" or "uniform" or "pareto"'
    ),
    "[both]\njitter='1ms'\ndistribution=3": "both.distribution: 3 is not known here; write",
    "[both]\njitter='1ms'\nreordering='yes'": 'both.reordering: "yes" is neither yes nor no',
    "[both]\nmtu=1280\ntoo_big='loud'": 'both.too_big: "loud" is not known here',
    "[udp]\nblock='deny'": 'udp.block: "deny" is not known here',
    # what needs or excludes something else
    "[both]\ndistribution='normal'": "both.distribution: distribution means nothing without jitter",
    "[both]\nreordering=true": "reordering means nothing without jitter",
    "[both]\nburst=3": "both.burst: burst means nothing without loss; add loss, or take burst out",
    "[both]\nqueue=3": "queue means nothing without rate or trace",
    "[both]\nreorder='1%'": "reorder means nothing without delay",
    "[both]\ndelay='0s'\nreorder='1%'": "packets can overtake only where there is a delay",
    "[both]\ntoo_big='icmp'": "too_big means nothing without mtu",
    "[udp]\nblock='drop'\nblock_way='left'": 'udp.block_way: "left" is not known here',
    "[udp]\nblock_way='up'": "block_way means nothing without block",
    "[udp]\npass_first=1": "pass_first means nothing without block",
    "[udp]\npolice_burst='3kB'": "police_burst means nothing without police",
    "[udp]\nport=443": "port means nothing without block or police",
    "[nat]\ninbound_refresh=true": "inbound_refresh means nothing without idle",
    "[both]\nrate='1mbit'\ntrace='drive.trace'": "rate and trace exclude each other",
    "[both]\nloss='1%'\ngemodel={p='1%', r='9%'}": "loss and gemodel exclude each other",
    "[both]\nburst=3\ngemodel={p='1%', r='9%'}": "burst and gemodel exclude each other",
    "[both]\nloss='80%'\nburst=3": "no more than 75% can be lost in bursts of 3",
    # inline tables
    "[both]\ngemodel='5%'": 'both.gemodel: "5%" is not a table; write it as in gemodel = {',
    "[both]\ngemodel={p='1%'}": "both.gemodel: r is missing",
    "[both]\ngemodel={r='1%'}": "both.gemodel: p is missing",
    "[both]\ngemodel={p='1%', r='0%'}": "r is 0%, so the bad state never ends",
    "[both]\ngemodel={p='1%', r='9%', '1-h'='100%'}": 'give h, the chance to get through: "0%"',
    "[both]\ngemodel={p='1%', r='9%', '1-k'='0%'}": "give k, the chance to get through",
    "[both]\ngemodel={p=1, r='9%'}": "both.gemodel.p: 1 has no unit",
    "[both]\nfade={evry='5s', length='1s'}": (
        'both.fade.evry: there is no such key (did you mean "every"?)'
    ),
    "[both]\nfade={every='5s'}": "both.fade: length is missing",
    "[both]\nfade={length='5s'}": "both.fade: every is missing",
    "[both]\nfade={every='1s', length='1s'}": "a fade as long as its period leaves nothing clear",
    "[both]\nblackout=[3]": "both.blackout: 3 is not a table",
    "[both]\nblackout={length='5s'}": "both.blackout: start is missing",
    "[both]\nblackout={start='5s'}": "both.blackout: length is missing",
    "[both]\nblackout={start='0s', length='2s', every='2s'}": "a blackout as long as its period",
    "[both]\nblackout=[" + "{}," * 1_001 + "]": "there are 1,001 of them, more than 1,000",
    # traces
    "[both]\ntrace=3": "both.trace: 3 is not the name of a file",
    "[both]\ntrace='no.trace'": "both.trace: there is no such trace; look again",
    "[both]\ntrace='bad.trace'": 'both.trace: line 2 of the trace holds "x"',
    "[both]\ntrace='empty.trace'": "the trace has no opportunity after the first millisecond",
    # the NAT
    "[nat]\nrebind_at='5s'": 'nat.rebind_at: "5s" is not a list of times',
    "[nat]\nrebind_at=[]": "nat.rebind_at: [] is not a list of times",
    "[nat]\nrebind_at=['5s', '5s']": "nat.rebind_at: 5 s does not come after 5 s",
    "[nat]\nrebind_at=[" + "'1s'," * 1_001 + "]": "it has 1,001 times, more than 1,000",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_its_remedy(text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        profile(text)
    told = str(caught.value)
    assert message in told
    assert told.startswith(f"{caught.value.file}")
    assert told.endswith(f"; {caught.value.remedy}")
    assert told.isprintable()


def test_a_mistake_in_what_is_extended_names_that_file() -> None:
    BASES["broken"] = '[both]\ndelay = "3 minutes"'
    with pytest.raises(ProfileError, match="^broken.toml: both.delay: "):
        profile('extends = "broken"')


def test_a_message_does_not_draw_on_the_terminal() -> None:
    with pytest.raises(ProfileError) as caught:
        profile('[both]\ndelay = "\\u001b[2J\\n"')
    assert "\\x1b[2J\\n" in str(caught.value)
