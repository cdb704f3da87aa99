# Reads a symbol file whole, in the plainest way, and prints what is at every
# address at which something begins or ends: ADDRESS, a tab, and the frames,
# innermost first, as NAME@FILE:LINE, between bars.
#
#   python3 lookup.py FILE.sym
import bisect
import re
import sys

HEX = r"([0-9a-fA-F]+)"


class Function:
    def __init__(self, start, size, name):
        self.start, self.end, self.name = start, start + size, name
        self.lines, self.inlines = [], []


def covers(ranges, address):
    return any(start <= address < start + size for start, size in ranges)


def read(path):
    functions, publics, files, origins, inits, os = [], {}, {}, {}, [], None
    current = None
    for raw in open(path, "rb").read().split(b"\n"):
        line = raw.decode("utf-8", "surrogateescape").rstrip("\r").rstrip(" ")
        if m := re.fullmatch(r"FILE (\d+) (.*)", line):
            files.setdefault(int(m[1]), m[2])
        elif m := re.fullmatch(r"INLINE_ORIGIN (\d+) (?:(-1|\d+) )?(.*)", line):
            origins.setdefault(int(m[1]), (m[3], m[2]))
        elif m := re.fullmatch(r"FUNC (?:m )?" + HEX + " " + HEX + " " + HEX + " ?(.*)", line):
            current = Function(int(m[1], 16), int(m[2], 16), m[4])
            functions.append(current)
        elif m := re.fullmatch(r"PUBLIC (?:m )?" + HEX + " " + HEX + " ?(.*)", line):
            current = None
            publics.setdefault(int(m[1], 16), m[3])
        elif line.startswith("INLINE ") and current:
            parts = line.split()[1:]
            depth, at = int(parts[0]), int(parts[1])
            new = len(parts) % 2 == 0
            file, origin, rest = (parts[2], parts[3], parts[4:]) if new else (None, parts[2], parts[3:])
            ranges = [(int(rest[i], 16), int(rest[i + 1], 16)) for i in range(0, len(rest), 2)]
            current.inlines.append((ranges, int(origin), at, file, depth))
        elif (m := re.fullmatch(HEX + " " + HEX + r" (\d+) (\d+)", line)) and current:
            current.lines.append((int(m[1], 16), int(m[2], 16), int(m[3]), int(m[4])))
        elif m := re.match("STACK CFI INIT " + HEX + " " + HEX, line):
            inits.append((int(m[1], 16), int(m[2], 16)))
        elif (m := re.fullmatch(r"MODULE (\S+) \S+ \S+ .+", line)) and os is None:
            os = m[1]
    return functions, publics, files, origins, [] if os == "windows" else inits


def frames(f, address, files, origins):
    def line_at(a):
        for start, size, line, file in f.lines:
            if start <= a < start + size:
                return files.get(file, ""), line
        return "", 0

    def chain_at(a):
        chain = []
        while node := next((n for n in f.inlines if n[4] == len(chain) and covers(n[0], a)), None):
            chain.append(node)
        return chain

    chain = chain_at(address)
    file, line = line_at(address)
    out = []
    for i in range(len(chain) - 1, -1, -1):
        _, origin, call, call_file, _ = chain[i]
        out.append((origins.get(origin, ("", None))[0], file, line))
        line = call
        if call_file is not None:
            file = files.get(int(call_file), "")
        elif i > 0:
            own = origins.get(chain[i - 1][1], ("", None))[1]
            file = files.get(int(own), "") if own is not None else ""
        else:
            file = "" if chain_at(f.start) else line_at(f.start)[0]
    return out + [(f.name, file, line)]


def main(path):
    functions, publics, files, origins, inits = read(path)
    publics.pop(0, None)
    functions = [f for f in functions if f.start < f.end]
    places = sorted(range(len(functions)), key=lambda i: (functions[i].start, -functions[i].end, -i))
    ordered = [functions[i] for i in places]
    starts = [f.start for f in ordered]
    reach = []
    for f in ordered:
        reach.append(max(f.end, reach[-1] if reach else 0))
    names = sorted(publics)

    def function_at(address):
        i = bisect.bisect_right(starts, address) - 1
        while i >= 0 and reach[i] > address:
            if ordered[i].end > address:
                return ordered[i]
            i -= 1
        return None

    def public_at(address):
        i = bisect.bisect_right(names, address) - 1
        j = bisect.bisect_right(starts, address) - 1
        if i < 0 or j >= 0 and reach[j] > names[i]:
            return None
        # The INIT that begins last has the address.
        around = [start for start, size in inits if start <= address < start + size]
        if around and max(around) > names[i]:
            return None
        return names[i]

    asked = set()
    for f in functions:
        asked |= {f.start, f.end, f.end - 1}
        for start, size, _, _ in f.lines:
            asked |= {start, start + size - 1}

        for ranges, *_ in f.inlines:
            for start, size in ranges:
                asked.update((start, start + size, start + size - 1))
    for p in names:
        asked |= {p, p + 1, p - 1}
    for address in sorted(asked):
        if not 0 <= address < 1 << 64:
            continue
        if f := function_at(address):
            found = frames(f, address, files, origins)
        elif (p := public_at(address)) is not None:
            found = [(publics[p], "", 0)]
        else:
            found = []
        text = "|".join("%s@%s:%d" % x for x in found)
        sys.stdout.buffer.write(("%x\t%s\n" % (address, text)).encode("utf-8", "surrogateescape"))


main(sys.argv[1])
