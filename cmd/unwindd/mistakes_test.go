// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mistake is a command line that is wrong, with what is said about it.
type mistake struct {
	args   string
	status int
	says   string // the beginning of a line of standard error, or of standard output where it begins with "out: "
}

// mistakes are command lines that people wrote. orders is the executable of core, ledger another one.
var mistakes = []mistake{
	{"stack nosuch.core", 1, "unwindd: nosuch.core: no such file or directory"},
	{"stack m/empty", 1, "unwindd: m/empty: the file is empty, expected a core, a minidump or a snapshot"},
	{"stack m/random", 1, `unwindd: m/random: not a core, minidump or snapshot (it begins with "\xfb\xb1\x06f")`},
	{"stack m/a.pdf", 1, `unwindd: m/a.pdf: not a core, minidump or snapshot (it begins with "%PDF")`},
	{"stack m/text.txt", 1, `unwindd: m/text.txt: not a core, minidump or snapshot (it begins with "hell")`},
	{"stack m/emptydir", 1, "unwindd: m/emptydir: no file is in the folder, expected a core, a minidump or a snapshot (where the kernel puts cores is in /proc/sys/kernel/core_pattern)"},
	{"stack m", 1, "unwindd: m: none of its 4 files is a core, a minidump or a snapshot (where the kernel puts cores is in /proc/sys/kernel/core_pattern)"},
	{"stack orders", 1, "unwindd: orders is an executable"},
	{"stack cpp", 0, "out: elf-core cpp/core: signal 11 (SIGSEGV)"},
	{"stack core ledger", 0, "out:     problem: ledger was not used: build ID is"},
	{"stack core --exe ledger", 0, "out:     problem: ledger was not used: build ID is"},
	{"stack --cor core", 2, "unwindd: stack has no flag --cor; give the core as it is: unwindd stack core"},
	{"stack core --loclas", 2, "unwindd: stack has no flag --loclas; did you mean: --locals"},
	{"stack core --locals=yes", 2, "unwindd: --locals=yes: expected no value, or true or false"},
	{"stack core --source", 2, "unwindd: --source: expected a value, --source N: print N lines of source"},
	{"stack core --thread 1", 1, "unwindd: core: there is no thread 1; there are: "},
	{"stack core --thread main", 1, "unwindd: core: there is no thread main: --thread takes an ID, and the first thread is "},
	{"stack core --format yaml", 2, "unwindd: --format yaml: expected text, json, html"},
	{"stack core --format html -o /nonexistent/x.html", 1, "unwindd: -o /nonexistent/x.html: the folder /nonexistent does not exist"},
	{"stack core --format html -o core", 2, "unwindd: -o core: it is the file core, which is read and would be written over"},
	{"stack 99999999", 1, "unwindd: process 99999999: no such process, and no file has that name"},
	{"stack 2", 1, "unwindd: process 2 (kthreadd): it has no stacks: it is a thread of the kernel, whose stack root finds in /proc/2/stack"},
	{"stack -p 1", 2, "unwindd: stack has no flag -p; give the PID as it is: unwindd stack 1"},
	{"stack core --sysroot /nonexistent", 1, "unwindd: --sysroot: /nonexistent: no such file or directory"},
	{"stack core --debug-dir /nonexistent", 1, "unwindd: --debug-dir: /nonexistent: no such file or directory"},
	{"stack core --symbols /nonexistent", 1, "unwindd: --symbols: /nonexistent: no such file or directory"},
	{"stack core --symbols http://127.0.0.1:9", 0, "out: elf-core core: signal 11 (SIGSEGV)"},
	{"stack core --top -1", 2, "unwindd: --top -1: expected 1 or more"},
	{"stack core --code abc", 2, "unwindd: --code abc: expected a number"},
	{"stack core --lane 3", 1, "unwindd: core: no thread has a frame of a lane 3: lanes are of waves of accelerators, and there is none"},
	{"profile core", 1, "unwindd: core is a core: use `unwindd stack core`"},
	{"stack perf.data", 1, "unwindd: perf.data is a recording of perf: use `unwindd profile perf.data`"},
	{"symbolize core 0x1234", 0, "unwindd: hint: the file has a flag of its own: unwindd symbolize --obj core 0x1234"},
	{"symbolize --obj orders zzz", 0, "unwindd: hint: zzz is neither an address nor a function in the symbol table of orders: give an address, as 0x1257, or the name as the linker has it"},
	{"stack core cpp/core", 0, "out: elf-core cpp/core: signal 11 (SIGSEGV)"},
	{"stakc core", 2, `unwindd: there is no command "stakc" of unwindd; did you mean: unwindd stack core`},
	{"./core", 2, `unwindd: there is no command "./core" of unwindd; did you mean: unwindd stack ./core`},
	{"profile", 0, "out: perf.data: cpu-clock, 83 samples"},
	{"snapshot core", 2, "unwindd: expected -o FILE, which the snapshot is written to, as in: unwindd snapshot core -o crash.snapshot"},
	{"eval", 2, "unwindd: expected --arch ARCH and --expr TEXT, or --snapshot FILE and --var NAME, as in: unwindd eval --arch x86_64"},
	{"serve --listen localhost:999999", 1, "unwindd: listen tcp: address 999999: invalid port"},
	{"stack core --server localhost:1", 1, "unwindd: no server answers at localhost:1 (connection refused): start one with `unwindd serve --listen localhost:1`"},
	{"stack core --config /nonexistent", 1, "unwindd: --config: /nonexistent: no such file or directory"},
	{"submit core", 2, "unwindd: no queue: expected --queue URL, or a worker of this user, whose queue is in "},
	{"stack m2/a.pdb", 1, "unwindd: m2/a.pdb is a PDB file, debug information of Windows: give the dump, and the folder that has it: unwindd stack DUMP --symbols DIR; for addresses in the image use `unwindd symbolize --obj m2/a.pdb ADDRESS`"},
	{"stack m2/orders.dSYM", 1, "unwindd: m2/orders.dSYM is debug information of macOS: give the report or the dump, and then its folder: unwindd stack REPORT --debug-dir m2/orders.dSYM"},
	{"stack m2/perf.data.gz", 1, "unwindd: m2/perf.data.gz is a recording of perf, packed: use `unwindd profile m2/perf.data.gz`"},
	{"stack m2/words", 1, "unwindd: m2/words is an executable: give the core, then the executable: unwindd stack CORE m2/words; or the ID of a process of it: unwindd stack PID"},
	{"stack m2/a.o", 1, "unwindd: m2/a.o is an object file of a compiler: use `unwindd symbolize --obj m2/a.o ADDRESS`, or `unwindd dump rows m2/a.o`"},
	{"stack m2/a.pcap", 1, "unwindd: m2/a.pcap is a capture of network packets, which no command reads"},
	{"stack m2/stacks.json", 1, "unwindd: m2/stacks.json is JSON, perhaps of `unwindd stack`: it has no state of a process: give the core or the dump that it was made from"},
	{"stack m2/page.html", 1, "unwindd: m2/page.html is a page of HTML: open it in a browser; it has no state of a process: give the core or the dump that it was made from"},
	{"profile m2/crash.snapshot", 1, "unwindd: m2/crash.snapshot is a ZIP file, perhaps a snapshot: use `unwindd stack m2/crash.snapshot`"},
	{"stack orders core", 0, "out: elf-core core: signal 11 (SIGSEGV)"},
	{"stack --pid 1", 2, "unwindd: stack has no flag --pid; give the PID as it is: unwindd stack 1"},
	{"stack -h", 0, "out: Print the stack of every thread of a core"},
	{"stack --core=core", 2, "unwindd: stack has no flag --core; give the core as it is: unwindd stack core"},
	{"dump cfi perf.data", 1, "unwindd: perf.data: not an ELF file; perf.data is a recording of perf: use `unwindd profile perf.data`"},
	{"stack help", 2, "unwindd: stack: expected TARGET, found the word help"},
}

