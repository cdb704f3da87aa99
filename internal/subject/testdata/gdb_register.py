# Run by gdb: writes the PC of each frame of the selected thread, and the register that
# register_name names there, to the file that values_path names, as JSON: null where gdb does not
# know it.
import gdb, json

gdb.execute("set backtrace past-main on")
values, frame = [], gdb.newest_frame()
while frame is not None:
    try:
        value = int(frame.read_register(register_name))
    except gdb.error:
        value = None
    values.append({"pc": frame.pc(), "value": value})
    try:
        frame = frame.older()
    except gdb.error:
        break
with open(values_path, "w") as f:
    json.dump(values, f)
