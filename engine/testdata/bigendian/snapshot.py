# Writes a snapshot of a program without a C library, in gdb.
import json, os, zipfile
import gdb

name = os.environ["NAME"]
frame = gdb.newest_frame()
names = {"s390x": ["r%d" % i for i in range(16)] + ["f%d" % i for i in range(16)] + ["pswm", "pswa"]}.get(
    name, ["r%d" % i for i in range(32)] + ["f%d" % i for i in range(32)] + ["lr", "ctr", "pc"])
order = "little" if name.endswith("le") else "big"
registers = {}
for r in names:
    value = frame.read_register(r)
    raw = bytes(gdb.parse_and_eval("(unsigned char[8])$%s" % r)[i] for i in range(8)) if r[0] == "f" else None
    n = int.from_bytes(raw, order) if raw else int(value) & (1 << 64) - 1
    registers["pc" if r == "pswa" else r] = hex(n)
sp = int(frame.read_register("r15" if name == "s390x" else "r1")) & (1 << 64) - 1
elf = open("values", "rb").read()
segments = []
size, count = (int.from_bytes(elf[at:at + 2], order) for at in (54, 56))
offset = int.from_bytes(elf[32:40], order)
for i in range(count):
    h = elf[offset + i * size:][:size]
    if int.from_bytes(h[:4], order) == 1:
        address, _, _, memory = (int.from_bytes(h[at:at + 8], order) for at in (16, 24, 32, 40))
        segments.append({"address": hex(address), "size": hex(memory), "start": hex(address)})
state = {
    "format_version": 1,
    "modules": [{"path": "values", "arch": name, "file": "modules/0.elf", "segments": segments}],
    "threads": [{"id": "1", "arch": name, "crashed": True, "signal": 11, "registers": registers}],
    "memory": [{"file": "memory/0.bin", "address": hex(sp)}],
}
with zipfile.ZipFile(name + ".snapshot", "w", zipfile.ZIP_DEFLATED) as z:
    for path, data in (("modules/0.elf", elf), ("memory/0.bin", gdb.selected_inferior().read_memory(sp, 0x400).tobytes()),
                       ("snapshot.json", json.dumps(state, indent=1).encode())):
        info = zipfile.ZipInfo(path)
        info.compress_type = zipfile.ZIP_DEFLATED
        z.writestr(info, data)
