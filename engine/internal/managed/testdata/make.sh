#!/bin/sh
# Makes runtime.elf. C has no names with a dot in them.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
cp runtime.c "$dir/runtime"
(cd "$dir" && gcc -x c -g -gdwarf-4 -O1 -fno-pie -fdebug-prefix-map="$dir=." -c runtime -o runtime.o)
ld -static -e 0 --build-id=none "$dir/runtime.o" -o "$dir/runtime.elf"
sed 's/runtime_/runtime./g' "$dir/runtime.elf" > runtime.elf
rm -r "$dir"
