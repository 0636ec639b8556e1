"""The scripts for a real router: the lines of the profiles, and no trace of a failure."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netem.catalogue import Catalogue
from netem.tc import Hop, plan, shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tc and nft are Linux")

SCRIPTS = Path(__file__).parents[2] / "netem" / "scripts"
PROFILES = {
    ("loss5.sh",): "loss5",
    ("burst.sh",): "loss5-burst",
    ("jitter.sh",): "jitter",
    ("4g.sh",): "4g",
    ("block-udp443.sh", "drop"): "udp-blocked-drop",
    ("block-udp443.sh", "reject"): "udp-blocked-reject",
    ("block-udp443.sh", "prohibit"): "udp-blocked-prohibit",
    ("block-udp443.sh", "first-packet"): "udp-blocked-first-packet",
    ("block-udp443.sh", "after-handshake"): "udp-blocked-after-handshake",
    ("block-udp443.sh", "throttle"): "udp-blocked-throttled",
}
HOPS = {
    ("rc", "rs"): Hop(to_client="rc", to_server="rs"),
    ("--server", "eth0"): Hop(to_client="eth0"),
    ("--client", "eth0"): Hop(to_server="eth0"),
}
PAIRS = "ip link add rc type veth peer name c0; ip link add rs type veth peer name s0\n"


def run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=30)


def in_namespace(text: str) -> str:
    """Both streams of shell lines run as root of a new network namespace, scripts on the path."""
    command = ["unshare", "--net", "sh", "-c", f'PATH="{SCRIPTS}:$PATH:/usr/sbin:/sbin"\n{text}']
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        command[1:1] = ["--map-root-user"]
        if subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode:
            pytest.skip("no network namespace can be made here")
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout


needs_nft = pytest.mark.skipif(
    shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") is None, reason="no nft here"
)


@pytest.mark.parametrize("devices", HOPS, ids=" ".join)
@pytest.mark.parametrize("words", PROFILES, ids=" ".join)
def test_the_lines_are_those_of_the_profile(
    words: tuple[str, ...], devices: tuple[str, str]
) -> None:
    printed = run(*words, "--print", *devices).stdout.splitlines()
    made = plan(Catalogue().load(PROFILES[words]), HOPS[devices], udp_port=443)
    assert printed == [shell(command) for command in made.apply]


def test_every_script_is_covered() -> None:
    names = {path.name for path in SCRIPTS.glob("*.sh")} - {"common.sh", "clear.sh"}
    assert names == {words[0] for words in PROFILES}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_shellcheck_finds_nothing(path: Path) -> None:
    tool = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [tool, "--external-sources", "--source-path=SCRIPTDIR", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted({words[0] for words in PROFILES} | {"clear.sh"}))
def test_help_is_the_comment_on_top(name: str) -> None:
    told = run(name, "--help").stdout
    assert f"  {name} " in told
    assert "--print" in told
    assert "#" not in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("loss5.sh",), "name two devices"),
        (("loss5.sh", "rc"), "a router needs both devices"),
        (("loss5.sh", "rc", "rs", "third"), "one device too many: third"),
        (("loss5.sh", "rc", "rc"), "must differ"),
        (("loss5.sh", "--speed"), "there is no option --speed"),
        (("loss5.sh", "--client"), "--client needs the name of a device"),
        (("loss5.sh", "--client", "rc", "rs"), "one device is enough"),
        (("loss5.sh", "--client", "rc", "--server", "rs"), "one device is enough"),
        (("loss5.sh", "rc", "--client", "rs"), "--client stands alone"),
        (("loss5.sh", 'r";c', "rs"), "not the name of a device"),
        (("block-udp443.sh",), "the variant comes first: drop, reject"),
        (("block-udp443.sh", "rc", "rs"), "the variant comes first"),
        (("clear.sh", "--all"), "there is no option --all"),
    ],
)
def test_a_wrong_call_is_told_what_is_right(words: tuple[str, ...], message: str) -> None:
    done = run(*words, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_missing_device_is_named() -> None:
    told = in_namespace("loss5.sh nodev0 nodev1; clear.sh nodev0")
    assert told.count("there is no device nodev0 here; ip link lists them") == 2


def test_without_netem_the_kernel_is_quoted_and_nothing_is_left() -> None:
    """Whatever this kernel has, this `tc` has none. With one: tests/netem/vm/test_router_page."""
    without = (
        "mkdir /dev/shm/$$ && cat > /dev/shm/$$/tc <<'END'\n"
        "#!/bin/sh\n"
        'case " $* " in *" netem "*) echo "Error: Specified qdisc kind is unknown."; exit 2 ;;\n'
        "esac\n"
        "for real in /usr/sbin/tc /sbin/tc /usr/bin/tc; do\n"
        '    if [ -x "$real" ]; then exec "$real" "$@"; fi\n'
        "done\n"
        "END\n"
        "chmod +x /dev/shm/$$/tc; PATH=/dev/shm/$$:$PATH\n"
    )
    for name in ("loss5.sh", "burst.sh", "jitter.sh", "4g.sh"):
        told = in_namespace(
            f"{PAIRS}{without}{name} rc rs || echo status $?; tc qdisc show; nft list ruleset; "
            "rm -r /dev/shm/$$"
        )
        assert "Error: Specified qdisc kind is unknown." in told
        assert "modprobe sch_netem" in told
        assert told.splitlines()[-1] == "status 1"


@needs_nft
def test_a_block_is_put_there_once_however_often_and_cleared() -> None:
    told = in_namespace(
        f"{PAIRS}block-udp443.sh after-handshake rc rs; block-udp443.sh drop rc rs; "
        "nft list table inet tenuto_netem; "
        "clear.sh --print; clear.sh; clear.sh; echo left:; nft list ruleset"
    )
    assert told.count("block-udp443.sh: done on rc and rs; undo with clear.sh") == 2
    assert told.count("counter packets 0 bytes 0 drop comment") == 2
    assert "nft 'delete table inet tenuto_netem'\n" in told
    assert told.count("clear.sh: nothing of ours is left") == 2
    assert told.endswith("left:\n")


@needs_nft
def test_clear_leaves_what_is_not_ours() -> None:
    told = in_namespace(
        f"{PAIRS}nft add table inet theirs\n"
        "tc qdisc add dev rc root handle 1: tbf rate 9mbit burst 3100 limit 30000\n"
        "tc qdisc add dev rs root handle 7e: tbf rate 9mbit burst 3100 limit 30000\n"
        "block-udp443.sh drop --server rc; clear.sh rc; echo --; tc qdisc show; clear.sh; "
        "echo --; tc qdisc show; nft list ruleset"
    )
    _, before, after = told.split("--\n")
    assert "tbf 1: dev rc" in before
    assert "tbf 7e: dev rs" in before
    assert "tbf 1: dev rc" in after
    assert "7e:" not in after
    assert "table inet theirs" in after
    assert "tenuto_netem" not in after


def test_somebody_else_s_qdisc_is_refused_and_stays() -> None:
    told = in_namespace(
        f"{PAIRS}tc qdisc add dev rs root handle 1: tbf rate 9mbit burst 3100 limit 30000\n"
        "tc qdisc show > /dev/shm/$$.before; loss5.sh rc rs || echo status $?; "
        "tc qdisc show | cmp - /dev/shm/$$.before && echo same; rm /dev/shm/$$.before"
    )
    assert "rs has a root qdisc that is not ours, and stays as it is: qdisc tbf 1: root" in told
    assert told.endswith("status 1\nsame\n")


def test_without_rights_nothing_is_tried() -> None:
    told = in_namespace(
        f"{PAIRS}setpriv --bounding-set=-net_admin --inh-caps=-net_admin loss5.sh rc rs"
    )
    if "setpriv:" in told:
        pytest.skip("setpriv cannot drop the capability here")
    assert "RTNETLINK answers: Operation not permitted" in told or "unknown" in told
    assert "nothing is left of it" in told


def test_clear_takes_nobody_s_qdisc_of_the_same_handle() -> None:
    told = in_namespace(
        f"{PAIRS}tc qdisc add dev rc root handle 7e: htb; clear.sh rc; tc qdisc show"
    )
    if "unknown" in told:
        pytest.skip("this kernel has no htb")
    assert "qdisc htb 7e: dev rc root" in told


@needs_nft
def test_clear_takes_the_rest_although_a_device_is_gone() -> None:
    told = in_namespace(
        f"{PAIRS}block-udp443.sh drop rc rs; clear.sh gone0 rc || echo status $?; nft list ruleset"
    )
    assert "clear.sh: there is no device gone0 here" in told
    assert told.endswith("status 1\n")


def test_clear_does_not_vouch_for_what_it_cannot_see() -> None:
    told = in_namespace(
        "mkdir /dev/shm/$$\n"
        "ln -s $(command -v id) $(command -v dirname) $(command -v readlink) /dev/shm/$$\n"
        f"PATH=/dev/shm/$$ /bin/sh {shlex.quote(str(SCRIPTS))}/clear.sh || echo status $?\n"
        "rm -r /dev/shm/$$"
    )
    assert "there is no tc here to look for qdiscs with" in told
    assert told.endswith("status 1\n")


@needs_nft
@pytest.mark.parametrize(("signal", "status"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_script_that_is_stopped_leaves_no_half(signal: str, status: int) -> None:
    # The third line of nft waits for the signal to be sent.
    told = in_namespace(
        f"{PAIRS}mkdir /dev/shm/$$ && cat > /dev/shm/$$/nft <<'END'\n"
        "#!/bin/sh\n"
        'here=$(dirname "$0")\n'
        'case $* in "add rule"*) : > "$here/slow"\n'
        '    until [ -e "$here/sent" ]; do sleep 0.05; done ;;\n'
        "esac\n"
        "for real in /usr/sbin/nft /sbin/nft /usr/bin/nft; do\n"
        '    if [ -x "$real" ]; then exec "$real" "$@"; fi\n'
        "done\n"
        "END\n"
        "chmod +x /dev/shm/$$/nft; PATH=/dev/shm/$$:$PATH\n"
        # A command in the background of a plain shell ignores INT, but not with a handler.
        f"env --default-signal=INT block-udp443.sh drop rc rs & child=$!\n"
        "until [ -e /dev/shm/$$/slow ]; do sleep 0.05; done\n"
        f"nft list tables; kill -{signal} $child; : > /dev/shm/$$/sent\n"
        "wait $child; echo status $?\n"
        "nft list ruleset; rm -r /dev/shm/$$"
    )
    assert told.startswith("table inet tenuto_netem\n")
    assert "block-udp443.sh: stopped, and nothing is left of it" in told
    assert told.endswith(f"status {status}\n")


def test_names_of_devices_are_no_patterns() -> None:
    told = in_namespace(
        "ip link add rcx0 type veth peer name rcx1; loss5.sh --client rc.0; clear.sh '*'"
    )
    assert "there is no device rc.0 here" in told
    assert "there is no device * here" in told


@needs_nft
def test_lines_that_are_run_twice_are_refused_and_not_doubled() -> None:
    profile = Catalogue().load("udp-blocked-first-packet")
    lines = [shell(command) for command in plan(profile, HOPS["rc", "rs"], udp_port=443).apply]
    text = "\n".join(f"{line} &&" for line in lines)
    told = in_namespace(f"{PAIRS}{text} echo first\n{text} echo second\nnft list ruleset")
    assert "first\n" in told
    assert "File exists" in told
    assert "second\n" not in told
    assert told.count('comment "blocked up"') == 2


def test_a_script_may_be_linked_to_from_the_path(tmp_path: Path) -> None:
    link = tmp_path / "loss5"
    link.symlink_to(SCRIPTS / "loss5.sh")
    command = [str(link), "--print", "rc", "rs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == run("loss5.sh", "--print", "rc", "rs").stdout
