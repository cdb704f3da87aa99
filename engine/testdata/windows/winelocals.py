# SPDX-License-Identifier: Apache-2.0
#
# Prints the variables of the first frames, as LLDB reads them: frame, path of members, value.
import lldb


def show(frame, path, v):
    t = v.GetType().GetCanonicalType()
    if t.IsReferenceType():
        v, t = v.Dereference(), t.GetDereferencedType().GetCanonicalType()
    if v.GetError().Fail():
        print("variable", frame, path, "unknown")
    elif t.IsPointerType():
        print("variable", frame, path, hex(v.GetValueAsUnsigned()))
    elif v.GetNumChildren():
        for child in v.children:
            show(frame, path + "/" + child.GetName(), child)
    elif t.GetTypeFlags() & lldb.eTypeIsInteger and not t.GetTypeFlags() & lldb.eTypeIsEnumeration and t.GetName() != "bool":
        signed = t.GetTypeFlags() & lldb.eTypeIsSigned
        print("variable", frame, path, v.GetValueAsSigned() if signed else v.GetValueAsUnsigned())
    else:
        print("variable", frame, path, v.GetValue())


thread = lldb.debugger.GetSelectedTarget().GetProcess().GetSelectedThread()
for frame in thread.frames[:5]:
    for v in frame.GetVariables(True, True, False, True):
        show(frame.GetFrameID(), v.GetName(), v)
