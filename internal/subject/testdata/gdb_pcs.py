# Run by gdb: prints the PCs of every thread's frames, innermost first, without inlined
# calls. Functions that were left by tail calls are among them, unless $without_tail_calls
# is set.
import gdb

for setting in ("pagination off", "backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited"):
    gdb.execute("set " + setting)
left_out = [gdb.INLINE_FRAME]
if gdb.convenience_variable("without_tail_calls"):
    left_out.append(gdb.TAILCALL_FRAME)
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in left_out:
            pcs.append("0x%x" % frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    print("PCS", thread.ptid[1], *pcs)
