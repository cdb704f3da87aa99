# SPDX-License-Identifier: Apache-2.0
"""A gdb command that writes a snapshot of what gdb debugs.

    (gdb) source unwindd_snapshot.py
    (gdb) unwindd-snapshot crash.snapshot

It runs inside gdb 12 or later and rocgdb, on a process, a core or a remote
target, and needs nothing but Python's standard library. What it cannot read it
leaves out, and says so.
"""

import json
import os
import re
import struct
import zipfile
from collections import Counter, OrderedDict

import gdb

PAGE = 4096
# Bytes of a frame, of a thread's stack, and of a wave's private memory.
MOST_OF_FRAME = 256 * 1024
SIGNAL_FRAME = 32 << 10
MOST_OF_STACK = 1024 * 1024
MOST_OF_WAVE = 64 * 1024
MOST_FRAMES = 4096
# Bytes below the stack pointer where a leaf function may have data.
BELOW = 256
# A code object that is read from memory.
MOST_OF_IMAGE = 64 * 1024 * 1024

ARCHITECTURES = {
    "i386:x86-64": "x86_64",
    "riscv:rv64": "riscv64",
    "riscv:rv32": "riscv32",
    "s390:64-bit": "s390x",
}
MACHINES = {3: "i386", 22: "s390x", 62: "x86_64", 183: "aarch64", 224: "amdgpu", 243: "riscv64"}
POWER = 21  # of both byte orders

# gdb's names of registers that are called otherwise in a snapshot.
X86_NAMES = {"eflags": "rflags", "fctrl": "fcw", "fstat": "fsw", "fs_base": "fs.base", "gs_base": "gs.base"}
RISCV_NAMES = {"fp": "s0"}
S390X_NAMES = {"pswa": "pc"}
AARCH64_NAMES = {"tpidr": "tpidr_el0", "TPIDR_EL0": "tpidr_el0", "tpidr2": "tpidr2_el0"}
# Registers of AArch64 that a process has: qemu adds those of the machine, and describes
# predicates as wider than they are.
AARCH64_KEPT = re.compile(r"([xvz]\d+|sp|pc|cpsr|fpsr|fpcr|vg|pauth_[cd]mask|tpidr2?|TPIDR_EL0)$")
# Registers of RISC-V that are those of the machine, or pieces of fcsr.
RISCV_LEFT_OUT = re.compile(r"(fflags|frm|cycle|time|instret|priv|csr\d+)$")
# Registers of POWER that are others in pieces or together.
POWER_KEPT = re.compile(r"(r\d+|f([12]?\d|3[01])|vr\d+|pc|lr|ctr|cr|xer|msr|fpscr)$")
# Registers of s390x that are so, and those that other tools call otherwise.
S390X_LEFT_OUT = re.compile(r"(pc|cc|[vr]\d+[lh]|v([0-9]|1[0-5])|.*orig_r2|last_break|system_call|t\w+|gs\w+|bc_\w+)$")
# Registers of x86-64 that are no value of their own, or that nobody unwinds by.
X86_LEFT_OUT = re.compile(r"(ftag|fi(seg|off)|fo(seg|off)|fop|[xyz]mm\d+|bnd.*|pkru|orig_rax|ymm\d+h|st\d)$")
X86_MORE = ["fs_base", "gs_base"]

# "AMDGPU Wave AGENT:QUEUE:DISPATCH:WAVE (X,Y,Z)/NUMBER", with ? for what is not known.
WAVE = re.compile(r"AMDGPU Wave ([\d?]+):([\d?]+):([\d?]+):([\d?]+) \(([\d?]+),([\d?]+),([\d?]+)\)/([\d?]+)")
DISPATCH = re.compile(r"AMDGPU Dispatch ([\d?]+):([\d?]+):([\d?]+) ")


