#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes toy.snapshot: a wave of four lanes in inner, called by outer, called by kernel.

Only lanes 0 and 2 execute: so says the word in memory at the address in register lanes.
"""

import json
import struct
import sys
import zipfile

BASE, STACK, WORD = 0x10000, 0x8000, 0x7000
FUNCTIONS = [(b"kernel", 0x0, 0x40, 4), (b"outer", 0x40, 0x80, 20), (b"inner", 0x80, 0xc0, 12)]
CALL, OTHER = b"\xca\0\0\0", b"\x01\0\0\0"

code = b"".join(struct.pack("<16sIII", *f) for f in FUNCTIONS)
program = b"TOYCODE\0" + struct.pack("<I", len(FUNCTIONS)) + code
text = bytearray(OTHER * (0xc0 // 4))
text[0x20:0x24] = text[0x60:0x64] = CALL
inner, outer = 12, 20  # bytes of the frames, return address last
stack = bytearray(64)
struct.pack_into("<I", stack, inner - 4, BASE + 0x64)
struct.pack_into("<I", stack, inner + outer - 4, BASE + 0x24)

with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("objects/program.toy", program)
    z.writestr("memory/text.bin", bytes(text))
    z.writestr("memory/stack.bin", bytes(stack))
    z.writestr("memory/lanes.bin", b"\x05\0\0\0")
    z.writestr("snapshot.json", json.dumps({
        "format_version": 1,
        "modules": [{"path": "/program.toy", "arch": "toy", "file": "objects/program.toy",
                     "segments": [{"address": "0x0", "size": "0xc0", "start": hex(BASE)}]}],
        "threads": [{"id": "wave-1", "arch": "toy", "lanes": 4, "crashed": True,
                     "registers": {"pc": hex(BASE + 0x90), "sp": hex(STACK), "lanes": hex(WORD)}}],
        "memory": [{"file": "memory/text.bin", "address": hex(BASE)},
                   {"file": "memory/stack.bin", "address": hex(STACK)},
                   {"file": "memory/lanes.bin", "address": hex(WORD)}]}))
