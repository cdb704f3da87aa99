// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

const aarch64Root = "/usr/aarch64-linux-gnu"

// TestCoresOfAArch64ByQemu has a program of AArch64 crash under qemu, which writes a core
// of it, and walks that by the bundled plugin, in its own process: the calls that the
// source says, with the address signed and not, with call frame information and without.
func TestCoresOfAArch64ByQemu(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	for name, c := range map[string]struct {
		flags []string
		what  string // how the program ends
		want  []string
	}{
		"plain":             {[]string{"-O1", "-g"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"signed":            {[]string{"-O1", "-g", "-mbranch-protection=standard"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"static":            {[]string{"-O2", "-g", "-static", "-fno-optimize-sibling-calls"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without frames":    {[]string{"-O1", "-g", "-fomit-frame-pointer"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without CFI":       {[]string{"-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call":         {[]string{"-O1", "-g"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"null call, PAC":    {[]string{"-O1", "-g", "-mbranch-protection=pac-ret+leaf"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"large frame":       {[]string{"-O1", "-g", "-DROOM=70000"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call, no CFI": {[]string{"-O1", "-fno-asynchronous-unwind-tables"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			exe := filepath.Join(dir, "subject")
			oracle.Run(t, "aarch64-linux-gnu-gcc", append(c.flags, "-o", exe, subject.Source(t, "aarch64crash.c"))...)
			got := enginetest.Report(t, aarch64Core(t, dir, c.what), under(aarch64Root), madeOf(exe))
			names := []string{}
			for _, f := range got.Threads[0].Frames {
				if names = append(names, f.Function); f.Function == "main" {
					break
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%q, expected %q", names, c.want)
			}
			if last := got.Threads[0].Frames[len(got.Threads[0].Frames)-1]; last.Function != "_start" {
				t.Errorf("it ends in %s, expected _start: %+v", last.Function, got.Threads[0].Stopped)
			}
		})
	}
}

// aarch64Core is the core that qemu writes when ./subject of a folder crashes.
func aarch64Core(t *testing.T, dir string, args string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", "ulimit -c unlimited && exec qemu-aarch64 -cpu max -L "+aarch64Root+" ./subject "+args)
	cmd.Dir = dir
	_ = cmd.Run() // it crashes
	cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
	if len(cores) != 1 {
		list, _ := os.ReadDir(dir)
		t.Fatalf("%d cores of qemu in %v", len(cores), list)
	}
	return cores[0]
}

// TestLazyBindingOfAArch64 crashes while the dynamic linker looks for a function: the
// procedure linkage table pushed two words that the linker's call frame information does
// not count.
func TestLazyBindingOfAArch64(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	library, exe := filepath.Join(dir, "libchosen.so"), filepath.Join(dir, "subject")
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-g", "-fPIC", "-shared", "-o", library, write("chosen.c", `
static int chosen(void) { return 1; }
static int (*choose(void))(void) { *(volatile int *)8 = 1; return chosen; }
int choice(void) __attribute__((ifunc("choose")));
`))
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-g", "-Wl,-z,lazy,-rpath,"+dir, "-o", exe, write("subject.c", `
int choice(void);
__attribute__((noinline, noclone)) int step(int left) { volatile char room[64]; room[left] = 1; return (left ? step(left - 1) : choice()) + room[left]; }
int main(void) { return step(2); }
`), library)
	got := enginetest.Report(t, aarch64Core(t, dir, ""), under(aarch64Root), madeOf(exe))
	names := []string{}
	for _, f := range got.Threads[0].Frames {
		if f.Function != "" {
			names = append(names, f.Function)
		}
	}
	if want := []string{"choose", "step", "step", "step", "main", "__libc_start_main", "_start"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
}

// TestFrameRecordsOfAArch64 goes on by frame records above a function whose code does not
// tell where its frame is: the stack pointer of no caller is known, and the rows of their
// code need it.
func TestFrameRecordsOfAArch64(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	dir := t.TempDir()
	exe := filepath.Join(dir, "subject")
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-o", exe,
		subject.Source(t, "aarch64unread.c"))
	th := &enginetest.Report(t, aarch64Core(t, dir, ""), under(aarch64Root), madeOf(exe)).Threads[0]
	names := []string{}
	for i, f := range th.Frames {
		if f.Function != "" {
			names = append(names, f.Function)
		}
		if isGuess := trace.FoundBy(f.FoundBy).IsGuess(); isGuess != (i > 1) {
			t.Errorf("frame %d, %s: found by %s", i, f.Function, f.FoundBy)
		}
	}
	if want := []string{"reads", "unread", "above", "outer", "main", "__libc_start_main", "_start"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
	if th.Stopped.Reason != "outermost" {
		t.Errorf("stopped %+v, expected at the outermost frame", th.Stopped)
	}
}

// fiveInstructions asks for the code of every frame.
func fiveInstructions(a *enginetest.Ask) { a.Stack.Code = 5 }

// TestCodeOfAArch64 holds the code of every frame of a core against objdump, as
// instructions and by an LLVM tool that the user names.
func TestCodeOfAArch64(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", "qemu-aarch64", "sh")
	mc, objdump := oracle.Tool(t, "llvm-mc-22"), oracle.Tool(t, "llvm-objdump-22")
	dir := t.TempDir()
	exe := filepath.Join(dir, "subject")
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-static", "-mbranch-protection=standard", "-o", exe, subject.Source(t, "aarch64crash.c"))
	core := aarch64Core(t, dir, "data")
	listed := map[uint64][2]string{}
	listing := oracle.Run(t, "aarch64-linux-gnu-objdump", "-d", "-w", exe)
	for _, m := range regexp.MustCompile(`(?m)^\s*([0-9a-f]+):\t([0-9a-f]{8}) \t([^\t\n]+)(?:\t([^/<\n]*))?`).FindAllStringSubmatch(listing, -1) {
		listed[hexOf(t, m[1])] = [2]string{m[2], strings.TrimSpace(m[3] + " " + m[4])}
	}
	lines := 0
	for _, f := range enginetest.Report(t, core, madeOf(exe), fiveInstructions).Threads[0].Frames {
		current := 0
		for _, l := range *f.Code {
			lines++
			at := hexOf(t, l.PC)
			word, err := hex.DecodeString(l.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(word)
			want := listed[at]
			text := l.Text
			if mnemonic, _, _ := strings.Cut(text, " "); mnemonic != "mov" && mnemonic != "sub" && mnemonic != "add" {
				text = strings.Replace(text, " 0x", " ", 1) // a target
			}
			if hex.EncodeToString(word) != want[0] || text != want[1] {
				t.Errorf("%#x: %x %s, objdump has %s %s", at, word, l.Text, want[0], want[1])
			}
			if l.Current {
				current++
				if next := hexOf(t, f.PC); at != next && at+4 != next {
					t.Errorf("frame %s: %s is current", f.PC, l.PC)
				}
			}
		}
		if current != 1 || f.CodeProblem != "" {
			t.Errorf("frame %s: %d current instructions, %q", f.PC, current, f.CodeProblem)
		}
	}
	if lines < 25 {
		t.Errorf("%d instructions", lines)
	}
	out := enginetest.Text(t, core, madeOf(exe), fiveInstructions)
	for _, want := range []string{"\nnull pointer: reads 4 bytes at 0x0 through x0 in reads\n", "  bl 0x"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{mc, objdump} {
		byTool := enginetest.Text(t, core, madeOf(exe), fiveInstructions, func(a *enginetest.Ask) {
			a.Engine.Disassembler, a.Engine.Plugins.Self = tool, self
		})
		// The one problem is that qemu's cores do not tell build IDs.
		if strings.Count(byTool, "problem:") != 1 || !strings.Contains(byTool, "  bti c\n") || !strings.Contains(byTool, "  bl ") {
			t.Errorf("%s:\n%s", tool, byTool)
		}
	}
}
