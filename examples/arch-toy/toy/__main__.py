# SPDX-License-Identifier: Apache-2.0
"""An architecture plugin for a machine that does not exist, in Python.

The toy has 32-bit registers and waves of four lanes. The file of its programs says how
much of the stack each function takes, and a word in memory says which lanes execute.
"""

import os
import struct
import threading
from concurrent import futures

import grpc

import arch_pb2 as pb
from engine import Engine

LANE_WORD, SP, PC = range(3)  # registers
LANES = 4
MAGIC = b"TOYCODE\0"
FUNCTION = struct.Struct("<16sIII")  # name, start, end, bytes of its frame


def blobs(items):
    return pb.Blobs(lengths=[len(i) for i in items], data=b"".join(items))


def split(column):
    at, items = 0, []
    for length in column.lengths:
        items.append(column.data[at:at + length])
        at += length
    return items


def rows(functions):
    """The row of each function: where its caller's registers are."""
    n = len(functions)
    return pb.Rows(
        starts=[f[1] for f in functions],
        ends=[f[2] for f in functions],
        cfa_kinds=[pb.CFA_REGISTER] * n,
        cfa_registers=[SP] * n,
        cfa_offsets=[f[3] for f in functions],
        cfa_spaces=[0] * n,
        cfa_expressions=blobs([b""] * n),
        rule_counts=[1] * n,
        rules=pb.Rules(columns=[PC] * n, kinds=[pb.RULE_OFFSET] * n, registers=[0] * n, offsets=[-4] * n,
                       expressions=blobs([b""] * n)),
        call_site_counts=[0] * n,
        call_sites=pb.Rules(expressions=blobs([])),
        return_addresses=[PC] * n,
        signal_frames=[False] * n,
        window_saves=[False] * n,
    )


def describe(_request, _context):
    entry = rows([(b"", 0, 0, 4)])  # a call pushes the return address
    return pb.Description(
        name="toy", version="1.0", byte_order=pb.ORDER_LITTLE_ENDIAN, address_bits=32,
        recognises=[pb.Recogniser(magic=MAGIC, os_abi=-1)],
        registers=[
            pb.RegisterRange(first=LANE_WORD, count=2, names=["lanes", "sp"], bits=32),
            pb.RegisterRange(first=PC, count=1, names=["pc"], bits=32, **{"class": pb.CLASS_PROGRAM_COUNTER}),
        ],
        pc=PC, sp=SP, fp=0xffffffff, return_address=PC, entry=entry,
        default_rules=pb.Rules(columns=[LANE_WORD, SP], kinds=[pb.RULE_SAME_VALUE, pb.RULE_VAL_OFFSET], registers=[0, 0],
                               offsets=[0, 0], expressions=blobs([b"", b""])),
        call_distance=1, max_instruction=4, stack_align=4,
    )


class Architecture:
    """The calls that ask the engine. The others need no state."""

    def __init__(self):
        self.engine = Engine()

    def open_object(self, request, context):
        data = self.engine.read_section(request.session, request.object, b"")
        count = struct.unpack_from("<I", data, len(MAGIC))[0]
        if len(data) != len(MAGIC) + 4 + count * FUNCTION.size:
            context.abort(grpc.StatusCode.UNKNOWN, f"{len(data)} bytes of {count} functions")
        functions = sorted(FUNCTION.iter_unpack(data[len(MAGIC) + 4:]), key=lambda f: f[1])
        names = [f[0].rstrip(b"\0") for f in functions]
        yield pb.OpenObjectPart(answer=pb.OpenObjectAnswer(
            tables=pb.Tables(priorities=[pb.BELOW_CFI], reasons=blobs([b""]), sections=[0]),
            functions=pb.Functions(
                names=blobs(names), starts=[f[1] for f in functions], ends=[f[2] for f in functions],
                lanes=[LANES] * count, sections=[0] * count, default_rule_counts=[0] * count,
                kinds=[pb.FUNCTION_KERNEL if n == b"kernel" else pb.FUNCTION_ORDINARY for n in names])))
        yield pb.OpenObjectPart(rows=pb.TableRows(table=0, rows=rows(functions)))

    def bind_threads(self, request, _context):
        pcs, masks = [], []
        numbers, values = iter(request.registers.numbers), iter(split(request.registers))
        for thread, count in zip(request.threads, request.registers.counts):
            state = {next(numbers): int.from_bytes(next(values), "little") for _ in range(count)}
            pcs.append(state.get(PC, 0))
            word, _ = self.engine.read_memory(request.session, thread, state.get(LANE_WORD, 0), 1)
            masks.append(bytes([word[0] & 0x0f]) if word else b"")
        n = len(request.threads)
        return pb.BindThreadsAnswer(
            pcs=pcs, lanes=[LANES] * n, active_lanes=blobs(masks), active_unknown=[not m for m in masks],
            width_counts=[0] * n, return_address_masks=[0] * n, map_counts=[0] * n, problems=blobs([b""] * n),
            agents=blobs([b""] * n), groups=blobs([b""] * n), waves=blobs([b""] * n))


