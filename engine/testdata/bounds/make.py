# python3 make.py writes the snapshots beside it: 3000 threads with one stack of
# 128 KiB. In deep.snapshot each of its words is the return address of a frame, in
# vain.snapshot there is no call frame information and no return address.
import json, os, struct, zipfile

TEXT, STACK, THREADS = 0x401000, 0x7ff000, 3000


def frames():
    cie = b"\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10" + b"\x0c\x07\x08\x90\x01"  # CFA rsp+8, rip at CFA-8
    cie += b"\0" * (-(len(cie) + 4) % 8)
    fde = struct.pack("<IQQ", 0, TEXT, 0x1000)
    fde += b"\0" * (-(len(fde) + 4) % 8)
    return b"".join(struct.pack("<I", len(e)) + e for e in (cie, fde))


def elf(debug_frame):
    names = b"\0.text\0.debug_frame\0.shstrtab\0"
    sections = [(1, 1, 6, TEXT, b"\x90" * 0x1000), (7, 1, 0, 0, debug_frame), (20, 3, 0, 0, names)]
    data, headers = b"\0" * 0x1000, b"\0" * 64
    for name, kind, flags, address, contents in sections:
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, address, len(data), len(contents), 0, 0, 1, 0)
        data += contents + b"\0" * (-len(contents) % 8)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, len(data), 0, 64, 56, 1, 64, 4, 3)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, TEXT, TEXT, 0x1000, 0x1000, 0x1000)
    return head + data[len(head):] + headers


def snapshot(name, debug_frame, word):
    here = os.path.dirname(os.path.abspath(__file__))
    segments = [{"address": hex(TEXT), "size": "0x1000", "start": hex(TEXT)}]
    document = {
        "format_version": 1,
        "modules": [{"path": "/x/deep.elf", "arch": "x86_64", "file": "modules/0.elf", "segments": segments}],
        "threads": [{"id": str(i + 1), "arch": "x86_64", "registers": {"rip": "0x401810", "rsp": hex(STACK)}} for i in range(THREADS)],
        "memory": [{"address": hex(STACK), "file": "memory/0.bin"}],
    }
    with zipfile.ZipFile(os.path.join(here, name), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("modules/0.elf", elf(debug_frame))
        z.writestr("memory/0.bin", struct.pack("<Q", word) * (1 << 14))
        z.writestr("snapshot.json", json.dumps(document))


snapshot("deep.snapshot", frames(), 0x401200)
snapshot("vain.snapshot", b"", 0x401200)
