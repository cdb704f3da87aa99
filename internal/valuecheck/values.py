# SPDX-License-Identifier: Apache-2.0
# Run by gdb on a core: writes, as JSON, the variables of every frame of every
# thread as trees, down to what has no parts. With LIBRARIES set the functions of
# libraries count, else the program's alone. With PRETTY set the trees are those of
# gdb's pretty printers. GLOBALS names variables that are in no frame.
#   gdb -batch -ex "source values.py" PROGRAM CORE    (VALUES: the output)
import gdb, json, os, re

for setting in ("pagination off", "backtrace past-main on", "backtrace limit unlimited", "max-value-size unlimited", "width 0",
                "print object off", "print static-members off", "print repeats unlimited", "print null-stop off", "print finish on",
                "print elements 200", "print vtbl off", "print symbol on", "print address on"):
    gdb.execute("set " + setting)
raw = os.environ["VALUES"] + ".raw"
program = os.path.realpath(gdb.current_progspace().filename)
pretty = "PRETTY" in os.environ
ELEMENTS, DEPTH, NODES = 200, int(os.environ.get("DEPTH", "12")), 20000

CODES = {getattr(gdb, n): n[10:].lower() for n in dir(gdb) if n.startswith("TYPE_CODE_")}
# LOC_OPTIMIZED_OUT and others are told apart by their names.
CLASSES = {getattr(gdb, n): n[11:].lower() for n in dir(gdb) if n.startswith("SYMBOL_LOC_")}
AGGREGATES = ("struct", "union")
nodes = 0


def contents(value):
    """The bytes of a value that has no parts, as hex."""
    t = value.type.strip_typedefs()
    code = CODES.get(t.code, "")
    if code in ("int", "char", "bool", "enum", "flags", "ptr", "range") and t.sizeof <= 8:
        return (int(value) & ((1 << 8 * t.sizeof) - 1)).to_bytes(t.sizeof, "little").hex()
    gdb.set_convenience_variable("variable", value)
    gdb.execute("dump binary value %s $variable" % raw, to_string=True)
    with open(raw, "rb") as f:
        return f.read().hex()


def is_bytes(t):
    """Whether values of a type are printed as text: arrays of characters."""
    if t.code != gdb.TYPE_CODE_ARRAY:
        return False
    e = t.target().strip_typedefs().unqualified()
    return e.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR) and (e.sizeof == 1 or e.name in ("wchar_t", "char16_t", "char32_t"))


def bounds(value, t):
    """The first index of an array and how many elements it has."""
    low, high = t.range()
    return low, max(0, high - low + 1)


def leaf(node, value, t):
    if value.is_optimized_out:
        node["optimized"] = True
        return
    node["text"] = value.format_string(raw=True)
    if "synthetic pointer" in node["text"]:
        node["synthetic"] = True
        node["children"] = [tree("*", value.dereference(), 1)]
        return
    node["bytes"] = contents(value)


