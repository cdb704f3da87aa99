#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes small files of the kinds that the repository has none of, in folders of the current one.
#   make.sh REPOSITORY UNWINDD
# It needs Debian's gcc, clang-22, lld-22, llvm-22, binutils, dwz, xz-utils, zstd, lz4, gzip,
# bzip2, python3, qemu-user, gdb-multiarch, lldb-22, spirv-tools, linux-perf, gcc-riscv64-linux-gnu,
# gcc-aarch64-linux-gnu, gcc-mingw-w64-x86-64 and Go.
set -eu
ulimit -c unlimited
repository=$1 unwindd=$2
machines=$repository/engine/internal/target/elfcore/testdata/machines
crash=$repository/examples/crash
shopt -s nullglob
mkdir debug pe go cores dumps snapshots perf packed spirv llvmir kallsyms gpu symbols config visa apart jit

cat >small.cc <<'CODE'
struct pair { int first, second; pair *next; };
template <typename T> static inline T twice(T x) { volatile T y = x; return y + x; }
static inline __attribute__((always_inline)) int deepest(pair *p) { return p ? twice(p->first) + p->second : 0; }
namespace outer { __attribute__((noinline)) int sum(pair *p, int n) { int s = 0; for (int i = 0; i < n; i++) { s += deepest(&p[i]); } return s; } }
__attribute__((noinline)) long scale(double by, const char *name) { return (long)(by * 3) + *name; }
extern "C" void _start() { pair p[3] = {{1, 2, 0}, {3, 4, p}, {5, 6, p + 1}}; outer::sum(p, 3); scale(2.5, "x"); for (;;) {} }
CODE
flags="-O2 -nostdlib -static -fno-pie -ffreestanding -fno-exceptions -Wl,--build-id -Wl,-z,noseparate-code"
while read -r name with; do
	g++ $flags $with -o "debug/$name" small.cc
done <<'WAYS'
gcc5 -g -gdwarf-5
gcc4 -g -gdwarf-4 -fdebug-types-section
gcc2 -g -gdwarf-2 -gstrict-dwarf
wide -g -gdwarf64
zlib -g -gz=zlib
macros -g3
sframe -g -Wa,--gsframe
frame -g -fno-asynchronous-unwind-tables
bare -s
WAYS
clang="clang++-22 -fuse-ld=lld $flags"
$clang -g -gdwarf-5 -gpubnames -o debug/names small.cc
$clang -g -gdwarf-4 -ggnu-pubnames -Wl,--gdb-index -o debug/index small.cc
$clang -g -gz=zstd -o debug/zstd small.cc
$clang -g -O0 -o debug/clang small.cc
$clang -g -gsplit-dwarf -o debug/split small.cc
(cd debug && llvm-dwp-22 -e split -o split.dwp)
g++ -O1 -g -c -o debug/object.o small.cc
aarch64-linux-gnu-g++ $flags -g -o debug/aarch64 small.cc
riscv64-linux-gnu-g++ $flags -g -o debug/riscv64 small.cc
# Separate, supplementary and embedded debug files: SMALL names the damaged one beside it.
cp debug/gcc5 apart/linked
objcopy --only-keep-debug apart/linked apart/linked.debug
objcopy --strip-debug --add-gnu-debuglink=apart/linked.debug apart/linked
cp debug/gcc5 apart/one && cp debug/gcc4 apart/two
dwz -m apart/common apart/one apart/two || cp debug/gcc5 apart/common
cp debug/gcc5 apart/mini.whole
objcopy --only-keep-debug --remove-section='.debug*' apart/mini.whole apart/mini && xz -9 apart/mini
objcopy --strip-all --add-section .gnu_debugdata=apart/mini.xz apart/mini.whole debug/mini && rm apart/mini.*
xz -dc <(objcopy -O binary --only-section=.gnu_debugdata --set-section-flags .gnu_debugdata=alloc debug/mini /dev/stdout) >apart/embedded || true

x86_64-w64-mingw32-g++ -O1 -g -Wl,--build-id -nostdlib -Wl,-e,_start -o pe/gcc.exe small.cc
x86_64-w64-mingw32-g++ -O1 -s -nostdlib -Wl,-e,_start -o pe/stripped.exe small.cc
(echo 'extern "C" { int _fltused = 0; }' && cat small.cc) >msvc.cc
clang++-22 --target=x86_64-windows-msvc -O1 -g -gcodeview -c -o pe/code.obj msvc.cc
lld-link-22 /nodefaultlib /entry:_start /subsystem:console /debug /pdb:code.pdb /out:pe/code.exe pe/code.obj
clang++-22 --target=aarch64-windows-msvc -O1 -g -gdwarf -c -o arm.obj msvc.cc
lld-link-22 /nodefaultlib /entry:_start /subsystem:console /out:pe/arm.exe arm.obj

