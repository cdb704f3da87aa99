#!/usr/bin/env python3
# Writes calls.txt anew, in this folder, by clang 22 and LLVM 22's tools: a line for each
# function and code, with the processors that it is compiled to it for.
import base64, re, subprocess, tempfile

PROCESSORS = re.findall(r'\{"(gfx[^"]+)", 0x', open("../processors.go").read())
OPTIONS = ["-target", "amdgcn-amd-amdhsa", "-O1", "-fno-exceptions", "-fno-rtti", "-nogpulib", "-c"]
code = {}
with tempfile.TemporaryDirectory() as folder:
    o, b = folder + "/o", folder + "/b"
    for p in PROCESSORS:
        made = subprocess.run(["clang-22", *OPTIONS, "-mcpu=" + p, "calls.cpp", "-o", o], stderr=subprocess.DEVNULL)
        if made.returncode != 0:
            continue  # of those that the compiler does not know
        subprocess.run(["llvm-objcopy-22", "-O", "binary", "-j", ".text", o, b], check=True)
        text = open(b, "rb").read()
        symbols = subprocess.run(["llvm-nm-22", "-S", o], check=True, capture_output=True, text=True).stdout
        for name in ("pointer_call", "virtual_call"):
            start, size = (int(n, 16) for n in re.search(r"(\w+) (\w+) T " + name, symbols).groups())
            code.setdefault((name, text[start : start + size]), []).append(p)
with open("calls.txt", "w") as out:
    for (name, text), processors in code.items():
        print(name, ",".join(processors), base64.b64encode(text).decode(), file=out)
