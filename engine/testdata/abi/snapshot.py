# SPDX-License-Identifier: Apache-2.0
# Writes a snapshot of a program without a C library, in gdb: OUT is its file, ARCH its
# architecture's name. The code that a signal handler returns to is a module of its own.
import json, os, zipfile
import gdb

PAGE = 4096
arch = os.environ["ARCH"]
order = "little" if arch.endswith("le") else "big"
frame, inferior = gdb.newest_frame(), gdb.selected_inferior()
words = {"s390x": ["pswm", "pswa"] + ["r%d" % i for i in range(16)]}.get(arch, ["r%d" % i for i in range(32)] + ["lr", "ctr", "pc"])
floats = ["f%d" % i for i in range(16 if arch == "s390x" else 32)]
trampoline = {"s390x": "0aad", "ppc64": "380000ac44000002", "ppc64le": "ac00003802000044"}[arch]


def read(address, size):
    try:
        return inferior.read_memory(address, size).tobytes()
    except (gdb.error, OverflowError):
        return b""


registers = {}
for name in words:
    registers["pc" if name == "pswa" else name] = hex(int(frame.read_register(name)) & (1 << 64) - 1)
for name in floats:
    registers[name] = frame.read_register(name).format_string(format="x")

elf = open("subject", "rb").read()
segments = []
size, count = (int.from_bytes(elf[at:at + 2], order) for at in (54, 56))
offset = int.from_bytes(elf[32:40], order)
for i in range(count):
    header = elf[offset + i * size:][:size]
    if int.from_bytes(header[:4], order) == 1:  # PT_LOAD
        address, _, _, memory = (int.from_bytes(header[at:at + 8], order) for at in (16, 24, 32, 40))
        segments.append({"address": hex(address), "size": hex(memory), "start": hex(address)})
modules = [{"path": "subject", "arch": arch, "file": "modules/0.elf", "segments": segments}]
files = {"modules/0.elf": elf}

sp = int(registers["r15" if arch == "s390x" else "r1"], 16) - 512
stack = b""
while len(stack) < 6 * PAGE:
    piece = read(sp + len(stack), -(sp + len(stack)) % PAGE or PAGE)
    if not piece:
        break
    stack += piece
memory = [{"file": "memory/0.bin", "address": hex(sp)}]
files["memory/0.bin"] = stack
if os.environ["MODE"] == "handler":
    for at in range(-sp % 8, len(stack) - 8, 8):
        target = int.from_bytes(stack[at:at + 8], order)
        if target >= 1 << 32 and read(target, len(trampoline) // 2).hex() == trampoline:
            page = target & -PAGE
            modules.append({"arch": arch, "segments": [{"address": hex(page), "size": hex(PAGE), "start": hex(page)}]})
            memory.append({"file": "memory/1.bin", "address": hex(page)})
            files["memory/1.bin"] = read(page, PAGE)
            break
state = {"format_version": 1, "modules": modules, "memory": memory,
         "threads": [{"id": "1", "arch": arch, "crashed": True, "signal": 11, "registers": registers}]}
files["snapshot.json"] = json.dumps(state, indent=1).encode()
with zipfile.ZipFile(os.environ["OUT"], "w", zipfile.ZIP_DEFLATED) as z:
    for path in sorted(files):
        z.writestr(zipfile.ZipInfo(path), files[path], zipfile.ZIP_DEFLATED)
