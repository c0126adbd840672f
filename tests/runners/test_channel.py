"""Messages arrive whole or not at all, whatever the other side does."""

import os
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.channel import MAX_MESSAGE_BYTES, ChannelClosed, ChannelError, ChannelTimeout, pair


@given(st.lists(st.binary(max_size=2000), max_size=8))
def test_messages_keep_their_bounds_and_order(messages: list[bytes]):
    one, two = pair()
    for message in messages:
        one.send(message)
    assert [two.receive(1.0) for _ in messages] == messages
    one.close()
    with pytest.raises(ChannelClosed):
        two.receive(1.0)
    two.close()


def test_a_partial_message_is_a_timeout_then_a_close():
    one, two = pair()
    one.detach().send(struct.pack("<I", 10) + b"abc")
    with pytest.raises(ChannelTimeout):
        two.receive(0.01)
    one.close()
    with pytest.raises(ChannelClosed):
        two.receive(1.0)
    two.close()


def test_an_announced_flood_is_refused_before_it_is_read():
    one, two = pair()
    one.detach().send(struct.pack("<I", MAX_MESSAGE_BYTES + 1))
    with pytest.raises(ChannelError, match="announces"):
        two.receive(1.0)
    one.close()
    two.close()


def test_descriptors_pass_only_where_they_are_wanted():
    one, two = pair(accept_fds=(False, True))
    reader, writer = os.pipe()
    one.send(b"take", fds=(writer,))
    assert two.receive(1.0) == b"take"
    (got,) = two.take_fds()
    os.write(got, b"x")
    assert os.read(reader, 1) == b"x"
    two.send(b"refused", fds=(writer,))
    assert one.receive(1.0) == b"refused"
    assert one.take_fds() == []
    for fd in (reader, writer, got):
        os.close(fd)
    one.close()
    two.close()


def test_who_does_not_read_does_not_hold_up_who_writes():
    one, two = pair()
    with pytest.raises(ChannelTimeout):
        one.send(bytes(MAX_MESSAGE_BYTES), timeout=0.01)
    one.close()
    two.close()


def test_a_message_longer_than_the_sockets_buffer_arrives_whole():
    one, two = pair(accept_fds=(False, True))
    message = os.urandom(4 << 20)
    reader, writer = os.pipe()
    sender = threading.Thread(target=lambda: one.send(message, fds=(writer,), timeout=30.0))
    sender.start()
    assert two.receive(30.0) == message
    sender.join()
    (got,) = two.take_fds()
    for end in (reader, writer, got):
        os.close(end)
    one.close()
    two.close()
