# Run by gdb: prints the PCs of every thread's frames, innermost first, without
# inlined and tail-call frames: what a walk of the stack finds.
import gdb

for setting in ("pagination off", "backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited"):
    gdb.execute("set " + setting)
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append("0x%x" % frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    print("PCS", thread.ptid[1], *pcs)
