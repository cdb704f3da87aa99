// SPDX-License-Identifier: Apache-2.0

package main

// situation is a way in which a program runs and is recorded.
type situation struct {
	name   string
	tools  []string
	script string // of bash; record is perf record
}

// java records a program of Java with some options.
func java(call, options string) string {
	return "javac T.java; record -k CLOCK_MONOTONIC -e cpu-clock --call-graph " + call +
		" java -Xmx64m -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit " + options + " T"
}

const dwarf = "-e cpu-clock --call-graph dwarf,16384 "

var situations = []situation{
	{"c", nil, "gcc -O2 -g work.c -o work; record " + dwarf + "./work"},
	{"c-stripped-static", nil, "gcc -O2 -static -s work.c -o work; record " + dwarf + "./work"},
	{"c++-threads", nil, "g++ -O2 -g work.cc -o work -pthread; record " + dwarf + "./work"},
	{"rust", []string{"rustc"}, "rustc -O -g work.rs -o work; record " + dwarf + "./work"},
	{"go", nil, "CGO_ENABLED=0 go build -o work work.go; record " + dwarf + "./work"},
	{"musl", []string{"musl-gcc"}, "musl-gcc -O2 -g work.c -o work; record " + dwarf + "./work"},
	{"32-bit", []string{"i686-linux-gnu-gcc"}, "i686-linux-gnu-gcc -static -O2 -g work.c -o work; record " + dwarf + "./work"},
	{"kernel", nil, "gcc -O2 -g kernel.c -o work; record " + dwarf + "./work"},
	{"all-processors", nil, "gcc -O2 -g work.c -o work; record -a " + dwarf + "./work"},
	{"per-thread", nil, "g++ -O2 -g work.cc -o work -pthread; ./work 30 & sleep 1; record --per-thread " + dwarf + "-p $! -- sleep 1; kill $!"},
	{"pipe", nil, "gcc -O2 -g work.c -o work; perf record -q -o - " + dwarf + "./work > perf.data"},
	{"fork", nil, "gcc -O2 -g work.c -o work; record " + dwarf + "./work fork"},
	{"deleted", nil, "gcc -O2 -g work.c -o work; record " + dwarf + "./work unlink"},
	{"upgraded", nil, "gcc -O2 -g work.c -o work; record " + dwarf + "./work; gcc -O0 kernel.c -o work"},
	{"chroot", nil, "mkdir root; gcc -O2 -g -static -Wl,--build-id work.c -o root/only; record " + dwarf + "chroot root /only"},
	{"container", []string{"unshare"}, "D=$(mktemp -d /var/tmp/jit.XXX); (sleep 60; rm -r $D) >/dev/null 2>&1 & gcc -O1 -fno-omit-frame-pointer jit.c -o $D/jit; mkdir -p t\n" +
		"unshare --fork --pid --mount --mount-proc bash -c \"mount --bind $PWD/t /tmp; exec $D/jit\" >/dev/null 2>&1 & sleep 1\n" +
		"record " + dwarf + "-p $(pgrep -n -x jit) -- sleep 1"},
	{"jit-fork", nil, "gcc -O1 -fno-omit-frame-pointer jit.c -o jit; record " + dwarf + "./jit fork"},
	{"java-fp", []string{"javac"}, java("fp", "-XX:+PreserveFramePointer")},
	{"java-dwarf", []string{"javac"}, java("dwarf,16384", "")},
	{"java-huge-pages", []string{"javac"}, "sysctl -q vm.nr_hugepages=220; trap 'sysctl -q vm.nr_hugepages=0' EXIT\n" +
		java("fp", "-XX:+PreserveFramePointer -Xms64m -XX:ReservedCodeCacheSize=64m -XX:+UseLargePages")},
	{"node", []string{"node"}, "record -k CLOCK_MONOTONIC " + dwarf + "node --perf-basic-prof work.js"},
	{"python-perf", []string{"python3.12"}, "record -e cpu-clock --call-graph fp python3.12 -X perf work.py"},
	{"python", []string{"python3"}, "record " + dwarf + "$(python3 -c 'import sys; print(sys.executable)') work.py"},
	{"php-map", []string{"php"}, "record " + dwarf + "php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1255 -d opcache.jit_debug=16 work.php"},
	{"php-dump", []string{"php"}, "record -k CLOCK_MONOTONIC " + dwarf + "php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1255 -d opcache.jit_debug=32 work.php"},
	{"erlang", []string{"erl", "erlc"}, "erlc work.erl; record -k CLOCK_MONOTONIC -e cpu-clock --call-graph fp erl +JPperf true -noshell -s work main"},
}