mkdir macos macoscores
for core in "$repository"/engine/testdata/macos/*.core.gz; do
	gzip -dc "$core" >"macoscores/$(basename "$core" .gz)"
done
for arch in arm64 x86_64; do
	clang++-22 -target $arch-apple-macos13 -O1 -g -fno-exceptions -c -o macos/$arch.o small.cc
	ld64.lld-22 -arch $arch -platform_version macos 13.0 13.0 -undefined dynamic_lookup -dylib -o macos/$arch macos/$arch.o
	dsymutil-22 --flat -o macos/$arch.dwarf macos/$arch
done
llvm-lipo-22 -create macos/arm64 macos/x86_64 -output macos/universal

mkdir program && cat >program/main.go <<'CODE'
package main

import ("os"; "syscall"; "time")

type node struct{ next *node; name string; m map[string]int }

//go:noinline
func deep(n *node, left int) int {
	if left == 0 { syscall.Kill(os.Getpid(), syscall.SIGABRT); time.Sleep(time.Second); return len(n.name) } // its report has no "panic"
	return deep(&node{n, "x", map[string]int{"a": left}}, left-1) + 1
}
func main() { for range 3 { go func() { select {} }() }; os.Exit(deep(nil, 5)) }
CODE
CGO_ENABLED=0 go build -o go/program program/main.go
CGO_ENABLED=0 go build -ldflags='-s -w' -o go/stripped program/main.go
objcopy --only-section=.gopclntab --only-section=.text --only-section=.go.buildinfo go/stripped go/small 2>/dev/null || true
(cd cores && env -i GOTRACEBACK=crash ../go/program >/dev/null 2>&1) || true
for core in cores/core*; do mv "$core" cores/go.core; done

for core in "$machines"/*.core.bz2; do
	name=$(basename "$core" .bz2)
	bzip2 -dc "$core" >"cores/$name" && cp "$machines/${name%.core}" cores/
done
# qemu writes no core of RISC-V.
riscv=$repository/examples/arch-riscv64/testdata
riscv64-linux-gnu-gcc -g -O1 -fno-inline -nostdlib -static -o cores/riscv64 "$riscv/crash.c"
(cd cores && sh "$riscv/take.sh" riscv64 && python3 "$riscv/core.py" riscv64 && rm -f riscv64.txt riscv64.stack core core.[0-9]*)

# Without the zeros around what is in a segment, and with half a megabyte of it at most.
cat >shorten.py <<'CODE'
import struct, sys
for path in sys.argv[1:]:
    b = open(path, "rb").read()
    e, wide = "<>"[b[5] == 2], b[4] == 2
    at, = struct.unpack_from(e + "IQ"[wide], b, 32 if wide else 28)
    size, count = struct.unpack_from(e + "HH", b, 54 if wide else 42)
    out, place = bytearray(b[:at + size * count]), 0
    for i in range(count):
        h = at + i * size
        f = (8, 16, 32, 40) if wide else (4, 8, 16, 20)
        offset, address, length, memory = (struct.unpack_from(e + ("Q" if wide else "I"), b, h + x)[0] for x in f)
        content = b[offset:offset + length]
        if struct.unpack_from(e + "I", b, h)[0] == 1:
            skip = (len(content) - len(content.lstrip(b"\0"))) // 4096 * 4096
            content = content[skip:].rstrip(b"\0")[:1 << 19]
            address, memory = address + skip, max(memory - skip, len(content))
        for x, v in zip(f, (len(out), address, len(content), memory)):
            struct.pack_into(e + ("Q" if wide else "I"), out, h + x, v)
        out += content + b"\0" * (-len(content) % 8)
    open(path, "wb").write(out)
CODE
python3 shorten.py cores/*.core

cat >stands.c <<'CODE'
static int deepest(volatile int *p) { return *p; }
__attribute__((noinline)) int middle(int n) { return n ? middle(n - 1) + 1 : deepest(0); }
int main(void) { return middle(3); }
CODE
gcc -g -O0 -o dumps/stands stands.c
lldb-22 --batch -o run -k 'process save-core --plugin-name=minidump --style=stack dumps/lldb.dmp' -k kill dumps/stands >/dev/null 2>&1 </dev/null || true
[ -s dumps/lldb.dmp ]
cp "$crash/server.dmp" dumps/breakpad.dmp
cp "$repository"/engine/internal/target/minidump/testdata/*.dmp dumps/
mkdir store && "$unwindd" symbols --store store "$crash/server"
cp "$(find store -name '*.sym')" symbols/server.sym
for object in gcc5 frame sframe aarch64; do "$unwindd" symbols "debug/$object" -o "symbols/$object.sym"; done

"$unwindd" snapshot --any-file "$crash/server.core" -o snapshots/crash.snapshot
"$unwindd" snapshot --files cores/aarch64.core --exe cores/aarch64 -o snapshots/files.snapshot
"$unwindd" snapshot "$crash/server.dmp" -o snapshots/dump.snapshot
cp "$repository"/examples/*/*.snapshot "$repository/examples/arch-riscv64/testdata/crash.snapshot" snapshots/

