"""Messages that are late on purpose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.late_messages import LateMessages


@settings(max_examples=25)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 1000), st.lists(st.booleans(), min_size=1, max_size=40))
def test_messages_come_in_order_and_no_later_than_they_may_whatever_the_sender_leaves_out(least, more, seed, sends):
    late: LateMessages[int] = LateMessages(least, least + more, seed)
    arrived: list[int] = []
    for now in range(len(sends) + least + more):
        if now < len(sends) and sends[now]:
            late.put(now, now)
        if (message := late.take(now)) is not None:
            arrived.append(message)
            assert least <= now - message
        sent = [k for k in range(len(sends)) if sends[k] and k <= now - least - more]
        assert not sent or (arrived and arrived[-1] >= sent[-1])  # none is later than the most
    assert arrived == sorted(set(arrived))


def test_the_same_seed_delays_alike_and_nothing_of_before_a_reset_comes():
    def run() -> list[int | None]:
        late: LateMessages[int] = LateMessages(0, 3, seed=5)
        found = []
        for now in range(30):
            late.put(now, now)
            found.append(late.take(now))
        return found

    assert run() == run()
    late: LateMessages[int] = LateMessages(2)
    late.put(7, 7)
    late.clear()
    assert late.take(100) is None
    late.put(0, 1)
    assert late.take(1) is None and late.take(2) == 1


def test_delays_that_cannot_be_are_refused():
    with pytest.raises(TensegrityError, match="least <= most"):
        LateMessages(3, 2)
