# SPDX-License-Identifier: Apache-2.0
"""What a plugin asks of the engine: the stream ServeEngine, which the engine opens."""

import itertools
import queue
import threading

import grpc

import arch_pb2 as pb


class Engine:
    def __init__(self):
        self.requests = None  # to be sent on the newest stream; None at its end
        self.waiting = {}  # the parts of the answer to each request that is under way
        self.ids = itertools.count(1)

    def serve(self, answers, context):
        """The stream: the first message says that the plugin is ready to ask."""
        requests = self.requests = queue.Queue()
        context.add_callback(lambda: requests.put(None))
        threading.Thread(target=self.receive, args=(answers,), daemon=True).start()
        yield pb.EngineRequest()
        yield from iter(requests.get, None)

    def receive(self, answers):
        try:
            for answer in answers:
                if answer.id in self.waiting:
                    self.waiting[answer.id].put(answer)
        except grpc.RpcError:
            pass  # the stream ended
        for parts in list(self.waiting.values()):
            parts.put(pb.EngineAnswer(error=pb.EngineError(message="the engine is gone")))

    def ask(self, **request):
        """The parts of the answer to a request."""
        message = pb.EngineRequest(id=next(self.ids), **request)
        parts = self.waiting[message.id] = queue.Queue()
        self.requests.put(message)
        try:
            while True:
                answer = parts.get()
                if answer.HasField("error"):
                    raise OSError(answer.error.message)
                yield answer
                if not answer.partial:
                    return
        finally:
            del self.waiting[message.id]

    def read_section(self, session, handle, name):
        request = pb.ReadSectionRequest(object=handle, name=name)
        return b"".join(a.read_section.data for a in self.ask(session=session, read_section=request))

    def read_memory(self, session, thread, address, size):
        """Bytes of the target's memory, and why there are fewer than asked for."""
        request = pb.ReadMemoryRequest(address=address, thread=thread, size=size)
        (answer,) = self.ask(session=session, read_memory=request)
        return answer.read_memory.data, answer.read_memory.error
