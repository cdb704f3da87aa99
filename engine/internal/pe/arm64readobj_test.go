// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// arm64Name returns llvm-readobj's name of a register, and lr for x30, which llvm-readobj calls lr or x30.
func arm64Name(r uint8) string {
	switch {
	case r == arm64LR:
		return "lr"
	case r >= arm64V0:
		return fmt.Sprintf("d%d", r-arm64V0)
	}
	return fmt.Sprintf("x%d", r)
}

// llvm is a code as llvm-readobj writes it, for a prologue or an epilogue.
func (c *ARM64Code) llvm(isProlog bool) string {
	pick := func(prolog, epilog string) string {
		if isProlog {
			return prolog
		}
		return epilog
	}
	switch arm64Operations[c.Operation].kind {
	case allocates:
		return fmt.Sprintf("%s sp, #%d", pick("sub", "add"), c.Value)
	case signs:
		return pick("pacibsp", "autibsp")
	case setsFrame:
		if c.Operation == ARM64SetFP {
			return pick("mov x29, sp", "mov sp, x29")
		}
		return fmt.Sprintf(pick("add x29, sp, #%d", "sub sp, x29, #%d"), c.Value)
	case saves:
		if c.Operation == ARM64SaveNext {
			return pick("save", "restore") + " next"
		}
		text := pick("st", "ld") + "r " + arm64Name(c.Registers[0])
		if c.Count == 2 {
			text = pick("st", "ld") + "p " + arm64Name(c.Registers[0]) + ", " + arm64Name(c.Registers[1])
		}
		if c.IsPre {
			return text + fmt.Sprintf(pick(", [sp, #-%d]!", ", [sp], #%d"), c.Value)
		}
		return text + fmt.Sprintf(", [sp, #%d]", c.Value)
	}
	return c.Operation.String()
}

func llvmTexts(codes []ARM64Code, isProlog bool) (list []string) {
	for i := range codes {
		list = append(list, codes[i].llvm(isProlog))
	}
	return list
}

// text is the information in lines that llvm-readobj has, too.
func (u *ARM64Info) text(fn Function) (lines []string) {
	lines = append(lines, fmt.Sprintf("%#x %d bytes", fn.Start, fn.End-fn.Start), "prologue")
	lines = append(lines, llvmTexts(u.Prolog, true)...)
	if u.Packed == nil {
		for _, e := range u.Epilogs {
			lines = append(lines, fmt.Sprintf("epilogue %d", (e.Start-fn.Start)/4))
			lines = append(lines, llvmTexts(e.Codes, false)...)
		}
	}
	return lines
}

// arm64Readobj are the entries of .pdata by llvm-readobj, in the lines of ARM64Info.text.
func arm64Readobj(t testing.TB, path string) (all [][]string) {
	t.Helper()
	rename := strings.NewReplacer("x30", "lr", "fp", "x29", "sub sp, sp,", "sub sp,")
	var lines []string
	var length uint64
	isPacked, isSingle := false, false
	for s := bufio.NewScanner(strings.NewReader(oracle.Run(t, "llvm-readobj-22", "--unwind", path))); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		key, rest, _ := strings.Cut(line, ": ")
		switch _, code, isCode := strings.Cut(line, "; "); {
		case key == "Function":
			if lines != nil {
				all = append(all, lines)
			}
			digits := strings.Trim(rest[strings.LastIndexByte(rest, '(')+1:], ")")
			lines, isPacked, isSingle = []string{digits}, false, false
		case key == "FunctionLength":
			length, _ = strconv.ParseUint(rest, 10, 64)
			lines[0] = fmt.Sprintf("%s %d bytes", strings.ToLower(lines[0]), length)
		case key == "Fragment":
			isPacked = true
		case key == "EpiloguePacked":
			isSingle = rest == "Yes"
		case line == "Prologue [":
			lines = append(lines, "prologue")
		case line == "Epilogue [" && isSingle:
			lines = append(lines, "epilogue at the end")
		case key == "StartOffset":
			lines = append(lines, "epilogue "+rest)
		case isCode:
			lines = append(lines, rename.Replace(code))
		case isPacked && !strings.ContainsAny(line, "]{}:") || isPacked && strings.Contains(line, "[sp"):
			if line = rename.Replace(line); strings.HasSuffix(line, "[sp]") {
				line = strings.TrimSuffix(line, "]") + ", #0]"
			}
			lines = append(lines, line)
		}
	}
	return append(all, lines)
}

