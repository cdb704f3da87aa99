#!/bin/sh
# Makes the folder that UNWINDD_MINIDUMPS names in TestPublicDumpsReadAsBreakpadReadsThem, and
# in .ci/peers/minidumps: the dumps of four public repositories, a store of their symbols,
# published stacks, and Breakpad's minidump_dump, of a package of npm.
#
#   public.sh FOLDER [BREAKPAD RUST-MINIDUMP SYMBOLICATOR SYMBOLIC]
#
# The last four are repositories that git can read, here or elsewhere.
set -eu
folder=$1
breakpad=${2:-https://github.com/google/breakpad}
rust=${3:-https://github.com/rust-minidump/rust-minidump}
symbolicator=${4:-https://github.com/getsentry/symbolicator}
symbolic=${5:-https://github.com/getsentry/symbolic}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
take() { # NAME REPOSITORY PATH...
	name=$1 repository=$2
	shift 2
	git clone -q --depth 1 --filter=blob:none --no-checkout "$repository" "$work/$name"
	git -C "$work/$name" checkout -q HEAD -- "$@"
	mkdir -p "$folder/$name"
	# Microdumps are texts.
	find "$work/$name" -name '*.dmp' ! -name 'microdump*' -exec cp {} "$folder/$name" \;
}
take breakpad "$breakpad" src/processor/testdata
# full-dump.dmp is left out for its size.
take rust "$rust" testdata minidump-stackwalk/tests/snapshots ':!testdata/full-dump.dmp'
take symbolicator "$symbolicator" tests/fixtures
take symbolic "$symbolic" symbolic-testutils/fixtures/linux symbolic-testutils/fixtures/macos py/tests/res/minidump
cp -r "$work/rust/testdata/symbols" "$folder/rust"
# What rust-minidump's minidump-stackwalk writes of its dumps.
cp "$work"/rust/minidump-stackwalk/tests/snapshots/*json_pretty.snap "$folder/rust"

# A symbol file lies where its first line says: MODULE SYSTEM MACHINE ID NAME.
find "$work" -name '*.sym' ! -name '*.old.sym' | while read -r file; do
	head -n 1 "$file" | tr -d '\r' | while read -r kind _ _ id name; do
		[ "$kind" = MODULE ] || continue
		mkdir -p "$folder/symbols/$name/$id"
		cp "$file" "$folder/symbols/$name/$id/${name%.pdb}.sym"
	done
done
cd "$work"
npm pack --silent minidump@0.26.0 >/dev/null
tar xzf minidump-0.26.0.tgz package/bin/linux-x64/minidump_dump
cp package/bin/linux-x64/minidump_dump "$folder"
