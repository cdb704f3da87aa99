# SPDX-License-Identifier: Apache-2.0
"""What a plugin asks of the engine while a call is under way: the stream ServeEngine."""

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import grpc

from . import arch_pb2 as pb
from .columns import Registers, check, split_registers, split_texts
from .errors import ReadError

PART = 1 << 20  # bytes of one answer about memory
MOST_ADDRESSES = 1 << 16  # of one request


class Stream:
    """One stream: requests go out, answers come in any order."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[pb.EngineRequest | None] = queue.SimpleQueue()
        self._waiting: dict[int, queue.SimpleQueue[pb.EngineAnswer]] = {}
        self._lock = threading.Lock()
        self._is_over = False
        self._ids = itertools.count(1)

    def serve(self, answers: Iterable[pb.EngineAnswer]) -> Iterator[pb.EngineRequest]:
        """The messages of the plugin. The first says that it is ready to ask."""
        threading.Thread(target=self._receive, args=(answers,), daemon=True).start()
        yield pb.EngineRequest()
        yield from iter(self._requests.get, None)

    def end(self) -> None:
        """Fails the requests that are under way, and those that come."""
        with self._lock:
            self._is_over = True
            for parts in self._waiting.values():
                parts.put(pb.EngineAnswer(error=pb.EngineError(message="the engine is gone")))
        self._requests.put(None)

    def _receive(self, answers: Iterable[pb.EngineAnswer]) -> None:
        try:
            for answer in answers:
                with self._lock:
                    parts = self._waiting.get(answer.id)
                if parts is not None:
                    parts.put(answer)
        except grpc.RpcError:
            pass  # the stream ended
        self.end()

    def ask(self, request: pb.EngineRequest) -> Iterator[pb.EngineAnswer]:
        """The parts of the answer to a request."""
        request.id = next(self._ids)
        parts: queue.SimpleQueue[pb.EngineAnswer] = queue.SimpleQueue()
        with self._lock:
            if self._is_over:
                raise ReadError("the engine is gone")
            self._waiting[request.id] = parts
        self._requests.put(request)
        try:
            while True:
                answer = parts.get()
                if answer.HasField("error"):
                    raise ReadError(answer.error.message)
                yield answer
                if not answer.partial:
                    return
        finally:
            with self._lock:
                del self._waiting[request.id]


class Engine:
    """The engine of one call. Its methods may be called from several threads."""

    def __init__(self, stream: Stream | None = None, session: int = 0) -> None:
        self._stream = stream
        self._session = session

    def _ask(self, request: pb.EngineRequest) -> Iterator[pb.EngineAnswer]:
        if self._stream is None or self._session == 0:
            raise ReadError("this call has no engine")
        request.session = self._session
        return self._stream.ask(request)

    def read_memory(self, address: int, size: int, *, space: int = 0, thread: int = 0, lane: int = -1) -> bytes:
        """Bytes of the target's memory: of the instance of the space that belongs to the thread and
        lane. Where fewer are there it is a ReadError with them."""
        parts: list[bytes] = []
        for at in range(0, size, PART):
            wanted, start = min(size - at, PART), (address + at) % (1 << 64)
            request = pb.ReadMemoryRequest(space=space, address=start, thread=thread, lane=lane, size=wanted)
            (answer,) = self._ask(pb.EngineRequest(read_memory=request))
            parts.append(answer.read_memory.data)
            if len(parts[-1]) < wanted:
                data = b"".join(parts)
                reason = answer.read_memory.error or "the engine gives no reason"
                raise ReadError(f"{len(data)} bytes of {size} at {address:#x} were read: {reason}", data)
        return b"".join(parts)

    def read_many(self, addresses: Sequence[int], size: int) -> list[bytes | None]:
        """As many bytes at each of many addresses of the default space; None where not all are there.
        It costs as much as a few calls of read_memory."""
        if not 0 < size <= PART:
            raise ReadError(f"parts of {size} bytes, expected 1 to {PART}")
        most = min(PART // size, MOST_ADDRESSES)
        parts: list[bytes | None] = []
        for at in range(0, len(addresses), most):
            parts += self._read_parts(addresses[at : at + most], size)
        return parts

    def _read_parts(self, addresses: Sequence[int], size: int) -> list[bytes | None]:
        request = pb.ReadMemoryRequest(address=addresses[0], size=size, more=addresses[1:])
        (answer,) = self._ask(pb.EngineRequest(read_memory=request))
        data, missing = answer.read_memory.data, set(answer.read_memory.missing)
        parts = [data[i * size : (i + 1) * size] for i in range(len(addresses))]
        return [p if len(p) == size and i not in missing else None for i, p in enumerate(parts)]

    def read_registers(self, thread: int, numbers: Iterable[int] = ()) -> Registers:
        """Registers of a thread's top frame, as far as the target has them; without numbers all."""
        request = pb.ReadRegistersRequest(thread=thread, numbers=numbers)
        (answer,) = self._ask(pb.EngineRequest(read_registers=request))
        (state,) = split_registers(answer.read_registers.registers, 1)
        return state

    def read_section(self, handle: int, name: str = "") -> bytes:
        """A section of a code object, decompressed and relocated; "" is the whole file."""
        request = pb.ReadSectionRequest(object=handle, name=name.encode("utf-8", "surrogateescape"))
        return b"".join([a.read_section.data for a in self._ask(pb.EngineRequest(read_section=request))])


@dataclass(frozen=True, slots=True)
class FunctionPlace:
    """The function at an address. Without a name there is none."""

    name: str = ""  # linkage name, without a version
    start: int | None = None  # the address of its first instruction


class RuntimeEngine(Engine):
    """The engine of a call of a language runtime."""

    def find_functions(self, addresses: Sequence[int]) -> list[FunctionPlace]:
        """The function at each address, by the symbols and the debug information of the target's modules."""
        places: list[FunctionPlace] = []
        for at in range(0, len(addresses), MOST_ADDRESSES):
            part = addresses[at : at + MOST_ADDRESSES]
            (answer,) = self._ask(pb.EngineRequest(find_functions=pb.FindFunctionsRequest(addresses=part)))
            f = answer.find_functions
            names = split_texts(f.names, len(part))
            check("FindFunctionsAnswer.starts", f.starts, len(part))
            check("FindFunctionsAnswer.has_start", f.has_start, len(part))
            places += [FunctionPlace(n, s if has else None) for n, s, has in zip(names, f.starts, f.has_start)]
        return places


class Connection:
    """The plugin's end of ServeEngine. The newest stream counts."""

    def __init__(self, kind: type[Engine] = Engine) -> None:
        self._stream: Stream | None = None
        self._kind = kind

    def serve(self, answers: Iterable[pb.EngineAnswer], context: grpc.ServicerContext) -> Iterator[pb.EngineRequest]:
        old, stream = self._stream, Stream()
        self._stream = stream
        if old is not None:
            old.end()
        context.add_callback(stream.end)
        yield from stream.serve(answers)

    def engine(self, session: int) -> Engine:
        """The engine of a session; 0 stands for none."""
        return self._kind(self._stream, session)
