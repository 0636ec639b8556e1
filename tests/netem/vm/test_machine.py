"""The parts of the machine that can be tried without one, and the machine itself."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netem.errors import ImpairmentError
from netem.profile.conditions import Blackout, Block, Conditions, Profile, RandomLoss
from netem.vm import machine, packages
from netem.vm.archive import Archive
from netem.vm.bed import VmBed
from netem.vm.initrd import module_order
from netem.vm.machine import Machine, RefusedLineError
from netem.vm.packages import NoMachineError, fetch_kernel, find_kernel, find_tool, missing
from tests.support.machine import needs_machine

LOSS = Conditions(loss=RandomLoss(rate=0.5))


def test_an_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    if shutil.which("cpio") is None:
        pytest.skip("no cpio here")
    archive = Archive()
    archive.add_file("bin/deep/tool", b"#!", executable=True)
    archive.add_file("/etc/odd", b"12345")
    archive.add_directory("/proc")
    archive.add_link("bin/sh", "/bin/deep/tool")
    unpack = ["cpio", "-idm", "--quiet", "--no-absolute-filenames"]
    subprocess.run(unpack, input=archive.finish(), cwd=tmp_path, check=True, timeout=10)
    assert (tmp_path / "bin/deep/tool").read_bytes() == b"#!"
    assert os.access(tmp_path / "bin/deep/tool", os.X_OK)
    assert (tmp_path / "etc/odd").read_bytes() == b"12345"
    assert (tmp_path / "proc").is_dir()
    assert os.readlink(tmp_path / "bin/sh") == "/bin/deep/tool"


def a_module(folder: Path, name: str, needs: str) -> None:
    (folder / f"{name}.ko").write_bytes(b"\x7fELF\0license=GPL\0depends=" + needs.encode() + b"\0")


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    a_module(tmp_path, "virtio-net", "net_failover,virtio")
    a_module(tmp_path, "net_failover", "failover")
    a_module(tmp_path, "failover", "")
    (tmp_path / "modules.builtin").write_text("kernel/drivers/virtio/virtio.ko\n")
    order = [name for name, _ in module_order(tmp_path, ("virtio_net", "failover"))]
    assert order == ["failover", "net_failover", "virtio_net"]


def test_a_module_that_is_not_there_or_not_readable_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMachineError, match="has no module sch_netem"):
        module_order(tmp_path, ("sch_netem",))
    (tmp_path / "sch_netem.ko.zst").write_bytes(b"")
    with pytest.raises(NoMachineError, match=r"sch_netem\.ko\.zst is compressed in a way"):
        module_order(tmp_path, ("sch_netem",))


def test_what_is_absent_is_said_in_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoMachineError, match="run python -m netem.vm, which downloads"):
        find_kernel()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "SYSTEM_PATH", str(tmp_path))
    with pytest.raises(NoMachineError, match="nft is not installed: apt-get install nftables"):
        find_tool("nft")
    reason = missing()
    assert reason is not None
    assert "apt-get install busybox-static dash iproute2 nftables qemu-system-x86;" in reason
    assert "\n" not in reason
    with pytest.raises(NoMachineError, match="apt-cache is not here: this needs a Debian system"):
        fetch_kernel()


@pytest.mark.parametrize(
    ("apt", "words"),
    [
        ("exit 0", "apt knows no linux-image-cloud-amd64"),
        ("echo 'E: no lists' >&2; exit 100", "E: no lists"),
    ],
)
def test_an_apt_that_knows_nothing_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, apt: str, words: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake = tmp_path / "apt-cache"
    fake.write_text(f"#!/bin/sh\n{apt}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NoMachineError, match=words):
        fetch_kernel()


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with an apt that has a kernel 7.7.7, which takes half a second to come."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (
        ("apt-cache", "echo '  Depends: linux-image-7.7.7'"),
        ("apt-get", f"echo x >>{tmp_path}/downloads; sleep 0.5; : >linux-image-7.7.7.deb"),
        ("dpkg-deb", 'mkdir -p "$3/boot" "$3/lib/modules/7.7.7"; : >"$3/boot/vmlinuz-7.7.7"'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return tmp_path


def test_two_that_fetch_at_once_download_once(apt: Path) -> None:
    argv = [sys.executable, "-m", "netem.vm"]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "12"]
    for process in both:
        said, _ = process.communicate(timeout=60)
        assert b"kernel 7.7.7 in " in said
    assert (apt / "downloads").read_text() == "x\n"
    assert [path.name for path in (apt / "cache" / "tenuto-netem").iterdir()] == ["7.7.7"]


def test_what_a_killed_fetch_left_is_no_kernel_and_goes(apt: Path) -> None:
    cache = apt / "cache" / "tenuto-netem"
    with subprocess.Popen([sys.executable, "-m", "netem.vm"]) as process:
        until = time.monotonic() + 20
        while not (apt / "downloads").exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
    assert [path.name[:9] for path in cache.iterdir()] == ["download-"]
    # Nor is a folder that lacks the half.
    (cache / "7.7.7" / "boot").mkdir(parents=True)
    (cache / "7.7.7" / "boot" / "vmlinuz-7.7.7").touch()
    assert fetch_kernel().release == "7.7.7"
    assert [path.name for path in cache.iterdir()] == ["7.7.7"]


def test_a_cache_that_cannot_be_is_named(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (apt / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(apt / "file"))
    with pytest.raises(NoMachineError, match="cannot keep the kernel in .*/file/tenuto-netem: Not"):
        fetch_kernel()


def test_a_kernel_that_is_damaged_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "sch_netem.ko.xz").write_bytes(b"\xfd7zXZ\0half")
    with pytest.raises(NoMachineError, match=r"sch_netem\.ko\.xz cannot be read"):
        module_order(tmp_path, ("sch_netem",))


@needs_machine
@pytest.mark.timeout(120)
def test_a_machine_that_does_not_start_says_what_to_remove(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = find_kernel()
    image = tmp_path / "1.2.3" / "boot" / "vmlinuz-1.2.3"
    image.parent.mkdir(parents=True)
    image.write_bytes(whole.image.read_bytes()[:100_000])
    monkeypatch.setattr(machine, "BOOT_TIMEOUT", 8.0)
    with pytest.raises(NoMachineError, match=r"remove .*/1\.2\.3 and run python -m netem\.vm"):
        Machine((), packages.Kernel(whole.release, image, whole.modules))
    assert processes_of_qemu() == set()


def processes_of_qemu(parent: int | None = None) -> set[int]:
    """Children of this process, or of another."""
    wanted = parent or os.getpid()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes()
            found_parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"qemu-system" in arguments.split(b"\0")[0] and found_parent == wanted:
            found.add(int(folder.name))
    return found


@needs_machine
@pytest.mark.timeout(120)
def test_a_machine_refuses_recovers_counts_hangs_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with VmBed(Profile(name="half", up=LOSS, block=Block())) as bed:
        assert len(processes_of_qemu()) == 1
        bed.check()
        with pytest.raises(RefusedLineError, match="Cannot find device"):
            bed.machine.run("ip link set nodev up")
        with pytest.raises(ImpairmentError, match="tc has no schedule; use the tun or veth"):
            bed.apply(Profile(name="gaps", up=Conditions(blackouts=(Blackout(start=0, length=1),))))
        bed.restart()
        ping(bed)
        up = bed.tally().path.up
        assert (up.blocked, up.link.offered) == (0, 20)
        assert 0 < up.link.lost < 20
        with pytest.raises(ImpairmentError, match="draws without a seed"):
            bed.restart(seed=1)
        bed.restart(profile=Profile(name="clear"))
        assert ping(bed) == 20
        bed.machine.run("tc qdisc add dev eth1 root handle 1: pfifo")
        with pytest.raises(
            ImpairmentError, match="kernel refused `tc qdisc add dev eth1 root handle 7e: netem"
        ):
            bed.apply(Profile(name="half", down=LOSS, up=LOSS))
        # What was run of it is undone, and what is not ours stayed.
        assert "netem" not in bed.machine.run("tc qdisc show")
        assert "pfifo 1:" in bed.machine.run("tc qdisc show dev eth1")
        with monkeypatch.context() as patched:
            patched.setattr("netem.vm.machine._COMMAND_TIMEOUT", 0.3)
            with pytest.raises(NoMachineError, match="the machine hangs"):
                bed.machine.run("sleep 60")
        (qemu,) = processes_of_qemu()
        os.kill(qemu, 9)
        time.sleep(0.1)
        with pytest.raises(ImpairmentError, match="qemu ended with status -9"):
            bed.check()
    assert processes_of_qemu() == set()


@needs_machine
@pytest.mark.timeout(120)
def test_a_machine_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("netem.vm.machine.BOOT_TIMEOUT", 0.05)
        with pytest.raises(NoMachineError, match="the machine hangs; it said: nothing"):
            VmBed(Profile(name="clear"))
    assert processes_of_qemu() == set()
    with VmBed(Profile(name="clear")) as bed:
        # More than waits for it. However much its processor takes at once, it now takes nothing.
        (qemu,) = processes_of_qemu()
        os.kill(qemu, signal.SIGSTOP)
        with bed.client.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            for _ in range(10_000):
                flood.sendto(b"much", (bed.server.ipv4, 9))
        os.kill(qemu, signal.SIGCONT)
        assert 0 < bed.tally().unread < 10_000
        bed.restart()
        assert bed.tally().unread == 0
        with pytest.raises(NoMachineError, match="the machine says too much"):
            bed.machine.run("yes | head -c 1200000")
    assert processes_of_qemu() == set()


def ping(bed: VmBed) -> int:
    """How many of 20 came back."""
    argv = ["ping", "-q", "-c", "20", "-i", "0.01", "-W", "1", bed.server.ipv4]
    process = bed.client.popen(argv, stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=20)
    return int(said.decode().partition(" received")[0].rpartition(" ")[2])


@needs_machine
def test_a_killed_harness_takes_its_machine_along() -> None:
    argv = [sys.executable, "-m", "netem", "agree", "loss5"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as harness:
        until = time.monotonic() + 20
        while not (machines := processes_of_qemu(harness.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        harness.kill()
    assert len(machines) == 1
    (machine,) = machines
    until = time.monotonic() + 5
    while running(machine) and time.monotonic() < until:
        time.sleep(0.01)
    assert not running(machine)


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
