#!/bin/sh
# Compiles the debug streams of this folder: DEVICE-SOURCE-OPTIONS-KERNEL.dbg.
# Debian packages: intel-opencl-icd libigdfcl1.
set -eu
out=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for stream in dg2-g10:rec:O2 pvc:rec:O0 skl:k:O0 skl:k:O2 skl:rec:O0 skl:rec:O2 \
	tgllp:k:O0 tgllp:k:O2 tgllp:multi:O2 tgllp:rec:O0 tgllp:rec:O2; do
	device=${stream%%:*} source=${stream#*:} options=${stream##*:}
	source=${source%:*} flags=-g
	[ "$options" = O0 ] && flags="-g -cl-opt-disable"
	rm -rf dump
	mkdir dump
	IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$work/dump/" \
		ocloc compile -file "$out/$source.cl" -device "$device" -options "$flags" >ocloc.log
	for f in dump/*.dbg; do
		cp "$f" "$out/$device-$source-$options-${f##*_000}"
	done
done
