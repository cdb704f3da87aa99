# Run by gdb on a core: writes, as JSON, the raw bytes of every variable and
# parameter of every frame of every thread whose function is the program's own, and
# of parameters also what they were when the function was called. With LIBRARIES set
# other functions that are described count too.
#   gdb -batch -ex "source variables.py" PROGRAM CORE    (VARIABLES: the output)
import gdb, json, os

for setting in ("pagination off", "backtrace past-main on", "backtrace limit unlimited", "max-value-size unlimited",
                "print object off", "print static-members off"):
    gdb.execute("set " + setting)
raw = os.environ["VARIABLES"] + ".raw"
program = os.path.realpath(gdb.current_progspace().filename)


def contents(value):
    """The bytes of a value, as hex; an exception when they are not all there."""
    gdb.set_convenience_variable("variable", value)
    gdb.execute("dump binary value %s $variable" % raw, to_string=True)
    with open(raw, "rb") as f:
        return f.read().hex()


def leaves(value, start, out):
    """Those parts of a value that are there."""
    t = value.type.strip_typedefs()
    if t.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        for field in t.fields():
            if not hasattr(field, "bitpos"):
                continue  # static
            member = value[field]
            if not field.bitsize:
                leaves(member, start + field.bitpos, out)
            elif not member.is_optimized_out:
                number = int(member) & ((1 << field.bitsize) - 1)
                out.append({"start": start + field.bitpos, "bits": field.bitsize, "bytes": number.to_bytes((field.bitsize + 7) // 8, "little").hex()})
    elif t.code == gdb.TYPE_CODE_ARRAY and t.target().sizeof:
        for i in range(t.sizeof // t.target().sizeof):
            leaves(value[t.range()[0] + i], start + i * t.target().sizeof * 8, out)
    elif not value.is_optimized_out:
        out.append({"start": start, "bits": t.sizeof * 8, "bytes": contents(value)})


def parts(value):
    """All bytes of a value, or those that are there."""
    if not value.is_optimized_out:
        return {"bytes": contents(value)}
    out = []
    leaves(value, 0, out)
    return {"leaves": out}


def describe(symbol, frame):
    v = {"name": symbol.name, "line": symbol.line}
    try:
        value = symbol.value(frame)
        v["size"] = value.type.sizeof
        v.update(parts(value))
        t = value.type.strip_typedefs()
        if t.code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF) and "bytes" in v and not v["bytes"].strip("0"):
            # A pointer that was optimized away, but not what it points to, has bytes of zeros.
            try:
                v["target"] = parts(value.referenced_value())
            except gdb.error:
                pass
    except (gdb.error, RuntimeError, OverflowError) as e:
        v["error"] = str(e)
    return v


def at_entry(symbol, frame):
    """What a parameter was when the function was called."""
    try:
        return parts(gdb.parse_and_eval(symbol.name + "@entry"))
    except (gdb.error, RuntimeError, OverflowError) as e:
        return {"error": str(e)}


def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return []
    frame.select()  # what implicit pointers point to is found in the selected one
    out = []
    while block is not None and not block.is_static and not block.is_global:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.type.name != "__CORE_ADDR":  # that of labels
                v = describe(symbol, frame)
                if symbol.is_argument and frame.type() != gdb.INLINE_FRAME:
                    v["entry"] = at_entry(symbol, frame)
                out.append(v)
        if block.function is not None:
            break
        block = block.superblock
    return out


threads = []
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    frames, frame = [], gdb.newest_frame()
    while frame is not None:
        kind = {gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "tailcall"}.get(frame.type(), "normal")
        f = {"kind": kind, "pc": "0x%x" % frame.pc(), "function": frame.name() or ""}
        function = frame.function()
        f["own"] = function is not None and (
            "LIBRARIES" in os.environ or os.path.realpath(function.symtab.objfile.filename) == program)
        f["variables"] = variables(frame) if f["own"] else []
        frames.append(f)
        try:
            frame = frame.older()
        except gdb.error:
            break
    threads.append({"id": str(thread.ptid[1]), "frames": frames})
with open(os.environ["VARIABLES"], "w") as f:
    json.dump(threads, f)
