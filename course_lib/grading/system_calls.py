"""Take from this process the system calls that no answer to an assignment needs: a filter of the kernel's (seccomp).

Limits and namespaces leave gaps. Memory that is no process's own (``memfd_create``, System V segments, a file system in
memory that is mounted in a namespace of one's own) is counted by no limit; so those calls fail here.

The filter compares numbers, and numbers differ by processor: x86-64 and 64-bit ARM are known here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from course_lib.grading.confine import NO_NEW_PRIVILEGES, CannotConfine

#: By machine: what the kernel calls it, and the numbers of the calls that :data:`REFUSED` names.
MACHINES = {
    "x86_64": (
        0xC000003E,
        {
            "mount": 165, "umount2": 166, "pivot_root": 155, "unshare": 272, "setns": 308, "memfd_create": 319,
            "shmget": 29, "msgget": 68, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "add_key": 248,
            "request_key": 249, "keyctl": 250, "clone": 56,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "mount": 40, "umount2": 39, "pivot_root": 41, "unshare": 97, "setns": 268, "memfd_create": 279,
            "shmget": 194, "msgget": 186, "bpf": 280, "userfaultfd": 282, "perf_event_open": 241, "add_key": 217,
            "request_key": 218, "keyctl": 219, "clone": 220,
        },
    ),
}  # fmt: skip
#: Newer calls have one number everywhere.
EVERYWHERE = {
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "clone3": 435, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
#: Namespaces and mounts of its own, memory of no process, doors to the kernel.
REFUSED = (
    "mount", "umount2", "pivot_root", "unshare", "setns", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
    "fspick", "mount_setattr", "memfd_create", "memfd_secret", "shmget", "msgget", "bpf", "userfaultfd",
    "perf_event_open", "add_key", "request_key", "keyctl", "io_uring_setup",
)  # fmt: skip
#: Flags of clone() that ask for a namespace.
NEW_NAMESPACES = 0x7E020000

NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in what the kernel shows to a filter
LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
KILL, ALLOW, FAIL = 0x80000000, 0x7FFF0000, 0x00050000
OTHER_NUMBERS = 0x40000000  # x86-64's second table of calls
SET_SECCOMP, FILTER = 22, 2

Instruction = tuple[int, int, int, int]


def program(names: tuple[str, ...], machine: str) -> list[Instruction]:
    """Write the filter: code, jumps if true and if false, value, as the kernel's interpreter takes them.

    Args:
        names: calls that fail with EPERM.
        machine: as ``uname`` names the processor.

    Raises:
        CannotConfine: the numbers of this machine's calls are not known here.
    """
    if machine not in MACHINES:
        raise CannotConfine(f"no list of system calls for a processor {machine!r}; known are {', '.join(MACHINES)}")
    token, numbers = MACHINES[machine]
    numbers = numbers | EVERYWHERE
    refused = (RETURN, 0, 0, FAIL | errno.EPERM)
    code = [(LOAD, 0, 0, MACHINE), (IF_EQUAL, 1, 0, token), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    code += [(IF_AT_LEAST, 0, 1, OTHER_NUMBERS), refused]
    for name in names:
        if name in numbers:
            code += [(IF_EQUAL, 0, 1, numbers[name]), refused]
    # The C library takes clone() where clone3(), whose flags a filter cannot see, is not there.
    code += [(IF_EQUAL, 0, 1, numbers["clone3"]), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    code += [(IF_EQUAL, 0, 4, numbers["clone"]), (LOAD, 0, 0, FIRST_ARGUMENT), (IF_ANY_BIT, 0, 1, NEW_NAMESPACES)]
    code += [refused, (RETURN, 0, 0, ALLOW)]
    return [*code, (RETURN, 0, 0, ALLOW)]


def refuse_system_calls() -> None:
    """Let the calls fail for this process and all that it starts; nothing takes the filter away.

    Raises:
        CannotConfine: the kernel has no filters, or the processor is not known here.
    """
    code = program(REFUSED, platform.machine())
    text = b"".join(struct.pack("<HBBI", *line) for line in code)
    place = ctypes.create_string_buffer(text, len(text))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(place)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, FILTER, whole, 0, 0):
        raise CannotConfine(f"a filter of system calls: {os.strerror(ctypes.get_errno())}")
