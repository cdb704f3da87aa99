# SPDX-License-Identifier: Apache-2.0
# snapshot.py PROGRAM: makes a snapshot of what take.sh wrote down.
import json, re, sys, zipfile

program = sys.argv[1]
registers = dict(re.findall(r"^([a-z]+\d*) +(0x[0-9a-f]+)", open(program + ".txt").read(), re.M))
registers["s0"] = registers.pop("fp")  # gdb's name for it
with zipfile.ZipFile(program + ".snapshot", "w") as z:
    z.write(program, "program")
    z.write(program + ".stack", "stack")
    z.writestr("snapshot.json", json.dumps({
        "format_version": 1,
        "modules": [{"path": program, "file": "program", "arch": "riscv64",
                     "segments": [{"address": "0x10000", "size": "0x1000", "start": "0x10000"}]}],
        "threads": [{"id": "1", "arch": "riscv64", "crashed": True, "signal": 11, "registers": registers}],
        "memory": [{"file": "stack", "address": registers["sp"]}]}))