def tree(name, value, depth, bits=None):
    """A value as a tree: its parts, or its bytes and gdb's text."""
    global nodes
    nodes += 1
    node = {"name": name}
    try:
        t = value.type.strip_typedefs()
        code = CODES.get(t.code, str(t.code))
        node.update(type=str(value.type), code=code, size=t.sizeof)
        if t.code == gdb.TYPE_CODE_ENUM:
            node["signed"] = any(f.enumval < 0 for f in t.fields())
        elif code in ("int", "char", "range"):
            node["signed"] = bool(t.is_signed)
        if bits:
            node["bits"] = bits
        if value.is_lazy or value.address is not None:
            try:
                node["address"] = hex(int(value.address.cast(gdb.lookup_type("unsigned long"))))
            except (gdb.error, AttributeError, TypeError):
                pass
        if pretty and visualize(node, value, depth):
            return node
        if code in AGGREGATES:
            if depth > DEPTH or nodes > NODES:
                node["cut"] = True
            else:
                node["children"] = members(value, t, depth)
        elif is_bytes(t) and not value.is_optimized_out and "{" not in value.format_string(raw=True)[:1]:  # vectors are no text
            low, n = bounds(value, t)
            node["code"] = "text"
            node["elements"], node["width"] = n, t.target().sizeof
            node["text"] = value.format_string(raw=True)
            if 0 < t.sizeof <= 1 << 16:
                gdb.set_convenience_variable("variable", value)
                gdb.execute("dump binary value %s $variable" % raw, to_string=True)
                with open(raw, "rb") as f:
                    node["bytes"] = f.read().hex()
        elif code == "array":
            low, n = bounds(value, t)
            node["elements"] = n
            if depth > DEPTH or nodes > NODES:
                node["cut"] = True
            else:
                node["children"] = [tree("[%d]" % (low + i), value[low + i], depth + 1) for i in range(min(n, ELEMENTS))]
        elif code in ("ref", "rvalue_ref"):
            if value.is_optimized_out:
                node["optimized"] = True
            else:
                target = value.referenced_value()
                if target.address is not None:
                    node["bytes"] = int(target.address.cast(gdb.lookup_type("unsigned long"))).to_bytes(8, "little").hex()
                else:
                    node["synthetic"] = True
                if depth <= DEPTH and nodes <= NODES:
                    node["children"] = [tree("&", target, depth + 1)]
        else:
            leaf(node, value, t)
    except (gdb.error, RuntimeError, OverflowError, ValueError, TypeError, AttributeError) as e:
        node["error"] = "%s: %s" % (type(e).__name__, e)
    return node


