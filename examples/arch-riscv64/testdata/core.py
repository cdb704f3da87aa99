# SPDX-License-Identifier: Apache-2.0
# core.py PROGRAM: makes a core of what take.sh wrote down, as Linux would write it.
# PROGRAM is linked statically, at 0x10000.
import re, struct, sys

PT_LOAD, PT_NOTE = 1, 4
NT_PRSTATUS, NT_AUXV = 1, 6
AT_NULL, AT_PHDR, AT_PHENT, AT_PHNUM, AT_ENTRY = 0, 3, 4, 5, 9

name = sys.argv[1]
program = open(name, "rb").read()
stack = open(name + ".stack", "rb").read()
numbers = re.findall(r"^[a-z]+\d* +(0x[0-9a-f]+)", open(name + ".txt").read(), re.M)
*x, pc = (int(n, 16) for n in numbers)  # x1 to x31, as gdb orders them

signal, thread = 11, 1
status = struct.pack("<12xh18xi76x", signal, thread) + struct.pack("<32Q8x", pc, *x)
entry, headers, count = struct.unpack("<24xQQ16xH", program[:58])
vector = struct.pack("<10Q", AT_PHDR, 0x10000 + headers, AT_PHENT, 56, AT_PHNUM, count, AT_ENTRY, entry, AT_NULL, 0)
notes = b""
for kind, data in [(NT_PRSTATUS, status), (NT_AUXV, vector)]:
    notes += struct.pack("<III8s", 5, len(data), kind, b"CORE") + data

parts = [(PT_NOTE, 4, 0, notes), (PT_LOAD, 5, 0x10000, program), (PT_LOAD, 6, x[1], stack)]
with open(name + ".core", "wb") as f:
    f.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, 243, 1, 0, 64, 0, 0, 64, 56, len(parts), 0, 0, 0))
    at = 64 + 56 * len(parts)
    for kind, flags, address, data in parts:
        f.write(struct.pack("<IIQQQQQQ", kind, flags, at, address, 0, len(data), len(data), 4))
        at += len(data)
    for *_, data in parts:
        f.write(data)
