#!/bin/sh
# Makes the executables that the tests read: g++ 12.2.0, binutils 2.40.
# small5: DWARF 5; small4: DWARF 4 with aranges, type units; small2: DWARF 2.
set -e
cd "$(dirname "$0")"
common="-O2 -nostdlib -static -fno-asynchronous-unwind-tables -ffile-prefix-map=$PWD=/src -fno-record-gcc-switches -Wl,--build-id=none -Wl,-z,noseparate-code"
g++ $common -gdwarf-5 -o small5 small.cc
g++ $common -gdwarf-4 -fdebug-types-section -o small4 small.cc
g++ $common -gdwarf-2 -gstrict-dwarf -o small2 small.cc
# split5: a skeleton, its split file and package: clang 14, llvm-dwp 22.
clang++ -O2 -nostdlib -fno-asynchronous-unwind-tables -ffile-prefix-map="$PWD"=/src -gdwarf-5 -gsplit-dwarf -c -o split5.o small.cc
g++ $common -o split5 split5.o
llvm-dwp-22 split5.dwo -o split5.dwp
rm split5.o