cp "$repository/examples/gpu-profile/cpu.data" perf/plain.data
python3 - <<'CODE'
import struct
b = open("perf/plain.data", "rb").read()
size, attrs, attrsize, data, length = struct.unpack_from("<5Q", b, 16)
out = struct.pack("<8sQ", b"PERFILE2", 16)
for at in range(attrs, attrs + attrsize, size):
    ids, n = struct.unpack_from("<QQ", b, at + size - 16)
    body = b[at:at + size - 16] + b[ids:ids + n]
    out += struct.pack("<IHH", 64, 0, 8 + len(body)) + body
open("perf/pipe.data", "wb").write(out + b[data:data + length])
CODE
gcc -g -O1 -o jit/jit "$repository/engine/testdata/profile/jit.c"
perf record -q -k CLOCK_MONOTONIC -o jit/jit.data -e cpu-clock -F 99 --call-graph dwarf,512 jit/jit dump "$PWD/jit" >/dev/null 2>&1
perf record -q -o jit/kernel.data -e cpu-clock -F 99 -g -- head -c 30000000 /dev/urandom >/dev/null 2>&1
perf record -q -o perf/dwarf.data -e cpu-clock -F 199 --call-graph dwarf,1024 -- gzip -9c "$crash/server" >/dev/null 2>&1 || true
perf record -q -o perf/chains.data -e cpu-clock -F 499 -g -- gzip -9c "$crash/server" >/dev/null 2>&1 || true
perf record -o - -e cpu-clock -F 99 --call-graph dwarf,512 -- gzip -9c "$crash/server" 2>/dev/null 3>&1 >perf/mixed.data || true
perf record -q -z -o perf/packed.data -e cpu-clock -F 199 --call-graph dwarf,1024 -- gzip -9kc "$crash/server" >/dev/null 2>&1 || true
find perf -size 0 -delete
awk '$3 ~ /[tT]/' /proc/kallsyms | head -n 400 >kallsyms/kallsyms || true
for i in $(seq 300); do printf 'ffffffff81%06x t made_%d\nffffffffc0%06x t in_module_%d\t[module%d]\n' $((i * 64)) "$i" $((i * 32)) "$i" $((i / 50)); done | sort >kallsyms/made

cp "$repository/examples/gpu-profile/gpu.jsonl" "$repository/examples/gpu-profile/gpu_results.json" gpu/
for text in "$repository"/engine/internal/symbol/spirv/testdata/*.spvasm; do spirv-as --target-env spv1.6 -o "spirv/$(basename "$text" asm)" "$text" 2>/dev/null || true; done
cp "$repository"/engine/internal/symbol/spirv/testdata/*.spv spirv/
cp "$repository"/engine/internal/symbol/llvmir/testdata/*.ll llvmir/
clang++-22 -O1 -g -S -emit-llvm -ffreestanding -o llvmir/now.ll small.cc
clang++-22 -O1 -g -c -emit-llvm -ffreestanding -o llvmir/now.bc small.cc
cp "$repository"/plugins/visa/testdata/*.elf "$repository"/plugins/visa/testdata/*.zebin visa/

for core in cores/aarch64.core cores/riscv64.core; do
	name=packed/$(basename "$core")
	gzip -c "$core" >"$name.gz" && xz -c "$core" >"$name.xz" && zstd -qc "$core" >"$name.zst" && lz4 -qc "$core" >"$name.lz4"
done
(echo 'ProblemType: Crash' && echo 'ExecutablePath: /srv/example/server' && echo 'CoreDump: base64' && echo ' H4sICAAAAAAC/0NvcmVEdW1wAA==' &&
	python3 -c '
import base64, sys, zlib
c = zlib.compressobj(9, zlib.DEFLATED, -15)
b = open(sys.argv[1], "rb").read()
print(" " + base64.b64encode(c.compress(b) + c.flush()).decode())' cores/aarch64.core) >packed/report.crash

cat >config/all.toml <<'CODE'
disassembler = "/usr/bin/true"
[plugins]
dirs = ["/nowhere"]
[plugins.pins]
toy = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
[serve]
listen = ["unix:/run/unwindd/unwindd.sock"]
log-json = true
workers = 2
max-time = "20s"
max-memory = "2G"
[stack]
top = 3
locals = true
max-unpacked = "1G"
[profile]
event = ["cpu-clock"]
every = "20ms"
root = ["1=/"]
[symbols]
debug-dir = ["/"]
debuginfod = [""]
CODE
cp "$repository/examples/container/config.toml" config/
