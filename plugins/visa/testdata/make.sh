#!/bin/sh
# Compiles the ELF files of this folder with Debian's ocloc (intel-opencl-icd), from
# the sources of ../stream/testdata, whose streams belong to them: X.elf to X.dbg.
# X.based.elf is what the compiler writes with IGC_EnableGTLocationDebugging=1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/src
mkdir -p "$work"
cp "$here"/../stream/testdata/*.cl "$work"
cd "$work"
make() { # device source options name suffix
	rm -rf dump out
	mkdir dump
	IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$work/dump/" \
		ocloc compile -file "$2.cl" -device "$1" -options "-g $3" -out_dir out >ocloc.log
	for f in dump/*_entry_0001.elf; do cp "$f" "$here/$1-$2-$4-1$5.elf"; done
}
make skl rec "" O2 ""
make tgllp rec "" O2 ""
make tgllp k "" O2 ""
make dg2-g10 rec "" O2 ""
make pvc rec -cl-opt-disable O0 ""
export IGC_EnableGTLocationDebugging=1
make dg2-g10 rec "" O2 .based
unset IGC_EnableGTLocationDebugging
ocloc compile -file rec.cl -device skl -options "-g -cl-opt-disable" --format zebin -out_dir out >ocloc.log
cp out/rec_*.bin "$here/skl-rec-O0.zebin"
