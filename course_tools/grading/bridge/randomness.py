"""Random numbers that two processes draw from one stream, though neither trusts what
the other says it drew.

Before a call the grader's side sends the state of its generators; afterwards the
student's side says how far it drew. Were any state taken on trust, a student could make
all later test data zeros. So a state is accepted only if drawing from the state before
leads to it (:func:`reachable`); any other is ignored.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import torch

#: torch's state of its Mersenne Twister: seed, words left in the block, a flag, place
#: of the next word, the block.
HEAD = struct.Struct("<Qiiq")
BLOCK_BYTES = 624 * 8
STATE_BYTES = 5056
BLOCKS = 20_000


def reachable(now: torch.Tensor, claimed: bytes) -> torch.Tensor | None:
    """Draw from a state until it is the one that is claimed."""
    if len(claimed) != STATE_BYTES or now.numel() != STATE_BYTES:
        return None
    wanted_head = claimed[: HEAD.size]
    wanted_block = claimed[HEAD.size : HEAD.size + BLOCK_BYTES]
    generator = torch.Generator()
    generator.set_state(now)
    for _ in range(BLOCKS):
        state = generator.get_state().numpy().tobytes()
        if state[HEAD.size : HEAD.size + BLOCK_BYTES] == wanted_block:
            break
        left = max(HEAD.unpack(state[: HEAD.size])[1], 1)
        torch.empty(left, dtype=torch.int32).random_(generator=generator)
    else:
        return None
    for _ in range(626):
        state = generator.get_state().numpy().tobytes()
        if (
            state[: HEAD.size] == wanted_head
            and state[HEAD.size : HEAD.size + BLOCK_BYTES] == wanted_block
        ):
            return generator.get_state()
        torch.empty(1, dtype=torch.int32).random_(generator=generator)
    return None


Generator = torch.Generator | random.Random
PYTHON_STATE = struct.Struct("<625I")
NORMAL = struct.Struct("<d")


def state_of(generator: Generator) -> bytes:
    """The state of a generator of torch's, or of Python's, whose half-used normal pairs
    are left out."""
    if isinstance(generator, random.Random):
        return PYTHON_STATE.pack(*generator.getstate()[1])
    return generator.get_state().numpy().tobytes()


def with_state(state: bytes) -> Generator:
    """Make a generator with this state; its length tells the kind."""
    if len(state) == PYTHON_STATE.size:
        python = random.Random()
        python.setstate((3, PYTHON_STATE.unpack(state), None))
        return python
    generator = torch.Generator()
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator


def draw_on(generator: Generator, claimed: bytes) -> None:
    """Bring a generator to the state that is claimed, if drawing leads there."""
    if isinstance(generator, random.Random):
        if len(claimed) == PYTHON_STATE.size:
            drawn = _python_reachable(
                generator.getstate(), (3, PYTHON_STATE.unpack(claimed), None)
            )
            if drawn is not None:
                generator.setstate(drawn)
    elif (accepted := reachable(generator.get_state(), claimed)) is not None:
        generator.set_state(accepted)


class Randomness:
    """The state of torch's and Python's own generators, as it goes back and forth with
    the calls."""

    def __init__(self) -> None:
        self.sent: tuple[bytes, bytes] | None = None

    @staticmethod
    def now() -> tuple[bytes, bytes]:
        """Both states as they are; Python's is 625 words, and half a pair of normal
        numbers if one is kept."""
        _, words, normal = random.getstate()
        kept = b"" if normal is None else NORMAL.pack(normal)
        return torch.get_rng_state().numpy().tobytes(), PYTHON_STATE.pack(*words) + kept

    def watch_seeds(self) -> None:
        """Notice each seeding from now on: a seed set twice is sent twice, though the
        state is the same."""
        for module, name in (
            (torch, "manual_seed"),
            (torch.random, "manual_seed"),
            (torch, "set_rng_state"),
        ):
            setattr(module, name, self._noticing(getattr(module, name)))
        random.seed = self._noticing(random.seed)

    def _noticing(self, function: Any) -> Any:
        def seeding(*args: Any, **kwargs: Any) -> Any:
            self.sent = None
            return function(*args, **kwargs)

        return seeding

    def to_send(self) -> tuple[bytes, bytes] | None:
        """Both states, or None if the other side has them."""
        state = self.now()
        if state == self.sent:
            return None
        self.sent = state
        return state

    def adopt(self, states: tuple[bytes, bytes] | None) -> None:
        """Go on from the states that the trusted side sent."""
        if states is not None:
            torch.set_rng_state(
                torch.frombuffer(bytearray(states[0]), dtype=torch.uint8)
            )
            words, kept = states[1][: PYTHON_STATE.size], states[1][PYTHON_STATE.size :]
            random.setstate(
                (
                    3,
                    PYTHON_STATE.unpack(words),
                    *(NORMAL.unpack(kept) if kept else (None,)),
                )
            )
        self.sent = self.now()

    def to_return(self) -> tuple[bytes | None, bytes | None]:
        """What was drawn from during the call: each state, or None."""
        before, now = self.sent, self.now()
        if before is None:
            return now
        return tuple(
            new if new != old else None for new, old in zip(now, before, strict=True)
        )  # type: ignore[return-value]

    def accept(self, states: Any) -> None:
        """Take over how far the other side drew, if it can be so."""
        if type(states) is not tuple or len(states) != 2:
            return
        theirs, python = states
        if (
            type(theirs) is bytes
            and (state := reachable(torch.get_rng_state(), theirs)) is not None
        ):
            torch.default_generator.set_state(state)
        if type(python) is bytes and len(python) >= PYTHON_STATE.size:
            words = PYTHON_STATE.unpack(python[: PYTHON_STATE.size])
            if (
                drawn := _python_reachable(random.getstate(), (3, words, None))
            ) is not None:
                random.setstate(drawn)
        self.sent = self.now()


def _python_reachable(now: tuple, claimed: tuple) -> tuple | None:
    """The same for the generator of the module ``random``."""
    words = claimed[1] if len(claimed) == 3 else ()
    if (
        type(words) is not tuple
        or len(words) != 625
        or any(type(word) is not int for word in words)
    ):
        return None
    generator = random.Random()
    generator.setstate(now)
    for _ in range(BLOCKS):
        block = generator.getstate()[1]
        if block[:624] == words[:624]:
            for _ in range(626):
                state = generator.getstate()
                if state[1] == words:
                    return state
                generator.getrandbits(32)
            return None
        generator.getrandbits(32 * (625 - block[624]) if block[624] <= 624 else 32)
    return None
