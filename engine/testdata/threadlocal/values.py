# Run by gdb on a core: writes, as JSON, the raw bytes of thread-local variables
# in every thread, or why there are none.
#   gdb -batch -ex "source values.py" PROGRAM CORE    (VARIABLES: the output; NAMES: the variables)
import gdb, json, os

raw = os.environ["VARIABLES"] + ".raw"
threads = []
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    values = {}
    for name in os.environ["NAMES"].split():
        try:
            gdb.execute("dump binary value %s %s" % (raw, name), to_string=True)
            with open(raw, "rb") as f:
                values[name] = {"bytes": f.read().hex()}
        except gdb.error as e:
            values[name] = {"error": str(e)}
    threads.append({"id": str(thread.ptid[1]), "values": values})
with open(os.environ["VARIABLES"], "w") as f:
    json.dump(threads, f)
