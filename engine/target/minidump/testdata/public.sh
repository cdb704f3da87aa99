#!/bin/sh
# Makes the folder that UNWINDD_MINIDUMPS names in TestPublicDumpsReadAsBreakpadReadsThem:
# the dumps of three public repositories, and Breakpad's minidump_dump.
#
#   public.sh FOLDER [BREAKPAD RUST-MINIDUMP SYMBOLICATOR]
#
# The last three are repositories that git can read, here or elsewhere.
set -eu
folder=$1
breakpad=${2:-https://github.com/google/breakpad}
rust=${3:-https://github.com/rust-minidump/rust-minidump}
symbolicator=${4:-https://github.com/getsentry/symbolicator}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
take() { # NAME REPOSITORY FOLDER...
	name=$1 repository=$2
	shift 2
	git clone -q --depth 1 --filter=blob:none --no-checkout "$repository" "$work/$name"
	git -C "$work/$name" checkout -q HEAD -- "$@"
}
take breakpad "$breakpad" src
# full-dump.dmp is left out for its size.
take rust "$rust" 'testdata/*.dmp' ':!testdata/full-dump.dmp' minidump-stackwalk/tests/snapshots testdata/symbols
take symbolicator "$symbolicator" tests/fixtures
mkdir -p "$folder/breakpad" "$folder/rust" "$folder/symbolicator"
# Microdumps are texts.
find "$work/breakpad/src/processor/testdata" -name '*.dmp' ! -name 'microdump*' -exec cp {} "$folder/breakpad" \;
find "$work/rust/testdata" -name '*.dmp' -exec cp {} "$folder/rust" \;
cp -r "$work/rust/testdata/symbols" "$folder/rust"
# What minidump-stackwalk writes of them.
cp "$work"/rust/minidump-stackwalk/tests/snapshots/*json_pretty.snap "$folder/rust"
find "$work/symbolicator/tests/fixtures" -name '*.dmp' -exec cp {} "$folder/symbolicator" \;
cd "$work/breakpad/src"
for file in basic_code_modules convert_old_arm64_context dump_context dump_object logging minidump pathname_stripper proc_maps_linux minidump_dump; do
	c++ -O1 -std=c++20 -w -I. -include unistd.h -c "processor/$file.cc" -o "$work/$file.o"
done
c++ -O1 -std=c++20 -w -I. -include unistd.h -c common/path_helper.cc -o "$work/path_helper.o"
c++ "$work"/*.o -o "$folder/minidump_dump"
