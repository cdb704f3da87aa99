// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// llvmNames are the registers as llvm-readobj calls them, by their number.
var llvmNames = [16]string{"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// text is unwind information in the lines of llvm-readobj, without those that have names
// of symbols only.
func (u *UnwindInfo) text(f *File, fn Function) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("StartAddress: (0x%X)", fn.Start)
	add("EndAddress: (0x%X)", fn.End)
	add("UnwindInfoAddress: (0x%X)", f.address(fn.entry.unwind))
	add("Version: %d", u.Version)
	add("Flags [ (0x%X)", u.Flags)
	add("PrologSize: %d", u.PrologSize)
	if u.FrameRegister != 0 {
		add("FrameRegister: %s (0x%X)", llvmNames[u.FrameRegister], u.FrameRegister)
		add("FrameOffset: 0x%X", u.FrameOffset/16)
	} else {
		add("FrameRegister: -")
		add("FrameOffset: -")
	}
	for _, c := range u.Codes {
		add("0x%02X: %s", c.Offset, c.llvm(u))
	}
	if u.Handler != 0 {
		add("Handler: (0x%X)", u.Handler)
	}
	return lines
}

// llvm is a code as llvm-readobj writes it.
func (c UnwindCode) llvm(u *UnwindInfo) string {
	switch c.Operation {
	case PushNonvol:
		return "PUSH_NONVOL reg=" + llvmNames[c.Register]
	case AllocLarge, AllocSmall:
		return fmt.Sprintf("%v size=%d", c.Operation, c.Value)
	case SetFPReg:
		return fmt.Sprintf("SET_FPREG reg=%s, offset=0x%X", llvmNames[u.FrameRegister], u.FrameOffset)
	case SaveNonvol, SaveNonvolFar:
		return fmt.Sprintf("%v reg=%s, offset=0x%X", c.Operation, llvmNames[c.Register], c.Value)
	case SaveXMM128, SaveXMM128Far:
		return fmt.Sprintf("%v reg=XMM%d, offset=0x%X", c.Operation, c.Register, c.Value)
	case PushMachFrame:
		return "PUSH_MACHFRAME errcode=" + [...]string{"no", "yes"}[c.Value]
	}
	return "?"
}

// readobj calls yield with the lines of each function that llvm-readobj prints.
func readobj(t testing.TB, path string, yield func(lines []string)) {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, "llvm-readobj-22"), "--unwind", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(out); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		key, rest, _ := strings.Cut(line, ": ")
		switch {
		case line == "RuntimeFunction {" && lines != nil:
			yield(lines)
			lines = nil
		case key == "StartAddress", key == "EndAddress", key == "UnwindInfoAddress", key == "Handler":
			lines = append(lines, key+": "+rest[strings.LastIndexByte(rest, '('):])
		case strings.HasPrefix(line, "Flags ["):
			lines = append(lines, line)
		case key == "Version", key == "PrologSize", key == "FrameRegister", key == "FrameOffset", len(key) == 4 && strings.HasPrefix(key, "0x"):
			lines = append(lines, line)
		}
	}
	if lines != nil {
		yield(lines)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("llvm-readobj-22 %s: %v", path, err)
	}
}

// TestUnwindInformationIsThatOfReadobj compares every entry of .pdata of every library, and
// of MinGW's programs, with what llvm-readobj says.
func TestUnwindInformationIsThatOfReadobj(t *testing.T) {
	oracle.Tools(t, "llvm-readobj-22", mingwC, mingwCXX)
	entries, files, codes := 0, 0, 0
	for _, path := range append(libraries(t), programs(t)...) {
		f := open(t, path)
		var all []Function
		if err := f.Functions(func(fn Function) bool {
			all = append(all, fn)
			return true
		}); err != nil {
			t.Error(err)
		}
		files++
		i := 0
		readobj(t, path, func(theirs []string) {
			if len(theirs) > 2 && startOf(theirs[0]) == startOf(theirs[1]) {
				return // an empty function, which is no range of code
			}
			if i >= len(all) {
				t.Errorf("%s: there is also %v", path, theirs)
				return
			}
			u, err := f.UnwindInfo(all[i])
			if err != nil {
				t.Error(err)
				return
			}
			if ours := u.text(f, all[i]); strings.Join(ours, "\n") != strings.Join(theirs, "\n") {
				t.Errorf("%s:\n%s\nllvm-readobj:\n%s", path, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
			}
			codes += len(u.Codes)
			i++
			entries++
		})
		if i != len(all) {
			t.Errorf("%s: %d functions, llvm-readobj has %d", path, len(all), i)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d files, %d entries, %d codes", files, entries, codes)
}

func startOf(line string) string { return line[strings.LastIndexByte(line, '('):] }
