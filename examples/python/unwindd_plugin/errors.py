# SPDX-License-Identifier: Apache-2.0
"""The errors of calls, and how they go over gRPC."""

import traceback
from pathlib import Path

import grpc
from google.protobuf import any_pb2

from . import arch_pb2 as pb

MAX_TEXT = 8192  # bytes of the text of an error


class Refusal(Exception):
    """The reason why a call has no answer: users read it. The plugin goes on."""

    code = grpc.StatusCode.UNKNOWN


class ObjectNotOpen(Refusal):
    """The code object is not known here, or no longer: unwindd opens it again and asks once more."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class NotServed(Refusal):
    """The plugin has no answer to such a request: what Architecture answers counts."""

    code = grpc.StatusCode.UNIMPLEMENTED


class ReadError(Exception):
    """The engine could not read what was asked for; data has the bytes before that."""

    def __init__(self, message: str, data: bytes = b"") -> None:
        super().__init__(message)
        self.data = data


def fail(context: grpc.ServicerContext, call: str, error: Exception) -> None:
    """Ends a call with an error. One that is neither a Refusal nor a ReadError is a fault of the plugin."""
    detail = pb.ArchitectureError(call=call)
    code, message = grpc.StatusCode.UNKNOWN, str(error)
    if isinstance(error, Refusal):
        code = error.code
    elif not isinstance(error, ReadError):
        code, message = grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
        detail.panicked, detail.place = True, _clip(place(error))
        traceback.print_exception(error)
    message = _clip(message) or type(error).__name__
    context.set_trailing_metadata((("grpc-status-details-bin", _status(code.value[0], message, detail)),))
    context.abort(code, message)


def place(error: Exception) -> str:
    """The innermost functions of an error: "decode (isa.py:12), called by open_object (isa.py:40)"."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return ", called by ".join(f"{f.name} ({Path(f.filename).name}:{f.lineno})" for f in reversed(frames))


def _clip(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_TEXT].decode("utf-8", "ignore")


def _status(code: int, message: str, detail: pb.ArchitectureError) -> bytes:
    """A google.rpc.Status: Debian's Python has no module with that message."""
    packed = any_pb2.Any()
    packed.Pack(detail)
    text = message.encode()
    return b"\x08" + _varint(code) + b"\x12" + _sized(text) + b"\x1a" + _sized(packed.SerializeToString())


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)
