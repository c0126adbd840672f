"""Bounded messages, and descriptors where they are wanted, over a connected stream socket."""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Sequence

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_MAX_FDS = 4
_HEADER = struct.Struct("<I")


class ChannelError(Exception):
    """The other side broke the protocol: a message too large, or bytes that are no message."""


class ChannelClosed(Exception):
    """The other side has closed its end."""


class ChannelTimeout(Exception):
    """Nothing complete arrived in time."""


class Channel:
    """Length-prefixed messages over one end of a socket pair.

    ``accept_fds`` stays off towards an untrusted process: the kernel then discards what it sends along.
    """

    def __init__(self, sock: socket.socket, *, accept_fds: bool = False) -> None:
        self._sock = sock
        self._accept_fds = accept_fds
        self._buffer = bytearray()
        self._fds: list[int] = []

    def fileno(self) -> int:
        """The socket's descriptor, for a poll loop."""
        return self._sock.fileno()

    def detach(self) -> socket.socket:
        """The bare socket, whose ownership passes to the caller."""
        return self._sock

    def send(self, message: bytes, fds: Sequence[int] = (), timeout: float | None = None) -> None:
        """Send one message whole. Raises ChannelClosed when nobody listens any more, whatever SIGPIPE does here.

        Raises ChannelTimeout when the other side does not read for so long; the channel is of no use then, as part of
        the message may have gone.
        """
        if len(message) > MAX_MESSAGE_BYTES:
            raise ChannelError(f"message of {len(message)} bytes is over the limit")
        data = memoryview(_HEADER.pack(len(message)) + message)
        try:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            if timeout is None:
                data = data[self._sock.sendmsg([data], ancillary, socket.MSG_NOSIGNAL) :]
                self._sock.sendall(data, socket.MSG_NOSIGNAL)
                return
            while data:
                if not select.select([], [self._sock], [], timeout)[1]:
                    raise ChannelTimeout
                with contextlib.suppress(BlockingIOError):
                    data = data[self._sock.sendmsg([data], ancillary, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
                    ancillary = []
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, timeout: float | None = None) -> bytes:
        """The next message. Raises ChannelTimeout, ChannelClosed or ChannelError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self._take()
            if message is not None:
                return message
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = select.select([self._sock], [], [], remaining)[0]
            if not ready:
                raise ChannelTimeout
            self._fill()

    def drain(self) -> list[bytes]:
        """All messages that are complete after one read, for a poll loop that saw the descriptor readable."""
        self._fill()
        messages = []
        while (message := self._take()) is not None:
            messages.append(message)
        return messages

    def take_fds(self) -> list[int]:
        """Descriptors that came with what was received so far; the caller owns them."""
        fds, self._fds = self._fds, []
        return fds

    def close(self) -> None:
        """Close the socket and any descriptor that nobody took."""
        for fd in self.take_fds():
            with contextlib.suppress(OSError):
                os.close(fd)
        self._sock.close()

    def _fill(self) -> None:
        try:
            if self._accept_fds:
                size = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
                data, ancillary, _flags, _address = self._sock.recvmsg(1 << 18, size, socket.MSG_CMSG_CLOEXEC)
                for level, kind, payload in ancillary:
                    if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                        fds = array.array("i")
                        fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                        self._fds.extend(fds)
            else:
                data = self._sock.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise ChannelClosed("end of stream")
        self._buffer += data

    def _take(self) -> bytes | None:
        if len(self._buffer) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack_from(self._buffer)
        if size > MAX_MESSAGE_BYTES:
            raise ChannelError(f"announces a message of {size} bytes")
        end = _HEADER.size + size
        if len(self._buffer) < end:
            return None
        message = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        return message


def pair(*, accept_fds: tuple[bool, bool] = (False, False)) -> tuple[Channel, Channel]:
    """Two connected ends; ``accept_fds`` says which of them takes descriptors."""
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(one, accept_fds=accept_fds[0]), Channel(two, accept_fds=accept_fds[1])
