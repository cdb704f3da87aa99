#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes server.dmp, a minidump of the crash of server.core, with Breakpad's core2md, which
# CORE2MD names. core2md wants files of /proc beside the core: they are made of its notes and
# program headers. The executable has to be where the process had it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work" /srv/example' EXIT
mkdir -p /srv/example
cp "$here/server" /srv/example
python3 - "$here/server.core" "$work" <<'EOF'
import struct, sys

core, folder = open(sys.argv[1], "rb").read(), sys.argv[2]
offset, = struct.unpack_from("<Q", core, 32)
size, count = struct.unpack_from("<HH", core, 54)
notes, loads, auxv, files, pid = b"", [], b"", [], 0
for i in range(count):
    kind, flags, at, address, _, length, memory, _ = struct.unpack_from("<IIQQQQQQ", core, offset + i * size)
    if kind == 4:
        notes = core[at:at + length]
    elif kind == 1:
        loads.append((address, address + memory, flags))
while len(notes) >= 12:
    name, length, kind = struct.unpack_from("<III", notes)
    begin = 12 + (name + 3) // 4 * 4
    data, notes = notes[begin:begin + length], notes[begin + (length + 3) // 4 * 4:]
    if kind == 6:  # NT_AUXV
        auxv = data
    elif kind == 1 and pid == 0:  # NT_PRSTATUS
        pid, = struct.unpack_from("<i", data, 32)
    elif kind == 0x46494c45:  # NT_FILE
        number, page = struct.unpack_from("<QQ", data)
        names = data[16 + 24 * number:].split(b"\0")
        files = [struct.unpack_from("<QQQ", data, 16 + 24 * j) + (names[j].decode(),) for j in range(number)]
vdso = {struct.unpack_from("<QQ", auxv, j)[1] for j in range(0, len(auxv), 16) if struct.unpack_from("<Q", auxv, j)[0] == 33}
lines = []
for start, end, flags in loads:
    path, skip = next(((p, at * page + start - a) for a, b, at, p in files if a <= start < b), ("[vdso]" if start in vdso else "", 0))
    rights = "".join(c if flags & bit else "-" for c, bit in (("r", 4), ("w", 2), ("x", 1))) + "p"
    lines.append(f"{start:08x}-{end:08x} {rights} {skip:08x} 00:00 {1 if path.startswith('/') else 0} {path}\n")
for name, text in {"auxv": auxv, "maps": "".join(lines).encode(), "cmdline": b"./server\0", "environ": b"",
                   "status": f"Name:\tserver\nPid:\t{pid}\n".encode()}.items():
    open(f"{folder}/{name}", "wb").write(text)
EOF
rm -f "$here/server.dmp"
"$CORE2MD" "$here/server.core" "$work" "$here/server.dmp"
chmod 644 "$here/server.dmp"