// compareARM64 compares the entries of a file with the ones that llvm-readobj prints. It returns the number
// of entries, and how many of them are packed.
func compareARM64(t *testing.T, path string) (entries, packed int) {
	t.Helper()
	f := open(t, path)
	all := arm64Readobj(t, path)
	err := f.Functions(func(fn Function) bool {
		u, err := f.ARM64Info(fn)
		if err != nil || entries == len(all) {
			t.Errorf("%s: %d: %v", path, entries, err)
			return false
		}
		ours, theirs := u.text(fn), all[entries]
		entries++
		if u.Packed != nil {
			packed++
			for i, line := range theirs { // registers with arguments, which are not undone
				if strings.HasPrefix(line, "stp x") && strings.IndexByte("0246", line[5]) >= 0 && line[6] == ',' {
					theirs[i] = "nop"
					if strings.HasSuffix(line, "!") {
						theirs[i] = "sub sp, #" + strings.Trim(line[strings.IndexByte(line, '-'):], "-]!")
					}
				}
			}
		} else if n := slices.Index(theirs, "epilogue at the end"); n >= 0 {
			theirs[n] = fmt.Sprintf("epilogue %d", (u.Epilogs[0].Start-fn.Start)/4)
		}
		if n := len(u.Prolog) + 2; u.Packed == nil && len(theirs) == n && len(u.Epilogs) == 1 && slices.Equal(u.Epilogs[0].Codes, u.Prolog) {
			ours = ours[:n] // it has the epilogue's codes once where they are the prologue's
		}
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s:\n%s\nllvm-readobj:\n%s", path, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
		}
		return !t.Failed()
	})
	if err != nil || entries != len(all) {
		t.Errorf("%s: %d entries, llvm-readobj has %d: %v", path, entries, len(all), err)
	}
	for _, p := range f.Problems() {
		t.Error(p)
	}
	return entries, packed
}

// TestARM64UnwindInformationIsThatOfReadobj compares every entry of .pdata of clang's images.
func TestARM64UnwindInformationIsThatOfReadobj(t *testing.T) {
	entries, packed := 0, 0
	for _, path := range arm64Programs(t) {
		n, m := compareARM64(t, path)
		entries, packed = entries+n, packed+m
	}
	t.Logf("%d entries, %d packed", entries, packed)
	if packed < 100 || entries < 1000 {
		t.Errorf("%d entries, %d packed: expected many", entries, packed)
	}
}

// Packed data of every form are compared: all numbers of registers, homed arguments or none, all ways
// to save lr, and sizes round those at which other instructions are needed.
func TestEveryPackedFormIsThatOfReadobj(t *testing.T) {
	m := &maker{machine: MachineARM64, name: ".pdata"}
	var table []uint32
	at := uint32(0x100000) // there is no code
	for regF := range uint32(8) {
		for regI := range uint32(11) {
			for more := range uint32(8) { // H, CR
				for _, size := range []uint32{0, 1, 2, 5, 8, 12, 15, 31, 32, 33, 36, 48, 254, 255, 256, 264, 270, 300, 511} {
					word := arm64PackedFunction | 1<<2 | regF<<13 | regI<<16 | more<<20 | size<<23
					p := ARM64Packed{RegF: uint8(regF), RegI: uint8(regI), H: more&1 != 0, CR: uint8(more >> 1), FrameSize: size * 16}
					if _, _, err := p.codes(); err == nil {
						table = append(table, at, word)
						at += 4
					}
				}
			}
		}
	}
	m.functions(table...)
	path := filepath.Join(t.TempDir(), "packed.exe")
	if err := os.WriteFile(path, m.file(), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, packed := compareARM64(t, path)
	t.Logf("%d entries", entries)
	if entries != packed || entries < 3000 {
		t.Errorf("%d entries, %d packed", entries, packed)
	}
}
