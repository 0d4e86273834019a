"""Take away, by a filter of the kernel's, system calls that no answer needs.

Limits and namespaces leave gaps, and the calls that lead through them fail here. Memory
that is no process's own (``memfd_create``, System V segments, pages that are shared and
belong to no file, the buffers of sockets) is counted by no limit. Files of this machine
that all submissions may read are one memory for all of them, too: who can throw a page
out of the kernel's cache, ask whether it is there, or lock a file, can leave a word for
another submission.

The filter compares numbers, and numbers differ by processor: x86-64 and 64-bit ARM are
known here.
"""

import ctypes
import errno
import os
import platform
import struct

from course_tools.grading.sandbox.confine import NO_NEW_PRIVILEGES, CannotConfine


def _numbers(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


X86_64 = """
mount 165  umount2 166  pivot_root 155  unshare 272  setns 308  memfd_create 319
shmget 29  semget 64  msgget 68  bpf 321  userfaultfd 323  perf_event_open 298
add_key 248  request_key 249  keyctl 250  clone 56  socket 41  setsockopt 54
vmsplice 278  setsid 112  fadvise64 221  readahead 187  mincore 27  preadv2 327
pwritev2 328  flock 73  inotify_init 253  inotify_init1 294  fanotify_init 300
name_to_handle_at 303  open_by_handle_at 304  process_vm_readv 310
process_vm_writev 311  kcmp 312  fcntl 72  madvise 28  mmap 9  prctl 157
"""
AARCH64 = """
mount 40  umount2 39  pivot_root 41  unshare 97  setns 268  memfd_create 279  shmget 194
semget 190  msgget 186  bpf 280  userfaultfd 282  perf_event_open 241  add_key 217
request_key 218  keyctl 219  clone 220  socket 198  setsockopt 208  vmsplice 75
setsid 157  fadvise64 223  readahead 213  mincore 232  preadv2 286  pwritev2 287
flock 32  inotify_init1 26  fanotify_init 262  name_to_handle_at 264
open_by_handle_at 265  process_vm_readv 270  process_vm_writev 271  kcmp 272  fcntl 25
madvise 233  mmap 222  prctl 167
"""
#: By machine: what the kernel calls it, and the numbers of its calls; a call that is
#: not there is left out.
MACHINES = {
    "x86_64": (0xC000003E, _numbers(X86_64)),
    "aarch64": (0xC00000B7, _numbers(AARCH64)),
}
#: Newer calls have one number everywhere.
EVERYWHERE = _numbers("""
io_uring_setup 425  open_tree 428  move_mount 429  fsopen 430  fsconfig 431  fsmount 432
fspick 433  clone3 435  openat2 437  process_madvise 440  mount_setattr 442
landlock_create_ruleset 444  memfd_secret 447  cachestat 451
""")
#: Namespaces and mounts of its own, memory of no process, doors to the kernel.
DOORS = (
    *("mount", "umount2", "pivot_root", "unshare", "setns", "open_tree", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "memfd_create"),
    *("memfd_secret", "shmget", "semget", "msgget", "bpf", "userfaultfd", "add_key"),
    *("perf_event_open", "request_key", "keyctl", "io_uring_setup"),
    "landlock_create_ruleset",
)
#: Words left for other submissions in the kernel's cache or on files of all, pages in
#: pipes, and other processes; and ``setsid``: where the kernel shares processors by
#: session, a process would have a share beside that of its tree.
SHARED = (
    *("fadvise64", "readahead", "mincore", "cachestat", "preadv2", "pwritev2", "flock"),
    *("inotify_init", "inotify_init1", "fanotify_init", "name_to_handle_at", "kcmp"),
    *("open_by_handle_at", "process_madvise", "process_vm_readv", "process_vm_writev"),
    *("vmsplice", "setsid"),
)
#: Calls that programs do without where a kernel is too old for them: flags of
#: ``clone3`` cannot be seen here, and ``openat2`` can ask whether a name is in the
#: cache.
TOO_NEW = ("clone3", "openat2")

Rule = tuple[str, int, int, tuple[int, ...]]
ALL_BITS = 0xFFFFFFFF
#: Of clone(): flags that ask for a namespace.
NEW_NAMESPACES: Rule = ("clone", 0, 0x7E020000, ())
#: A call, which of its arguments, the bits of it that count, and the values for which
#: it fails; none: any bit at all.
BY_ARGUMENT: tuple[Rule, ...] = (
    # F_GETLK, F_SETLK, F_SETLKW, the same for open files; F_SETLEASE, F_GETLEASE,
    # F_NOTIFY, F_SETPIPE_SZ
    ("fcntl", 1, ALL_BITS, (5, 6, 7, 36, 37, 38, 1024, 1025, 1026, 1031)),
    # MADV_WILLNEED, MADV_MERGEABLE, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ,
    # MADV_POPULATE_WRITE
    ("madvise", 2, ALL_BITS, (3, 12, 20, 21, 22, 23)),
    # MAP_SHARED | MAP_ANONYMOUS, in MAP_SHARED_VALIDATE too
    ("mmap", 3, 0x21, (0x21,)),
    # all families but AF_UNIX, which data loaders and event loops need
    ("socket", 0, ALL_BITS ^ 1, ()),
    ("setsockopt", 2, ALL_BITS, (7, 32)),  # SO_SNDBUF, SO_SNDBUFFORCE
    ("prctl", 0, ALL_BITS, (67,)),  # PR_SET_MEMORY_MERGE
)

# offsets in what the kernel shows to a filter
NUMBER, MACHINE, FIRST_ARGUMENT = (0, 4, 16)
LOAD, AND, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
KILL, ALLOW, FAIL = 0x80000000, 0x7FFF0000, 0x00050000
OTHER_NUMBERS = 0x40000000  # x86-64's second table of calls
SET_SECCOMP, FILTER = 22, 2

Instruction = tuple[int, int, int, int]


def program(
    names: tuple[str, ...], rules: tuple[Rule, ...], machine: str
) -> list[Instruction]:
    """Write the filter: code, jumps if true and if false, value, by line."""
    if machine not in MACHINES:
        known = ", ".join(MACHINES)
        raise CannotConfine(
            f"no list of system calls for a processor {machine!r}; known are {known}"
        )
    token, numbers = MACHINES[machine]
    numbers = numbers | EVERYWHERE
    refused, allowed = (RETURN, 0, 0, FAIL | errno.EPERM), (RETURN, 0, 0, ALLOW)
    code = [
        (LOAD, 0, 0, MACHINE),
        (IF_EQUAL, 1, 0, token),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    code += [(IF_AT_LEAST, 0, 1, OTHER_NUMBERS), refused]
    for name in names:
        if name in numbers:
            code += [(IF_EQUAL, 0, 1, numbers[name]), refused]
    for name in TOO_NEW:
        code += [(IF_EQUAL, 0, 1, numbers[name]), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    for name, argument, bits, values in (NEW_NAMESPACES, *rules):
        look = [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * argument), (AND, 0, 0, bits)]
        for value in values:
            look += [(IF_EQUAL, 0, 1, value), refused]
        look += [allowed] if values else [(IF_EQUAL, 0, 1, 0), allowed, refused]
        code += [(IF_EQUAL, 0, len(look), numbers[name]), *look]
    return [*code, allowed]


def refuse_system_calls(
    names: tuple[str, ...] = DOORS + SHARED, rules: tuple[Rule, ...] = BY_ARGUMENT
) -> None:
    """Let the calls fail, for ever, for this process and all that it starts."""
    code = program(names, rules, platform.machine())
    text = b"".join(struct.pack("<HBBI", *line) for line in code)
    place = ctypes.create_string_buffer(text, len(text))
    whole = ctypes.create_string_buffer(
        struct.pack("@HP", len(code), ctypes.addressof(place))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    alone = libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if alone or libc.prctl(SET_SECCOMP, FILTER, whole, 0, 0):
        said = os.strerror(ctypes.get_errno())
        raise CannotConfine(f"a filter of system calls: {said}")
