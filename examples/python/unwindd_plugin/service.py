# SPDX-License-Identifier: Apache-2.0
"""The services of plugins over gRPC, and the process that serves one."""

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, Protocol

import grpc

from . import arch_pb2 as pb
from .architecture import Architecture
from .engine import Connection, Engine, RuntimeEngine
from .errors import fail
from .runtime import Runtime
from .runtimewire import served as runtime_calls
from .wire import Call, served

PROTOCOL = 2
LONGEST_REQUEST = 1 << 30  # bytes
CONNECT_TIMEOUT = 60.0  # seconds


class Service(Protocol):
    """A service that unwindd knows."""

    name: str  # with that of its package
    prefix: str  # of the names of such plugins' executables
    kind: str  # in a setting for debuggers

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        """The handlers of the calls that are served, by their names."""


class _PluginService:
    """A service that a class of the plugin's answers, with the stream to the engine."""

    name = prefix = kind = ""
    engine: type[Engine] = Engine

    def __init__(self, plugin: Any, calls: Mapping[str, Call]) -> None:
        self._plugin = plugin
        self._calls = calls
        self._connection = Connection(self.engine)

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        handlers = {name: self._handler(name, call) for name, call in self._calls.items()}
        handlers["ServeEngine"] = grpc.stream_stream_rpc_method_handler(
            self._connection.serve, pb.EngineAnswer.FromString, _bytes
        )
        return handlers

    def _handler(self, name: str, call: Call) -> grpc.RpcMethodHandler:
        def parts(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            engine = self._connection.engine(getattr(request, "session", 0))
            try:
                yield from call.make(self._plugin, engine, request)
            except Exception as error:  # of the plugin: its process goes on
                fail(context, name, error)

        def one(request: Any, context: grpc.ServicerContext) -> Any:
            return next(parts(request, context))

        if call.in_parts:
            return grpc.unary_stream_rpc_method_handler(parts, call.request.FromString, _bytes)
        return grpc.unary_unary_rpc_method_handler(one, call.request.FromString, _bytes)


class ArchitectureService(_PluginService):
    """The service of an architecture."""

    name = "unwindd.arch.v2.Architecture"
    prefix = "unwindd-arch-"

    def __init__(self, arch: Architecture) -> None:
        super().__init__(arch, served(arch))


class RuntimeService(_PluginService):
    """The service of a language runtime."""

    name = "unwindd.arch.v2.Runtime"
    prefix = "unwindd-runtime-"
    kind = "runtime"
    engine = RuntimeEngine

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime, runtime_calls(runtime))


def _bytes(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


class _Lifeline:
    """The stream that is opened with unwindd's connection: the process ends when it does."""

    name = "plugin.GRPCStdio"
    prefix = kind = ""

    def __init__(self) -> None:
        self._late = threading.Timer(CONNECT_TIMEOUT, os._exit, (1,))
        self._late.daemon = True
        self._late.start()

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        return {"StreamStdio": grpc.unary_stream_rpc_method_handler(self._wait)}

    def _wait(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        self._late.cancel()
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()
        os._exit(0)
        yield b""  # never: a stream is a generator


def serve(plugin: Architecture | Runtime | Service) -> None:
    """The main function of a plugin: it answers unwindd, which started the process, until that is gone.
    Where the variable UNWINDD_PLUGIN_DEBUG is set and unwindd did not start it, it answers any, and prints
    the setting by which unwindd finds it."""
    service = _service(plugin)
    if "UNWINDD_ARCHITECTURE_PLUGIN" in os.environ:
        _serve(service, os.environ)
    elif os.environ.get("UNWINDD_PLUGIN_DEBUG"):
        _serve_debug(service)
    else:
        raise SystemExit(
            f"{Path(sys.argv[0]).name}: this is a plugin of unwindd (protocol version {PROTOCOL}); unwindd starts it when a target needs it.\n"
            "Put it into a folder that --plugin-dir or UNWINDD_PLUGIN_DIR names. To start it in a debugger, set UNWINDD_PLUGIN_DEBUG=1."
        )


def _service(plugin: Architecture | Runtime | Service) -> Service:
    if isinstance(plugin, Architecture):
        return ArchitectureService(plugin)
    return RuntimeService(plugin) if isinstance(plugin, Runtime) else plugin


def _serve(service: Service, environment: "os._Environ[str]") -> None:
    folder = environment.get("PLUGIN_UNIX_SOCKET_DIR")
    if not folder:
        raise SystemExit("PLUGIN_UNIX_SOCKET_DIR is not set, expected the folder to listen in")
    out, sys.stdout = sys.stdout, sys.stderr  # unwindd reads one line of the other
    address = _listen((service, _Lifeline()), folder, _credentials(environment))
    print(f"1|{PROTOCOL}|unix|{address.path}|grpc", file=out, flush=True)
    address.server.wait_for_termination()


def _serve_debug(service: Service) -> None:
    with tempfile.TemporaryDirectory(prefix="unwindd-debug") as folder:
        address = _listen((service,), folder, None)
        name = Path(sys.argv[0]).name.removeprefix(service.prefix)
        setting = {
            "Protocol": "grpc",
            "ProtocolVersion": PROTOCOL,
            "Pid": os.getpid(),
            "Addr": {"Network": "unix", "String": address.path},
        }
        if service.kind:
            setting["Kind"] = service.kind
        shown = json.dumps({name: setting}).replace("'", "\\u0027")
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        print(f"UNWINDD_REATTACH_PLUGINS='{shown}'", flush=True)
        ended.wait()
        address.server.stop(None)


class _Listening:
    def __init__(self, server: grpc.Server, path: str) -> None:
        self.server = server
        self.path = path


def _listen(services: tuple[Service, ...], folder: str, credentials: grpc.ServerCredentials | None) -> _Listening:
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[("grpc.max_receive_message_length", LONGEST_REQUEST), ("grpc.max_send_message_length", -1)],
    )
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(s.name, s.handlers()) for s in services]
    )
    path = os.path.join(folder, f"plugin{os.getpid()}")
    if credentials is None:
        server.add_insecure_port("unix:" + path)
    else:
        server.add_secure_port("unix:" + path, credentials)
    server.start()
    return _Listening(server, path)


def _credentials(environment: "os._Environ[str]") -> grpc.ServerCredentials | None:
    """TLS with a certificate of this start, for nobody but who has the engine's; None where unwindd asks for none."""
    identity, engine = environment.get("UNWINDD_PLUGIN_IDENTITY"), environment.get("PLUGIN_CLIENT_CERT")
    if not identity and not engine:
        return None
    if not identity or not engine:
        raise SystemExit("UNWINDD_PLUGIN_IDENTITY and PLUGIN_CLIENT_CERT: one of them is not set, expected both or none")
    pem = identity.encode()
    return grpc.ssl_server_credentials([(pem, pem)], engine.encode(), True)
