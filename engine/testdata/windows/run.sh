#!/bin/sh
# Runs a program under Wine in the folder where it is called, and keeps what it prints:
#
#   run.sh OUTPUT PROGRAM ARGUMENT...
#
# Where OUTPUT is - the program is left to print, and has the process ID of this script.
#
# A prefix as wineboot makes it takes 700 MB and most of the time. The programs need a few
# libraries of it; with such a time stamp Wine leaves the prefix as it is.
set -e
system32=prefix/drive_c/windows/system32
if [ ! -d "$system32" ]; then
	mkdir -p "$system32" prefix/dosdevices
	ln -s ../drive_c prefix/dosdevices/c:
	ln -s / prefix/dosdevices/z:
	echo disable > prefix/.update-timestamp
	for name in ntdll kernel32 kernelbase msvcrt ucrtbase dbghelp version zlib1 user32 gdi32 win32u advapi32 sechost imm32; do
		cp /usr/lib/x86_64-linux-gnu/wine/x86_64-windows/$name.dll "$system32"
	done
fi
output=$1
shift
export WINEDEBUG=-all WINEPREFIX="$PWD/prefix" HOME="$PWD"
[ "$output" != - ] || exec /usr/lib/wine/wine64 "$@"
timeout 120 /usr/lib/wine/wine64 "$@" > "$output" 2> "$output.errors"