// writeMistaken makes the files that the mistakes are about, in a folder.
func writeMistaken(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, b []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(from, to string) []byte {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(to, b)
		return b
	}
	for _, name := range []string{"m/emptydir", "m2/orders.dSYM/Contents/Resources/DWARF"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copied(filepath.Join(crashDir, "server.core"), "core")
	copied(filepath.Join(crashDir, "server.core"), "cpp/core")
	copied(filepath.Join(crashDir, "server"), "orders")
	copied(filepath.Join(crashDir, "server"), "cpp/server")
	copied("/bin/true", "ledger")
	recording := copied("../../examples/profile/perf.data", "perf.data")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(recording)
	_ = z.Close()
	header := func(kind elf.Type) []byte {
		b := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1)
		b = append(b, make([]byte, 57)...)
		b[16], b[18] = byte(kind), byte(elf.EM_X86_64)
		return b
	}
	for name, text := range map[string]string{
		"m/empty": "", "m/random": "\xfb\xb1\x06f\x00\x80\x91", "m/a.pdf": "%PDF-1.4\n%\xe2\xe3\n1 0 obj\n", "m/text.txt": "hello\n",
		"m2/a.pdb": "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00", "m2/perf.data.gz": packed.String(), "m2/a.pcap": "\xd4\xc3\xb2\xa1\x02\x00\x04\x00",
		"m2/words": string(header(elf.ET_EXEC)), "m2/a.o": string(header(elf.ET_REL)),
	} {
		write(name, []byte(text))
	}
	for _, made := range []string{"stack core --format json -o m2/stacks.json", "stack core --format html -o m2/page.html", "snapshot core -o m2/crash.snapshot"} {
		if said, status := tried(t, dir, "", made); status != 0 {
			t.Fatalf("%s: %d %s", made, status, said)
		}
	}
}

