"""Messages between a process and its model worker: a JSON header and raw bytes, both with their length in front.

Vectors and text go as bytes after the header, so that a batch costs one copy and no parsing of numbers.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTHS = struct.Struct("<IQ")
Header = dict[str, Any]


class Closed(Exception):
    """The other end closed the connection, or died."""


def send(connection: socket.socket, header: Header, body: bytes | memoryview = b"") -> None:
    """Send one message. Raises OSError when the other end is gone. One sender at a time: hold a lock."""
    head = json.dumps(header, separators=(",", ":")).encode("ascii")
    connection.sendall(_LENGTHS.pack(len(head), len(body)) + head)
    if len(body):
        connection.sendall(body)


def receive(connection: socket.socket) -> tuple[Header, bytearray]:
    """The next message. Raises Closed at the end, also in the middle of a message."""
    head_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    header: Header = json.loads(_exactly(connection, head_length))
    return header, _exactly(connection, body_length)


def _exactly(connection: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        try:
            got = connection.recv_into(view)
        except ConnectionError:
            got = 0
        if not got:
            raise Closed
        view = view[got:]
    return data
