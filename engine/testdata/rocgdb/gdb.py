"""A stand-in for the Python module of rocgdb: one thread of the CPU and two
waves, as the documentation of rocgdb shows what it prints."""

import os
import struct
import sys

COMMAND_DATA, COMPLETE_FILENAME, STDERR = 1, 2, 2
NORMAL_FRAME, INLINE_FRAME, SIGTRAMP_FRAME = 0, 1, 4
TYPE_CODE_UNION, TYPE_CODE_ARRAY, TYPE_CODE_INT, TYPE_CODE_FLT = 1, 2, 3, 4
commands = {}


class error(RuntimeError):
    pass


class GdbError(Exception):
    pass


class MemoryError(error):
    pass


class Command:
    def __init__(self, name, *_):
        commands[name] = self


class Type:
    def __init__(self, code, size, element=None):
        self.code, self.sizeof, self._element = code, size, element

    def strip_typedefs(self):
        return self

    def range(self):
        return 0, self.sizeof // self._element.sizeof - 1


class Value:
    is_optimized_out = False

    def __init__(self, data, lane=0):
        self._data = data
        size = len(data)
        self.type = Type(TYPE_CODE_ARRAY, size, Type(TYPE_CODE_INT, lane)) if lane else Type(TYPE_CODE_INT, size)
        self._lane = lane

    def fetch_lazy(self):
        pass

    def __int__(self):
        return int.from_bytes(self._data, "little", signed=True)

    def __getitem__(self, i):
        return Value(self._data[i * self._lane:(i + 1) * self._lane])


class Register:
    def __init__(self, name):
        self.name = name


class Architecture:
    def __init__(self, name, names):
        self._name, self._names = name, names

    def name(self):
        return self._name

    def registers(self):
        return [Register(n) for n in self._names]


class Frame:
    def __init__(self, arch, pc, registers):
        self._registers, self._pc = registers, pc
        self._arch = Architecture(arch, [n for n in registers if n != "sp"])

    def architecture(self):
        return self._arch

    def type(self):
        return NORMAL_FRAME

    def pc(self):
        return self._pc

    def older(self):
        return None

    def is_valid(self):
        return True

    def select(self):
        pass

    def read_register(self, name):
        if name not in self._registers:
            raise ValueError("Bad register")
        return self._registers[name]


class Thread:
    def __init__(self, num, ptid, name, frame):
        self.num, self.ptid, self.name, self.frame = num, ptid, name, frame

    def switch(self):
        global current
        current = self

    def is_valid(self):
        return True


def number(n, size=8):
    return Value(n.to_bytes(size, "little"))


def wave(first, pc):
    return Frame("amdgcn:gfx90a", pc, {
        "pc": number(pc), "exec": number((1 << 64) - 1), "s32": number(0x800, 4), "s4": number(0xfffffff0, 4),
        "v0": Value(b"".join(struct.pack("<I", first + i) for i in range(64)), 4),
    })


THREADS = [
    Thread(1, (100, 100, 0), "saxpy", Frame("i386:x86-64", 0x401010, {
        "rip": number(0x401010), "rsp": number(0x7000), "sp": number(0x7000)})),
    Thread(7, (100, 1, 1), "saxpy", wave(0, 0x7ffff608e3bc)),
    Thread(8, (100, 1, 2), "saxpy", wave(64, 0x7ffff608e3c0)),
]
current = THREADS[0]


class Inferior:
    pid, num = 100, 1

    def threads(self):
        return list(reversed(THREADS))

    def read_memory(self, address, size):
        if 0x7000 <= address and address + size <= 0x8000:
            return bytes(size)
        raise MemoryError("Cannot access memory")


class Progspace:
    filename = None


def selected_inferior():
    return Inferior()


def selected_thread():
    return current


def newest_frame():
    return current.frame


selected_frame = newest_frame


def current_progspace():
    return Progspace()


def objfiles():
    return []


class Breakpoint:
    def __init__(self, number, expression):
        self.number, self.expression = number, expression


def breakpoints():
    return (Breakpoint(1, None), Breakpoint(2, "total"))


def parameter(name):
    return False


def parse_and_eval(text):
    raise error("not available")


def string_to_argv(text):
    return text.split()


def write(text, stream=None):
    sys.stderr.write(text)


def execute(command, to_string=False):
    words = command.split()
    if words[0] == "set" or command in ("info files",):
        return ""
    if command == "show endian":
        return "The target endianness is set automatically (currently little endian).\n"
    if command == "info threads":
        return """  Id   Target Id                                  Frame
* 1    Thread 0x7ffff648bf80 (LWP 100) "saxpy"     0x0000000000401010 in main ()
  7    AMDGPU Wave 1:2:1:1 (0,0,0)/0 "saxpy"      kern () at saxpy.cpp:7
  8    AMDGPU Wave 1:2:1:2 (0,3,0)/1 "saxpy"      kern () at saxpy.cpp:7
"""
    if command == "info program" and "STOPPED" in os.environ:
        return os.environ["STOPPED"]
    if command.startswith("show amdgpu ") and words[2].upper() in os.environ:
        return "AMDGPU %s is %s.\n" % (words[2], os.environ[words[2].upper()])
    if command == "info dispatches":
        return """  Id   Target Id                      Grid    Workgroup Fence   Kernel Function
* 1    AMDGPU Dispatch 1:2:1 (PKID 0) [1,1,1] [1,1,1]   B|Aa|Ra kern(int, float*)
"""
    if words[0].startswith("x/") and words[1].startswith("private_wave#"):
        count, address = int(words[0][2:-2]), int(words[1].partition("#")[2], 16)
        if current.num != 7 or address + 4 * count > 0x1800:
            raise error("Cannot access memory at address private_wave#0x%x" % address)
        lines = []
        for at in range(address, address + 4 * count, 16):
            lines.append("private_wave#0x%x:\t%s" % (at, "\t".join("0x%08x" % (at + i) for i in range(0, 16, 4))))
        return "\n".join(lines) + "\n"
    raise error("Undefined command: %s" % command)
