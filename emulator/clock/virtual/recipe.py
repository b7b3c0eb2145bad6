"""PURE: what the virtual clock's kernel is made of: configuration, edits of the source, numbers.

The kernel is a User-Mode-Linux of the distribution's own source. Everything that is not named here
is off (allnoconfig): a small kernel builds in half the time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ARCHITECTURE = "x86_64"
"""The processor that User-Mode-Linux exists for."""
TESTED_SERIES = "6.12"
TESTED_VERSION = "6.12.117"
SEED_PARAMETER = "fabriclab_seed"
"""On the guest's command line: ``fabriclab_seed=TEXT``; 32 characters count in full."""
BUILD_ENVIRONMENT: Mapping[str, str] = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "fabriclab",
    "KBUILD_BUILD_HOST": "fabriclab",
    "KBUILD_BUILD_VERSION": "1",
    "LOCALVERSION": "",
}
"""What a kernel says about its own build, and mixes into its randomness: alike on any machine."""
MAKE_VARIABLES = ("RUSTC=none", "PAHOLE=none")
"""Tools that are not used, but whose versions would get into the kernel where they are there."""
CLOCK_READ_NS = 16
FP_REGISTERS_BYTES = 12_288


@dataclass(frozen=True)
class OptionGroup:
    """Options that are there for one purpose.

    Attributes:
        why: the purpose.
        options: name without ``CONFIG_`` -> value as the kernel's configuration writes it.
    """

    why: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Edit:
    """One change of the source.

    Attributes:
        file: path in the source tree.
        find: text that is there exactly once.
        put: what takes its place.
        why: what goes wrong without it.
    """

    file: str
    find: str
    put: str
    why: str


class EditError(ValueError):
    """The text of an edit is not there exactly once: another version of the source."""


def _on(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "y")


def _off(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "n")


OPTIONS: tuple[OptionGroup, ...] = (
    OptionGroup(
        "time that jumps: timers of any length, no ticks while nothing happens",
        _on("64BIT UML_TIME_TRAVEL_SUPPORT HIGH_RES_TIMERS NO_HZ_IDLE"),
    ),
    OptionGroup(
        "no randomness and no code from outside, nothing that ends a run later than it could",
        {
            **_off("UML_RANDOM HW_RANDOM MODULES STATIC_LINK SMP COREDUMP LOCALVERSION_AUTO"),
            **_on("PANIC_ON_OOPS"),
            "LOCALVERSION": '"-fabriclab"',
        },
    ),
    OptionGroup(
        "the registers of the newest processors pass through the kernel's stack",
        {
            "KERNEL_STACK_ORDER": "4",
        },
    ),
    OptionGroup(
        "programs: Python, Open vSwitch and what they take for granted",
        _on(
            "EXPERT MULTIUSER POSIX_TIMERS PRINTK BUG KALLSYMS FUTEX EPOLL EVENTFD SHMEM"
            " ADVISE_SYSCALLS FILE_LOCKING BINFMT_ELF BINFMT_SCRIPT TTY UNIX98_PTYS"
        ),
    ),
    OptionGroup(
        "no time for clearing variables that are written anyway, a twentieth of the kernel's",
        _on("INIT_STACK_NONE"),
    ),
    OptionGroup("console in a file", _on("STDERR_CONSOLE NULL_CHAN TTY_CHAN")),
    OptionGroup(
        "the host's files, and file systems of the guest's own",
        _on("HOSTFS PROC_FS PROC_SYSCTL SYSFS TMPFS DEVTMPFS DEVTMPFS_MOUNT"),
    ),
    OptionGroup(
        "hosts are network namespaces, links are veth pairs, switches Open vSwitch's own datapath",
        _on("NAMESPACES NET_NS NET PACKET UNIX INET NETDEVICES NET_CORE VETH OPENVSWITCH"),
    ),
    OptionGroup(
        "ports: shaper, gate, and the eBPF programs at both ends",
        _on(
            "NET_SCHED NET_SCH_HTB NET_SCH_TBF NET_SCH_INGRESS NET_CLS NET_CLS_ACT NET_CLS_BPF"
            " NET_ACT_BPF BPF BPF_SYSCALL"
        ),
    ),
    OptionGroup(
        "propagation: frames wait in a shared device until their departure time",
        _on("IFB NET_SCH_FQ NET_SCH_NETEM NET_CLS_MATCHALL NET_ACT_MIRRED"),
    ),
    OptionGroup(
        "TCP as data centres run it",
        _on("TCP_CONG_ADVANCED TCP_CONG_CUBIC TCP_CONG_DCTCP TCP_CONG_BBR"),
    ),
)