class Snapshot:
    """What is collected of the selected inferior."""

    def __init__(self, other=None):
        self.inferior = gdb.selected_inferior()
        self.other = other  # the architecture of what the tables above lack
        self.problems = []
        self.pages = {}  # address -> bytes, None where it cannot be read
        self.members = OrderedDict()
        self.modules, self.threads, self.memory = [], [], []
        self.placed = []  # (start, end) of segments
        self.executable = executable_mappings()

    def problem(self, text):
        if text not in self.problems:
            self.problems.append(text)

    # Memory.

    def read(self, address, size):
        try:
            return bytes(self.inferior.read_memory(address, size))
        except (gdb.error, OverflowError):
            return None

    def keep(self, start, end):
        """Reads the pages of a range of global memory, as far as they are there."""
        for page in range(start & -PAGE, end, PAGE):
            if page not in self.pages and 0 <= page < 1 << 64:
                self.pages[page] = self.read(page, PAGE)

    def add_pages(self):
        start, data = None, []
        for page in sorted(p for p, b in self.pages.items() if b is not None) + [None]:
            if data and page != start + PAGE * len(data):
                self.add_memory(start, b"".join(data))
                data = []
            if not data:
                start = page
            if page is not None:
                data.append(self.pages[page])

    def add_memory(self, address, data, **more):
        name = "memory/%d.bin" % len(self.memory)
        self.members[name] = data
        self.memory.append(dict(more, file=name, address=hex(address)))

    # Modules.

    def sections(self):
        """Where sections are, by the name of their file."""
        files, own = {}, gdb.current_progspace().filename
        in_program = False
        for line in gdb.execute("info files", to_string=True).splitlines():
            m = re.match(r"\s+(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)(?: in (.*))?$", line)
            if not m:
                # Sections of a core have no file either, and are no sections.
                in_program = line.startswith("Local exec file") or in_program and line.startswith(("\t`", "\tEntry point", "\t0x"))
                continue
            name = m.group(4) or (own if in_program else None)
            if name is not None:
                files.setdefault(name, []).append((m.group(3), int(m.group(1), 16), int(m.group(2), 16)))
        return files

    def add_modules(self):
        sections = self.sections()
        for objfile in gdb.objfiles():
            if objfile.owner is not None or not objfile.is_valid():
                continue
            name = objfile.filename
            build_id = getattr(objfile, "build_id", None)
            try:
                self.add_module(name, build_id, sections.get(name) or sections.get(os.path.realpath(name)) or [])
            except (OSError, ValueError, struct.error) as e:
                self.problem("%s is left out: %s" % (name, e))

    def add_module(self, name, build_id, sections):
        data, keep = self.image(name)
        elf = ELF(data)
        bias = elf.bias(sections)
        if bias is None:
            raise ValueError("gdb does not say where it is loaded")
        module = {"path": name, "arch": elf.architecture(self.other), "segments": []}
        if build_id:
            module["build_id"] = build_id
        if elf.machine == 224:
            processor = elf.processor()
            if processor:
                module["processor"] = processor
        if keep:
            module["file"] = "modules/%d.elf" % len(self.modules)
            self.members[module["file"]] = data
        for address, size in elf.segments:
            start = (address + bias) & (1 << 64) - 1
            module["segments"].append({"address": hex(address), "size": hex(size), "start": hex(start)})
            self.placed.append((start, start + size))
        self.modules.append(module)

    def image(self, name):
        """The code object of a name, and whether it is in no file of its own."""
        m = re.match(r"system-supplied DSO at (0x[0-9a-f]+)$", name)
        if m:
            # Its section headers are its last bytes.
            start = int(m.group(1), 16)
            head = self.read(start, 64)
            if head is None:
                raise ValueError("its memory cannot be read")
            size = ELF(head, head_only=True).size
            data = self.read(start, min(size, MOST_OF_IMAGE))
            if data is None:
                raise ValueError("its memory cannot be read")
            return data, True
        m = re.match(r"(file|memory)://(.*?)#offset=(\w+)&size=(\w+)$", name)
        if m:
            offset, size = int(m.group(3), 0), int(m.group(4), 0)
            if size > MOST_OF_IMAGE:
                raise ValueError("it has %d bytes" % size)
            if m.group(1) == "memory":
                data = self.read(offset, size)
                if data is None:
                    raise ValueError("its memory cannot be read")
                return data, True
            with open(m.group(2), "rb") as f:
                f.seek(offset)
                return f.read(size), True
        if name.startswith("file://"):
            name = name[len("file://"):]
        if name.startswith("target:"):
            name = name[len("target:"):]
        with open(name, "rb") as f:
            return f.read(), False

    def add_code(self, pc, arch, is_trampoline):
        """Keeps code that is in no module."""
        if any(start <= pc < end for start, end in self.placed):
            return
        # What gdb takes for a frame may be none, and its PC data. A stub says no mappings,
        # but gdb knows trampolines by their code.
        if not is_trampoline and not any(start <= pc < end for start, end in self.executable):
            return
        page = pc & -PAGE
        self.keep(page - PAGE, page + 2 * PAGE)
        first, last = page, page + PAGE
        if self.pages.get(page) is None:
            return
        if any(start < last and first < end for start, end in self.placed):
            return
        self.modules.append({"arch": arch, "segments": [{"address": hex(page), "size": hex(PAGE), "start": hex(page)}]})
        self.placed.append((first, last))

    # Threads.

    def add_threads(self):
        selected = gdb.selected_thread()
        names, kernels, stopped = target_ids(), dispatches(), self.last_stop()
        frame = None
        try:
            frame = gdb.selected_frame()
        except gdb.error:
            pass
        try:
            for thread in sorted(self.inferior.threads(), key=lambda t: t.num):
                try:
                    self.add_thread(thread, names.get(thread.num, ""), kernels, stopped)
                except gdb.error as e:
                    self.problem("thread %d is left out: %s" % (thread.num, e))
        finally:
            if selected is not None and selected.is_valid():
                selected.switch()
            if frame is not None and frame.is_valid():
                frame.select()

    def last_stop(self):
        """The number of the thread that stopped last, or of the selected one where
        each stops by itself, and why it did, as gdb says it. Before gdb 14 it does
        not say which thread that is."""
        try:
            text = gdb.execute("info program", to_string=True)
        except gdb.error:
            return None, ""
        m = re.match(r"(?:Last stopped for|Selected) thread (?:(\d+)\.)?(\d+) ", text)
        if not m or m.group(1) and int(m.group(1)) != self.inferior.num:
            return None, ""
        return int(m.group(2)), text

    def add_thread(self, thread, target_id, kernels, stopped):
        thread.switch()
        if gdb.parameter("non-stop"):
            stopped = self.last_stop()
            thread.switch()
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:  # its registers are the caller's
            frame = frame.older()
        arch, processor = architecture(frame, self.other)
        wave = WAVE.search(target_id)
        out = {"id": str(thread.ptid[1] or thread.ptid[2] or thread.ptid[0]), "arch": arch}
        if thread.name:
            out["name"] = thread.name
        if processor:
            out["processor"] = processor
        stop = stop_by_debugger(stopped[1]) if stopped[0] == thread.num else None
        if wave:
            signal, stop = stop_of_wave(stopped[1], stop) if stopped[0] == thread.num else (0, None)
        else:
            signal = fatal_signal()
            stop = stop_by_signal(signal) or stop
        if signal:
            out["crashed"], out["signal"] = True, signal
        if stop:
            out["stop"] = stop
        if wave:
            out["id"] = "wave-" + (wave.group(4) if wave.group(4) != "?" else str(thread.num))
            out["wave"] = wave_identity(wave, kernels)
            # The debugger knows no more of the launch than its process.
            out["launched_by"] = {"thread": str(self.inferior.pid), "kind": "dispatch", "evidence": "queue"}
        out["registers"] = registers(frame, arch)
        if wave:
            lanes = [len(v) // 8 for n, v in out["registers"].items() if re.match(r"v\d+$", n)]
            if lanes and len(set(lanes)) == 1:
                out["lanes"] = lanes[0]
        if out["id"] in (t["id"] for t in self.threads):
            self.problem("thread %d has the id %s of another" % (thread.num, out["id"]))
            out["id"] += "." + str(thread.num)
        self.threads.append(out)
        if wave:
            self.add_wave_memory(frame, out["id"])
        else:
            self.keep_stack(frame, arch)

    def keep_stack(self, frame, arch):
        """Keeps the memory from the stack pointer of each frame to that of the next."""
        left, last = MOST_OF_STACK, None
        for _ in range(MOST_FRAMES):
            try:
                sp = unsigned(frame.read_register("sp"))
                pc = frame.pc()
            except (gdb.error, ValueError):
                break
            if last is not None and last <= sp <= last + min(MOST_OF_FRAME, left):
                start, end = last, sp + 8
            else:
                start, end = sp - BELOW, sp + 8
                if last is not None:
                    # A handler has a stack of its own, and what was interrupted is kept there.
                    self.keep(last, last + SIGNAL_FRAME)
            self.keep(max(start, 0), end)
            left -= end - start
            self.add_code(pc, arch, frame.type() == gdb.SIGTRAMP_FRAME)
            last = sp
            if left <= 0:
                self.problem("a stack has more than %d bytes: the rest is left out" % MOST_OF_STACK)
                return
            try:
                frame = frame.older()
            except gdb.error:
                break
            if frame is None:
                break
        if last is not None:
            self.keep(last, last + PAGE)

    def add_wave_memory(self, frame, wave):
        """Reads the private memory of the wave that is selected, by gdb's own
        command: its Python has no address spaces."""
        most = MOST_OF_WAVE
        try:
            most = min(most, unsigned(frame.read_register("s32")) + PAGE & -PAGE)
        except (gdb.error, ValueError):
            pass
        data, step = b"", 1024
        while len(data) < most:
            try:
                text = gdb.execute("x/%dxw private_wave#0x%x" % (step // 4, len(data)), to_string=True)
            except gdb.error:
                break
            words = [w for line in text.splitlines() for w in line.split(":", 1)[-1].split()]
            if len(words) != step // 4:
                break
            data += b"".join(struct.pack("<I", int(w, 16)) for w in words)
        if data:
            self.add_memory(0, data, space="private_wave", scope={"wave": wave})
        else:
            self.problem("%s: its private memory cannot be read" % wave)

    def write(self, path):
        self.add_modules()
        self.add_threads()
        self.add_pages()
        document = {"format_version": 1, "modules": self.modules, "threads": self.threads, "memory": self.memory}
        part = "%s.%d.part" % (path, os.getpid())
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
                    for name, data in self.members.items():
                        z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
                    z.writestr(zipfile.ZipInfo("snapshot.json"), json.dumps(document, indent=1), zipfile.ZIP_DEFLATED)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.unlink(part)


class ELF:
    """The headers of a code object."""

    def __init__(self, data, head_only=False):
        if data[:4] != b"\x7fELF" or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise ValueError("it is no ELF file")
        self.data, self.wide, self.order = data, data[4] == 2, "<>"[data[5] - 1]
        head = struct.unpack_from(self.order + ("HHIQQQIHHHHHH" if self.wide else "HHIIIIIHHHHHH"), data, 16)
        (self.type, self.machine, _, _, phoff, shoff, self.flags, _, phsize, phnum, shsize, shnum, names) = head
        self.size = shoff + shsize * shnum
        self.segments, self.sections = [], {}
        if head_only:
            return
        for i in range(phnum):
            if self.wide:
                kind, _, _, address, _, _, size, _ = struct.unpack_from(self.order + "IIQQQQQQ", data, phoff + i * phsize)
            else:
                kind, _, address, _, _, size, _, _ = struct.unpack_from(self.order + "IIIIIIII", data, phoff + i * phsize)
            if kind == 1 and size > 0:
                self.segments.append((address, size))
        headers = [struct.unpack_from(self.order + ("IIQQQQ" if self.wide else "IIIIII"), data, shoff + i * shsize) for i in range(shnum)]
        for name, _, flags, address, _, _ in headers:
            if flags & 2 and 0 <= names < shnum:  # SHF_ALLOC
                start = headers[names][4] + name
                end = data.index(b"\0", start)
                self.sections[data[start:end].decode("ascii", "replace")] = address

    def bias(self, sections):
        """What is added to virtual addresses, as most sections have it."""
        found = Counter(start - self.sections[name] for name, start, _ in sections if name in self.sections)
        return found.most_common(1)[0][0] if found else None

    def architecture(self, other):
        if self.machine == POWER:
            return "ppc64le" if self.order == "<" else "ppc64"
        return MACHINES.get(self.machine, other or "elf-%d" % self.machine)

    def processor(self):
        """The processor of an AMDGPU code object, by EF_AMDGPU_MACH."""
        names = {
            0x02C: "gfx900", 0x02F: "gfx906", 0x030: "gfx908", 0x031: "gfx909", 0x033: "gfx1010", 0x034: "gfx1011",
            0x035: "gfx1012", 0x036: "gfx1030", 0x037: "gfx1031", 0x038: "gfx1032", 0x03F: "gfx90a", 0x040: "gfx940",
            0x041: "gfx1100", 0x046: "gfx1101", 0x047: "gfx1102", 0x04B: "gfx941", 0x04C: "gfx942", 0x048: "gfx1200",
            0x04E: "gfx1201",
        }
        return names.get(self.flags & 0xFF)


def architecture(frame, other):
    """The architecture and the processor of a frame, by their names in snapshots."""
    name = frame.architecture().name()
    if name.startswith("amdgcn"):
        return "amdgpu", name.partition(":")[2]
    if name == "powerpc:common64":
        return "ppc64" if is_big_endian() else "ppc64le", ""
    if name in ARCHITECTURES:
        return ARCHITECTURES[name], ""
    return name if name in MACHINES.values() else other or name, ""


def is_big_endian():
    return "big" in gdb.execute("show endian", to_string=True)


def unsigned(value):
    return int(value) & (1 << 8 * value.type.sizeof) - 1


def value_bytes(value):
    """The bytes of a value as they would be in memory; None where gdb's Python
    does not give them."""
    if hasattr(value, "bytes"):
        return bytes(value.bytes)
    kind = value.type.strip_typedefs()
    order = "big" if is_big_endian() else "little"
    if kind.code == gdb.TYPE_CODE_UNION:
        # A vector register is a union of its views, or of unions of them; that of
        # the narrowest integers has all of its bytes.
        for field in kind.fields():
            of = field.type.strip_typedefs()
            bytewise = of.code == gdb.TYPE_CODE_ARRAY and of.target().sizeof == 1
            if of.sizeof == kind.sizeof and (bytewise or of.code == gdb.TYPE_CODE_UNION):
                data = value_bytes(value[field.name])
                if data is not None:
                    return data
        return None
    if kind.code == gdb.TYPE_CODE_ARRAY:
        low, high = kind.range()
        parts = [value_bytes(value[i]) for i in range(low, high + 1)]
        return None if None in parts else b"".join(parts)
    if kind.code == gdb.TYPE_CODE_FLT:
        if kind.sizeof > 8:
            return None  # gdb's number of it may have been rounded
        try:
            return int(value.format_string(format="x"), 16).to_bytes(kind.sizeof, order)
        except (gdb.error, ValueError, OverflowError):
            return None
    try:
        return unsigned(value).to_bytes(kind.sizeof, order)
    except (gdb.error, OverflowError):
        try:
            number = gdb.lookup_type("unsigned long" if kind.sizeof == 8 else "unsigned int")
            return unsigned(value.cast(number)).to_bytes(kind.sizeof, order)
        except (gdb.error, OverflowError):
            return None


def registers(frame, arch):
    """The registers of the top frame, as a snapshot writes them."""
    out = {}
    names = [r.name for r in frame.architecture().registers() if r.name]
    renamed = {"x86_64": X86_NAMES, "riscv64": RISCV_NAMES, "aarch64": AARCH64_NAMES, "s390x": S390X_NAMES}.get(arch, {})
    if arch == "x86_64":
        names = [n for n in names if not X86_LEFT_OUT.match(n)] + X86_MORE
    elif arch == "riscv64":
        names = [n for n in names if not RISCV_LEFT_OUT.match(n)]
    elif arch == "aarch64":
        names = [n for n in names if AARCH64_KEPT.match(n)]
    elif arch in ("ppc64", "ppc64le"):
        names = [n for n in names if POWER_KEPT.match(n)]
    elif arch == "s390x":
        names = [n for n in names if not S390X_LEFT_OUT.match(n)]
    for name in names:
        value = read_register(frame, name)
        if value is None:
            continue
        text = register_text(value)
        if text is not None:
            out[renamed.get(name, name)] = text
    if arch == "x86_64":
        for i in range(32):
            for name in ("zmm%d", "ymm%d", "xmm%d"):
                value = read_register(frame, name % i)
                data = value_bytes(value) if value is not None else None
                if data is not None:
                    out["xmm%d" % i] = data.hex()
                    break
    return out


def read_register(frame, name):
    try:
        value = frame.read_register(name)
        if value.is_optimized_out:
            return None
        value.fetch_lazy()
        return value
    except (gdb.error, ValueError):
        return None


def register_text(value):
    data = value_bytes(value)
    if data is None:
        return None
    kind = value.type.strip_typedefs()
    vector = kind.code in (gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY)
    if vector and len(data) > 8:  # up to 64 bits: the types that a number may be read as
        return data.hex()
    return hex(int.from_bytes(data, "big" if is_big_endian() else "little"))


def known(text):
    return text if text != "?" else None


def wave_identity(m, kernels):
    """The identity in a wave's target id."""
    agent, queue, dispatch = (known(m.group(i)) for i in (1, 2, 3))
    out = {}
    for name, value in (("agent", agent), ("queue", queue), ("dispatch", dispatch), ("kernel", kernels.get((agent, queue, dispatch)))):
        if value is not None:
            out[name] = value
    if all(known(m.group(i)) for i in (5, 6, 7)):
        out["group"] = [int(m.group(i)) for i in (5, 6, 7)]
    if known(m.group(8)):
        out["in_group"] = int(m.group(8))
    return out


def executable_mappings():
    """The mappings of the process that may be executed, where gdb knows."""
    try:
        text = gdb.execute("info proc mappings", to_string=True)
    except gdb.error:
        return []
    out = []
    for line in text.splitlines():
        m = re.match(r"\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+[r-][w-]x", line)
        if m:
            out.append((int(m.group(1), 16), int(m.group(2), 16)))
    return out


def target_ids():
    """What `info threads` calls the threads, by their numbers."""
    out = {}
    for line in gdb.execute("info threads", to_string=True).splitlines():
        m = re.match(r"[* ]\s*(?:\d+\.)?(\d+)\s+(.*)", line)
        if m:
            out[int(m.group(1))] = m.group(2)
    return out


def dispatches():
    """The kernels of dispatches by agent, queue and dispatch, where the debugger
    knows of such things."""
    try:
        lines = gdb.execute("info dispatches", to_string=True).splitlines()
    except gdb.error:
        return {}
    column = next((line.find("Kernel Function") for line in lines if "Kernel Function" in line), -1)
    out = {}
    for line in lines:
        m = DISPATCH.search(line)
        if m and column >= 0 and line[column:].strip():
            out[m.groups()] = line[column:].strip()
    return out


# Linux' numbers of the signals that end a process with a core, but for SIGTRAP,
# which is the debugger's own.
FATAL = (3, 4, 6, 7, 8, 11, 24, 25, 31)


def fatal_signal():
    """The signal that the selected thread has died of, or would die of if it went
    on; 0 where it has none."""
    try:
        number = int(gdb.parse_and_eval("$_siginfo.si_signo"))
    except (gdb.error, ValueError):
        return 0
    return number if number in FATAL else 0


# Why the hardware stops a thread of a CPU, by the signal.
FAULTS = {4: "illegal-instruction", 7: "address-error", 8: "math-error", 11: "memory-fault"}


def stop_by_signal(signal):
    """Why the selected thread got a signal, where the hardware is why."""
    if signal not in FAULTS:
        return None
    try:
        code = int(gdb.parse_and_eval("$_siginfo.si_code"))
        # Else a process sent it, or the kernel says no more (SI_KERNEL, SEGV_CPERR).
        if not 0 < code < 0x80 or signal == 11 and code == 10:
            return None
        stop = {"reason": FAULTS[signal]}
        if signal in (7, 11):
            stop["address"] = hex(unsigned(gdb.parse_and_eval("$_siginfo._sifields._sigfault.si_addr")))
        return stop
    except (gdb.error, ValueError):
        return None


def stop_by_debugger(text):
    """Why the debugger itself stopped a thread, by what it says."""
    numbers = [int(n) for n in re.findall(r"^It stopped at breakpoint (\d+)", text, re.M)]
    if any(b.number in numbers and b.expression is not None for b in gdb.breakpoints()):
        return {"reason": "watchpoint"}
    if numbers or re.search(r"^It stopped at a breakpoint", text, re.M):
        return {"reason": "breakpoint", "pc_exact": True}
    if re.search(r"^It stopped after being stepped", text, re.M):
        return {"reason": "single-step", "pc_exact": True}
    return None


# What rocgdb makes signals of, with the number of the signal where the wave cannot
# go on, and the setting that says whether the wave stops where it happens.
WAVE_STOPS = {
    "SIGSEGV": ({"reason": "memory-fault"}, 11, "precise-memory"),
    "SIGBUS": ({"reason": "address-error"}, 7, "precise-memory"),
    "SIGILL": ({"reason": "illegal-instruction"}, 4, None),
    "SIGFPE": ({"reason": "math-error"}, 8, "precise-alu-exceptions"),
    "SIGABRT": ({"reason": "trap", "trap_id": 2}, 6, None),  # llvm.trap
    "SIGTRAP": ({"reason": "trap"}, 0, None),
}


def stop_of_wave(text, by_debugger):
    """The signal of a wave and why it stopped, by what the debugger says. It does
    not know the address of a fault."""
    m = re.search(r"^It stopped with signal (\w+)", text, re.M)
    if by_debugger or not m or m.group(1) not in WAVE_STOPS:
        return 0, by_debugger
    stop, signal, setting = WAVE_STOPS[m.group(1)]
    stop = dict(stop)
    if setting:
        exact = enabled(setting)
        if exact is not None:
            stop["pc_exact"] = exact
    return signal, stop


def enabled(setting):
    """Whether a setting of rocgdb is in force; None where it has none."""
    try:
        text = gdb.execute("show amdgpu " + setting, to_string=True)
    except gdb.error:
        return None
    m = re.search(r"\(currently (enabled|disabled)\)", text)
    return m.group(1) == "enabled" if m else None


class Command(gdb.Command):
    """Write a snapshot of the inferior: unwindd-snapshot FILE [ARCHITECTURE]

ARCHITECTURE is the name that a plugin's description has, where gdb's is another one."""

    def __init__(self):
        super().__init__("unwindd-snapshot", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) not in (1, 2):
            raise gdb.GdbError("usage: unwindd-snapshot FILE [ARCHITECTURE]")
        if not gdb.selected_inferior().threads():
            raise gdb.GdbError("there are no threads: run a program, attach to one, or open a core")
        snapshot = Snapshot(*arguments[1:])
        settings = ("pagination", "backtrace past-main", "backtrace past-entry")
        before = {s: gdb.parameter(s) for s in settings}
        try:
            gdb.execute("set pagination off")
            gdb.execute("set backtrace past-main on")
            gdb.execute("set backtrace past-entry on")
            snapshot.write(os.path.expanduser(arguments[0]))
        except OSError as e:
            raise gdb.GdbError(str(e))
        finally:
            for name, value in before.items():
                gdb.execute("set %s %s" % (name, "on" if value else "off"))
        for text in snapshot.problems:
            gdb.write("unwindd-snapshot: %s\n" % text, gdb.STDERR)
        gdb.write("%s: %d threads, %d modules, %d bytes of memory\n" % (
            arguments[0], len(snapshot.threads), len(snapshot.modules), sum(len(b) for n, b in snapshot.members.items() if n.startswith("memory/"))))


Command()
