# SPDX-License-Identifier: Apache-2.0
"""Puts into a snapshot what its stacks need of the files of code: reduce.py SNAPSHOT STACKS OUT UNWINDD

STACKS is `unwindd stack --format json` of the process, where the files are: it has the functions of all frames. Of each
file there stays an ELF file with the code, call frame information and symbols of these functions, the
places of the runtime's variables, and the pages that UNWINDD says are missing."""

import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

VARIABLES = ("_PyRuntime", "Py_Version", "_Py_NoneStruct", "_PyEval_EvalFrameDefault")
SECTIONS = (".PyRuntime",)
PAGE = 4096


class Elf:
    """A 64-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        head = struct.unpack_from("<16sHHIQQQIHHHHHH", self.data)
        self.machine, self.type = head[2], head[1]
        self.programs = [struct.unpack_from("<IIQQQQQQ", self.data, head[5] + i * head[9]) for i in range(head[10])]
        raw = [struct.unpack_from("<IIQQQQIIQQ", self.data, head[6] + i * head[11]) for i in range(head[12])]
        names = raw[head[13]]
        self.sections = {}
        for s in raw:
            end = self.data.index(b"\0", names[4] + s[0])
            self.sections[self.data[names[4] + s[0]:end].decode()] = s

    def content(self, name):
        s = self.sections.get(name)
        return self.data[s[4]:s[4] + s[5]] if s and s[1] != 8 else b""

    def symbols(self):
        """Yields name, address, size and type of the symbols that are defined."""
        for table, strings in ((".symtab", ".strtab"), (".dynsym", ".dynstr")):
            text = self.content(strings)
            for name, info, _, index, value, size in struct.iter_unpack("<IBBHQQ", self.content(table)):
                if index and value:
                    yield text[name:text.index(b"\0", name)].decode(), value, size, info & 15


def number(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 128:
            return value, at


def records(elf):
    """Yields offset, CIE's offset (None for a CIE) and bytes of the records of .eh_frame."""
    data, at = elf.content(".eh_frame"), 0
    while at + 4 <= len(data):
        size, = struct.unpack_from("<I", data, at)
        if size == 0:
            return
        cie, = struct.unpack_from("<I", data, at + 4)
        yield at, at + 4 - cie if cie else None, data[at:at + 4 + size]
        at += 4 + size


def frames_of(elf, lookups, start):
    """Returns an .eh_frame at an address with the records for addresses, and the ranges of these."""
    base = elf.sections[".eh_frame"][3]
    cies, out, moved, ranges = {}, b"", {}, []
    for at, cie, record in records(elf):
        if cie is None:
            cies[at] = record
            continue
        first, size = struct.unpack_from("<iI", record, 8)
        first += base + at + 8
        if not any(first <= a < first + size for a in lookups):
            continue
        ranges.append((first, size))
        if cie not in moved:
            moved[cie] = len(out)
            out += cies[cie]
        here = len(out)
        out += record[:4] + struct.pack("<I", here + 4 - moved[cie]) + struct.pack("<i", first - (start + here + 8)) + record[12:]
    return out + bytes(4), ranges


def pieces_of(elf, ranges, pages):
    """Returns the parts of the file's segments that ranges of code and pages are in, by address and apart from each other."""
    wanted = sorted([(a, a + n) for a, n in ranges] + [(p, p + PAGE) for p in pages])
    joined = []
    for start, end in wanted:
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    for start, end in joined:
        for kind, flags, offset, address, _, size, _, _ in elf.programs:
            first, last = max(start, address), min(end, address + size)
            if kind == 1 and first < last:
                yield first, elf.data[offset + first - address:offset + last - address], flags & 1


def reduced(path, names, pages):
    """Returns an ELF file with what the addresses of names need, and pages."""
    elf = Elf(path)
    start = (max(p[3] + p[6] for p in elf.programs if p[0] == 1) + PAGE - 1) & -PAGE
    eh_frame, ranges = frames_of(elf, names, start)
    symbols, strings = [bytes(24)], b"\0"
    functions = {(names[a], first, size, 2) for first, size in ranges for a in names if first <= a < first + size}
    for name, value, size, kind in sorted(functions | {s for s in elf.symbols() if s[0] in VARIABLES}):
        symbols.append(struct.pack("<IBBHQQ", len(strings), 0x10 | kind, 0, 1, value, size))
        strings += name.encode() + b"\0"
    sections = [("", 0, 0, 0, b"", 0, 0)]
    for address, data, is_code in pieces_of(elf, ranges, pages):
        sections.append((".text" if is_code else ".rodata", 1, 6 if is_code else 2, address, data, 0, 0))
    sections.append((".eh_frame", 1, 2, start, eh_frame, 0, 0))
    sections.append((".symtab", 2, 0, 0, b"".join(symbols), len(sections) + 1, 24))
    sections.append((".strtab", 3, 0, 0, strings, 0, 0))
    for name in SECTIONS:
        if name in elf.sections:
            s = elf.sections[name]
            sections.append((name, 8, s[2], s[3], s[5], 0, 0))
    return written(elf, sections)