_SEED_FUNCTION = f"""\
/*
 * fabriclab: the seed is the text after "{SEED_PARAMETER}=" on the command line, zeros without it.
 * A longer text than the seed is folded into it.
 */
static bool __init fabriclab_boot_seed(u8 *seed, size_t size)
{{
	static const char key[] __initconst = "{SEED_PARAMETER}=";
	const char *text = command_line;
	size_t at;

	memset(seed, 0, size);
	while ((text = strstr(text, key)) && text != command_line && text[-1] != ' ')
		text++;
	if (text)
		text += sizeof(key) - 1;
	for (at = 0; text && text[at] && text[at] != ' '; at++)
		seed[at % size] = seed[at % size] * 31 + text[at];
	return true;
}}

/* Taken, so it is not handed on to init. */
static int __init fabriclab_seed_taken(char *text)
{{
	return 1;
}}
__setup("{SEED_PARAMETER}=", fabriclab_seed_taken);

"""

_TIME_H, _TIME_C = "arch/um/include/linux/time-internal.h", "arch/um/kernel/time.c"
_UM_ARCH_C, _RANDOM_C = "arch/um/kernel/um_arch.c", "drivers/char/random.c"
_SETUP_ARCH = "void __init setup_arch(char **cmdline_p)\n"
_IO_H = "#include <asm/io.h>\n"
_ALL_AT_ONCE = """	local_irq_save(flags);
	time_travel_update_time(time_travel_time + offs, false);
	local_irq_restore(flags);
"""
_EVENT_BY_EVENT = """	{
		unsigned long long end = time_travel_time + offs;

		do {
			struct time_travel_event *e;

			local_irq_save(flags);
			e = time_travel_first_event();
			time_travel_update_time(e && e->time < end ?
						max(e->time, time_travel_time) : end, false);
			local_irq_restore(flags);
		} while (time_travel_time < end);
	}
"""

_PUT_OFF = (
    "\t\tif (time_before(jiffies, end) && !need_resched() &&\n"
    "\t\t    --max_restart)\n"
    "\t\t\tgoto restart;\n"
)
_AT_ONCE = "\t\tgoto restart;\n"

EDITS: tuple[Edit, ...] = (
    Edit(
        "arch/um/include/asm/archrandom.h",
        "ret = os_getrandom(v, max_longs * sizeof(*v), 0);",
        "ret = 0;",
        "the guest would ask the host for random numbers, and no run would repeat",
    ),
    Edit(
        _UM_ARCH_C,
        _SETUP_ARCH,
        _SEED_FUNCTION + _SETUP_ARCH,
        "the boot seed has to come from the run",
    ),
    Edit(
        _UM_ARCH_C,
        "if (os_getrandom(rng_seed, sizeof(rng_seed), 0) == sizeof(rng_seed)) {",
        "if (fabriclab_boot_seed(rng_seed, sizeof(rng_seed))) {",
        "the boot seed would come from the host",
    ),
    Edit(
        _RANDOM_C,
        _IO_H,
        f"{_IO_H}#undef random_get_entropy\n#define random_get_entropy() 1UL\n",
        "it reads the processor's cycle counter; 0 would count as a fault at boot",
    ),
    Edit(
        _RANDOM_C,
        "_mix_pool_bytes(command_line, strlen(command_line));",
        "",
        "folders on the command line would make two runs of one seed differ",
    ),
    Edit(
        "arch/x86/um/user-offsets.c",
        "DEFINE_LONGS(HOST_FP_SIZE, 2696);",
        f"DEFINE_LONGS(HOST_FP_SIZE, {FP_REGISTERS_BYTES});",
        "processors with AMX have 11 KB of registers, and the guest would not start there",
    ),
    Edit(
        _TIME_H,
        "#define TIMER_MULTIPLIER 256",
        "#define TIMER_MULTIPLIER 1",
        "the clock would count in 256 ns",
    ),
    Edit(
        _TIME_H,
        "#define TIMER_MIN_DELTA  500",
        "#define TIMER_MIN_DELTA  1",
        "timers would be 500 ns apart at the least, and a 100 Gbit/s port a third too slow",
    ),
    Edit(
        _TIME_C,
        "time_travel_update_time_rel(TIMER_MULTIPLIER);",
        f"time_travel_update_time_rel({CLOCK_READ_NS});",
        "reading the clock has to take time, or loops that wait for it to pass never end",
    ),
    Edit(
        _TIME_C,
        "	delta += 1;\n",
        "",
        "every timer would be 1 ns late, and so would every packet at every hop",
    ),
    Edit(
        _TIME_C,
        _ALL_AT_ONCE,
        _EVENT_BY_EVENT,
        "time that a program takes (a clock read, a failed call: 1 us) would hold timers up, and a "
        "busy 100 Gbit/s port would be a tenth too slow",
    ),
    Edit(
        "kernel/softirq.c",
        _PUT_OFF,
        _AT_ONCE,
        "a packet whose timer also wakes a program would wait until that program sleeps",
    ),
)