def base(value, field):
    """A base class of a value. gdb finds it by its name, that of lambdas is none."""
    if field.name or value.address is None:
        return value[field]
    return (value.address.cast(gdb.lookup_type("char").pointer()) + field.bitpos // 8).cast(field.type.pointer()).dereference()


def members(value, t, depth):
    out = []
    for i, field in enumerate(t.fields()):
        if not hasattr(field, "bitpos"):
            continue  # static
        if field.is_base_class:
            child = tree(str(field.type), base(value, field), depth + 1)
            child["kind"] = "base"
        else:
            child = tree(field.name or "", value[field], depth + 1, field.bitsize)
        if field.artificial:
            child["artificial"] = True
        out.append(child)
    return out


def summary_of(summary, hint):
    """What a pretty printer says in a line; texts are in quotes."""
    if summary is None:
        return ""
    if isinstance(summary, gdb.Value):
        return summary.format_string()
    if isinstance(summary, str):
        return json.dumps(summary, ensure_ascii=False) if hint == "string" else summary
    if not hasattr(summary, "address"):
        return str(summary)
    if summary.length == 0:
        return '""'
    if summary.length < 0 or summary.type.target().sizeof != 1:
        return summary.value().format_string(format="s")
    data = bytes(gdb.selected_inferior().read_memory(summary.address, summary.length))
    return '"' + "".join(chr(b) if 0x20 <= b < 0x7f and b not in b'"\\' else "\\%03o" % b for b in data) + '"'


def visualize(node, value, depth):
    """Whether gdb has a pretty printer for a value, which then made the node."""
    printer = gdb.default_visualizer(value)
    if printer is None:
        return False
    hint = printer.display_hint() if hasattr(printer, "display_hint") else None
    node["hint"] = hint or ""
    node["pretty"] = True
    if hasattr(printer, "to_string"):
        node["text"] = summary_of(printer.to_string(), hint)
    children, more = [], 0
    limit = 2 * ELEMENTS if hint == "map" else ELEMENTS
    if hasattr(printer, "children") and depth <= DEPTH:
        for i, (name, child) in enumerate(printer.children()):
            if i >= limit or nodes > NODES:
                more += 1
                break
            if isinstance(child, gdb.Value):
                children.append(tree(name, child, depth + 1))
            else:
                children.append({"name": name, "code": "python", "text": str(child)})
    node["children"] = children
    if more:
        node["cut"] = True
    return True


def needs_frame(symbol):
    """Whether a variable is in a frame; gdb does not know of some that are of a thread."""
    try:
        return symbol.needs_frame
    except gdb.error:
        return False


def describe(symbol, frame, level):
    global nodes
    nodes = 0
    v = {"name": symbol.name}
    try:
        v = tree(symbol.name, symbol.value(frame) if frame or needs_frame(symbol) else symbol.value(), 1)
    except (gdb.error, RuntimeError, OverflowError) as e:
        v["error"] = "%s: %s" % (type(e).__name__, e)
    v.update(line=symbol.line, kind="parameter" if symbol.is_argument else "local", storage=CLASSES.get(symbol.addr_class, ""),
             static=symbol.addr_class == gdb.SYMBOL_LOC_STATIC or not needs_frame(symbol) and symbol.addr_class == gdb.SYMBOL_LOC_COMPUTED, block=level)
    return v


def is_variable(symbol):
    """Whether a symbol of a block is a variable, and no type, label or enumerator."""
    if symbol.type is None or symbol.type.name == "__CORE_ADDR":  # the type of labels
        return False
    if symbol.is_constant and symbol.type.code == gdb.TYPE_CODE_ENUM:
        return all(symbol.name != f.name for f in symbol.type.fields())
    return symbol.is_variable or symbol.is_argument or symbol.is_constant


def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return []
    frame.select()  # what implicit pointers point to is found in the selected one
    out, level = [], 0
    while block is not None and not block.is_static and not block.is_global:
        for symbol in block:
            if is_variable(symbol):
                v = describe(symbol, frame, level)
                if frame.level():
                    try:
                        v["place"] = place(symbol, frame, frame.block())
                    except gdb.error:
                        pass
                out.append(v)
        if block.function is not None:
            break
        block, level = block.superblock, level + 1
    return out


def is_own(objfile):
    """Whether a file is the program, or has its debug information."""
    return os.path.realpath((objfile.owner or objfile).filename) == program


def place(symbol, frame, block):
    """What gdb says of where a variable is at the frame's PC."""
    found = gdb.lookup_symbol(symbol.name, block)[0]
    if found is None or found.line != symbol.line:
        return ""
    text = gdb.execute("info address " + symbol.name, to_string=True)
    pc = frame.pc() - (0 if frame.level() == 0 else 1)
    for line in re.split(r"\n(?=  (?:Base|Range) )", text):
        m = re.match(r"  (?:Base address \S+ +)?Range (0x[0-9a-f]+)-(0x[0-9a-f]+): (.*)", line, re.S)
        if m and int(m[1], 16) <= pc < int(m[2], 16):
            return m[3].strip()
    return "" if "multi-location" in text else text.strip()


def global_variables():
    out = []
    for name in os.environ.get("GLOBALS", "").split():
        symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
        if symbol is not None:
            out.append(describe(symbol, None, 0))
    return out


threads = []
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    frames, frame = [], gdb.newest_frame()
    while frame is not None:
        kind = {gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "tailcall"}.get(frame.type(), "normal")
        f = {"kind": kind, "pc": "0x%x" % frame.pc(), "function": frame.name() or "", "level": frame.level()}
        function = frame.function()
        f["own"] = function is not None and ("LIBRARIES" in os.environ or is_own(function.symtab.objfile))
        f["variables"] = variables(frame) if f["own"] else []
        frames.append(f)
        try:
            frame = frame.older()
        except gdb.error:
            break
    threads.append({"id": str(thread.ptid[1]), "frames": frames})
with open(os.environ["VALUES"], "w") as f:
    json.dump({"threads": threads, "globals": global_variables()}, f, indent=1 if "INDENT" in os.environ else None)