def written(elf, sections):
    """Returns the bytes of an ELF file, with a segment for each section that has an address and bytes."""
    names = b"".join(s[0].encode() + b"\0" for s in sections) + b".shstrtab\0"
    sections = sections + [(".shstrtab", 3, 0, 0, names, 0, 0)]
    programs = sum(1 for s in sections if s[1] == 1)
    at = 64 + 56 * programs
    body = table = segments = b""
    for name, kind, flags, address, content, link, entry in sections:
        length = content if kind == 8 else len(content)
        body += bytes(-len(body) % 8)
        offset = at + len(body)
        place = names.index(name.encode() + b"\0") if name else 0
        table += struct.pack("<IIQQQQIIQQ", place, kind, flags, address, offset, length, link, 1 if kind == 2 else 0, 8 if kind == 1 else 4 if kind else 0, entry)
        if kind == 1:
            segments += struct.pack("<IIQQQQQQ", 1, 5 if flags & 4 else 4, offset, address, address, length, length, 1)
        if kind != 8:
            body += content
    body += bytes(-len(body) % 8)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), elf.type, elf.machine, 1, 0, 64, at + len(body), 0, 64, 56, programs, 64,
                       len(sections), len(sections) - 1)
    return head + segments + body + table


def pages_of(snapshot, problems):
    """Returns the pages of files that problems name the addresses of, by the number of the module."""
    pages = {}
    for address in re.findall(r"address is not in the target: (0x[0-9a-f]+)", problems):
        address = int(address, 16)
        for n, module in enumerate(snapshot["modules"]):
            for s in module["segments"]:
                start = int(s["start"], 16)
                if start <= address < start + int(s["size"], 16):
                    pages.setdefault(n, set()).add((address - start + int(s["address"], 16)) & -PAGE)
    return pages


def main(snapshot_path, stacks_path, out_path, unwindd):
    archive = zipfile.ZipFile(snapshot_path)
    snapshot = json.loads(archive.read("snapshot.json"))
    with open(stacks_path) as f:
        stacks = json.load(f)
    files = {name: archive.read(name) for name in archive.namelist() if name != "snapshot.json"}
    paths = {m["id"]: m for m in stacks["modules"]}
    lookups = {}
    for thread in stacks["threads"]:
        for frame in thread["frames"]:
            if "module" not in frame or "managed" in frame or frame["inlined"]:
                continue
            path = paths[frame["module"]]["path"]
            address = int(frame["module_offset"], 16) - (frame["found_by"] != "context")
            lookups.setdefault(path, {})[address] = frame.get("linkage_name") or frame.get("function", "")
    own = [n for n, m in enumerate(snapshot["modules"]) if "file" not in m and m["path"] in lookups]
    pages, before = {}, None
    while pages != before:
        before = {n: set(p) for n, p in pages.items()}
        for n in own:
            module = snapshot["modules"][n]
            name = f"modules/reduced{n}.elf"
            files[name] = reduced(module["path"], lookups[module["path"]], pages.get(n, ()))
            module["file"] = name
            module.pop("build_id", None)  # its debug file is not looked for
        with zipfile.ZipFile(out_path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in files.items():
                out.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            out.writestr(zipfile.ZipInfo("snapshot.json"), json.dumps(snapshot, indent=1), zipfile.ZIP_DEFLATED)
        with tempfile.TemporaryDirectory() as nothing:
            told = subprocess.run([unwindd, "stack", "--sysroot", nothing, "--debuginfod", "", out_path], capture_output=True, text=True, check=True)
        for n, more in pages_of(snapshot, told.stdout + told.stderr).items():
            if n in own:
                pages.setdefault(n, set()).update(more)


main(*sys.argv[1:])