// tried runs a command line in a folder, by this executable or by another one, and returns what it
// wrote: standard output first, its lines behind "out: ". One that does not end by itself is
// ended.
func tried(t *testing.T, dir, executable, args string) (said string, status int) {
	t.Helper()
	cmd := command(strings.Fields(args)...)
	if executable != "" {
		cmd.Path = executable
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	other := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	other.Cancel = func() error { return other.Process.Signal(syscall.SIGTERM) }
	other.Dir, other.Env = dir, append(cmd.Env, "XDG_STATE_HOME="+dir, "UNWINDD_QUEUE=", "UNWINDD_SERVER=", "UNWINDD_SYMBOLS=", "DEBUGINFOD_URLS=")
	var out, errs bytes.Buffer
	other.Stdout, other.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := other.Run(); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		said += "out: " + line
	}
	return said + errs.String(), other.ProcessState.ExitCode()
}

// TestMistakes holds what is said about wrong command lines. With -v it prints a table of it, beside
// what the executable of UNWINDD_BEFORE says.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	writeMistaken(t, dir)
	before := os.Getenv("UNWINDD_BEFORE")
	for i, m := range mistakes {
		if m.args == "stack 2" && !isKernels(2) {
			continue // a container has another process of that ID
		}
		said, status := tried(t, dir, "", m.args)
		if m.status >= 0 && status != m.status || !hasLine(said, m.says) && m.status >= 0 {
			t.Errorf("unwindd %s: status %d, expected %d and %q:\n%s", m.args, status, m.status, m.says, said)
		}
		wantHelp := m.status == exitUsage
		name := strings.Fields(m.args)[0]
		help := "Run 'unwindd " + name + " --help' for usage."
		if name == "stakc" || name == "./core" {
			help = "Run 'unwindd --help' for usage."
		}
		if hasLine(said, help) != wantHelp {
			t.Errorf("unwindd %s: the help of the command is named: %v, expected %v:\n%s", m.args, !wantHelp, wantHelp, said)
		}
		for _, word := range []string{"strconv", "stat /", "open /", "unexpected", "not a target"} {
			if strings.Contains(said, word) {
				t.Errorf("unwindd %s: %q is a programmer's word:\n%s", m.args, word, said)
			}
		}
		if before != "" {
			old, oldStatus := tried(t, dir, before, m.args)
			t.Logf("%d|%s|%s|%s", i+1, m.args, tableCell(old, oldStatus), tableCell(said, status))
		}
	}
}

// isKernels reports whether a process is a thread of the kernel by its name.
func isKernels(pid int) bool {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return string(name) == "kthreadd\n"
}

// hasLine reports whether a line of a text begins with another one.
func hasLine(said, line string) bool { return strings.Contains("\n"+said, "\n"+line) }

// tableCell makes a cell of the output of a command: its messages, or else its first line.
func tableCell(said string, status int) string {
	var lines []string
	for line := range strings.Lines(said) {
		if text := strings.TrimSuffix(line, "\n"); !strings.HasPrefix(text, "out: ") {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		first, _, _ := strings.Cut(strings.TrimPrefix(said, "out: "), "\n")
		lines = append(lines, first+" ...")
	}
	return fmt.Sprintf("%s [%d]", strings.Join(lines, " / "), status)
}