NOT_UNPACKED: tuple[str, ...] = (
    "*/Documentation/*.[rstyj]*",
    "*/tools/testing/*",
    "*/tools/perf/*",
    "*/arch/[a-tv-wyz]*/*.[chS]",
    "*/arch/*.dts*",
    "*/drivers/[adf-mo-su-z]*/*.[chS]",
    "*/drivers/net/*/*.[chS]",
    "*/sound/*.[chS]",
    "*/.git",
)
"""Patterns of what no kernel of ours is made of. Makefiles and Kconfig files stay: those that are
read refer to all others."""
SCRATCH_BYTES = 600_000_000
"""Room that the rest takes, with all that is compiled, rounded up."""
COMPILED_STEPS = 1_135
"""Lines that a build prints, for progress."""


def options() -> dict[str, str]:
    """All options: name without ``CONFIG_`` -> value."""
    return {name: value for group in OPTIONS for name, value in group.options.items()}


def fragment() -> str:
    """The configuration as the kernel's own tool reads it, each group with its purpose."""
    lines = []
    for group in OPTIONS:
        lines.append(f"# {group.why}")
        lines += [f"CONFIG_{name}={value}" for name, value in group.options.items()]
    return "\n".join(lines) + "\n"


def dropped(configuration: str, wanted: Mapping[str, str] | None = None) -> list[str]:
    """What the kernel's configuration tool did not take, as ``CONFIG_NAME=value``.

    Args:
        configuration: the text of the ``.config`` that it made.
        wanted: options; `options()` when None.
    """
    found = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", configuration, re.MULTILINE))
    asked = options() if wanted is None else wanted
    return [f"CONFIG_{k}={v}" for k, v in asked.items() if found.get(k, "n") != v]


def edited(text: str, edits: Iterable[Edit]) -> str:
    """A file's text with its edits made.

    Raises:
        EditError: the text of one is not there exactly once.
    """
    for edit in edits:
        times = text.count(edit.find)
        if times != 1:
            found = f"is there {times} times" if times else "is not there"
            raise EditError(f"{edit.find.strip()!r} {found}")
        text = text.replace(edit.find, edit.put)
    return text


def edited_files() -> dict[str, list[Edit]]:
    """File -> its edits, in their order."""
    files: dict[str, list[Edit]] = {}
    for edit in EDITS:
        files.setdefault(edit.file, []).append(edit)
    return files


def version_of(makefile: str) -> str:
    """The version that a kernel's top Makefile states, such as ``6.12.117``; empty without one."""
    fields: dict[str, str] = dict(re.findall(r"^(\w+) *= *(\S*)$", makefile, re.MULTILINE))
    if not fields.get("VERSION"):
        return ""
    numbers = [fields[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if fields.get(name)]
    return ".".join(numbers) + fields.get("EXTRAVERSION", "")


def is_tested(version: str) -> bool:
    """Whether a version belongs to the series that the edits were tested with."""
    return f"{version}.".startswith(f"{TESTED_SERIES}.")


def digest() -> str:
    """What tells this recipe from another, in 16 hexadecimal digits."""
    parts = (
        fragment(),
        *MAKE_VARIABLES,
        *map(repr, EDITS),
        *map(repr, sorted(BUILD_ENVIRONMENT.items())),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