def classify_return(request, _context):
    n = len(request.pcs)  # every instruction has four bytes, and 0xCA begins a call
    after = [len(c) >= 4 and c[-4] == 0xCA for c in split(request.code)]
    return pb.ClassifyReturnAnswer(
        classes=[pb.RETURN_AFTER_INDIRECT_CALL if a else pb.RETURN_NOT_AFTER_CALL for a in after], targets=[0] * n)


def frame_rules(request, _context):
    n = len(request.pcs)  # the file has a row for every function
    return pb.FrameRulesAnswer(row_counts=[0] * n, rows=rows([]), reasons=blobs([b"its file has no row for it"] * n),
                               trampolines=[False] * n, complete=[False] * n, gap_counts=[0] * n,
                               gaps=pb.RowGaps(reasons=blobs([])), uncalled=[False] * n)


def handlers(arch):
    def call(method, request):
        return grpc.unary_unary_rpc_method_handler(method, request.FromString, lambda m: m.SerializeToString())

    def parts(method, request):
        return grpc.unary_stream_rpc_method_handler(method, request.FromString, lambda m: m.SerializeToString())

    return grpc.method_handlers_generic_handler("unwindd.arch.v2.Architecture", {
        "Describe": call(describe, pb.DescribeRequest),
        "OpenObject": parts(arch.open_object, pb.OpenObjectRequest),
        "BindThreads": call(arch.bind_threads, pb.BindThreadsRequest),
        "FrameRules": call(frame_rules, pb.FrameRulesRequest),
        "ClassifyReturn": call(classify_return, pb.ClassifyReturnRequest),
        "ServeEngine": grpc.stream_stream_rpc_method_handler(
            arch.engine.serve, pb.EngineAnswer.FromString, lambda m: m.SerializeToString()),
    })


def lifeline():
    """go-plugin opens this stream with the connection: the process ends when it does."""
    def wait(_request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()
        os._exit(0)
        yield b""  # never: a stream is a generator

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCStdio", {"StreamStdio": grpc.unary_stream_rpc_method_handler(wait)})


def main():
    if "UNWINDD_ARCHITECTURE_PLUGIN" not in os.environ:
        raise SystemExit("unwindd starts this when a target needs it: put it into a folder that --plugin-dir names")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=[("grpc.max_receive_message_length", 1 << 30)])
    server.add_generic_rpc_handlers((handlers(Architecture()), lifeline()))
    path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "toy")
    identity, engine = os.environ.get("UNWINDD_PLUGIN_IDENTITY"), os.environ.get("PLUGIN_CLIENT_CERT")
    if identity and engine:  # TLS on top: a certificate with its key for this process, and the engine's
        pem = identity.encode()
        server.add_secure_port("unix:" + path, grpc.ssl_server_credentials([(pem, pem)], engine.encode(), True))
    else:
        server.add_insecure_port("unix:" + path)
    server.start()
    print(f"1|2|unix|{path}|grpc", flush=True)  # the handshake: protocol version 2
    server.wait_for_termination()


main()
