# Run by gdb: writes the parameters and variables of the selected thread's frames to the file
# that values_path names: the PC, the name and gdb's text of each, as JSON.
import gdb, json

for setting in ("pagination off", "backtrace past-main on", "width 0", "print repeats unlimited", "print elements 200", "print symbol off"):
    gdb.execute("set " + setting)
values, frame = [], gdb.newest_frame()
while frame is not None:
    try:
        block = frame.block()
    except RuntimeError:
        block = None
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if (symbol.is_argument or symbol.is_variable) and symbol.needs_frame:
                try:
                    text = symbol.value(frame).format_string()
                except gdb.error as e:
                    text = "<%s>" % e
                values.append({"pc": "0x%x" % frame.pc(), "function": frame.name(), "name": symbol.name, "text": text})
        if block.function is not None:
            break
        block = block.superblock
    try:
        frame = frame.older()
    except gdb.error:
        break
with open(values_path, "w") as f:
    json.dump(values, f)
