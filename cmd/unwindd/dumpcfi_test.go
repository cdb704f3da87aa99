// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// dumpedEntry is an entry of `dump cfi`.
type dumpedEntry struct {
	Section       string
	Offset        uint64
	Kind          string
	Length        uint64
	Format        string
	Version       int
	Augmentation  string
	AddressSize   int    `json:"address_size"`
	SegmentSize   int    `json:"segment_selector_size"`
	CodeAlignment uint64 `json:"code_alignment"`
	DataAlignment int64  `json:"data_alignment"`
	ReturnAddress string `json:"return_address"`
	FDEEncoding   string `json:"fde_encoding"`
	LSDAEncoding  string `json:"lsda_encoding"`
	Personality   string
	LSDA          string
	CIE           uint64
	Start, End    string
	Instructions  []struct {
		Op         string
		Operands   []string
		Expression string
		Location   string
	}
}

func dumpCFI(t *testing.T, path string) (entries []dumpedEntry, problems []string) {
	t.Helper()
	out, err := command("dump", "cfi", "--format", "json", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Entries  []dumpedEntry
		Problems []string
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	return d.Entries, d.Problems
}

// entryLines is an entry as lines that llvm-dwarfdump's can be turned into.
func (x *rowText) entryLines(t *testing.T, e dumpedEntry) []string {
	t.Helper()
	lines := []string{fmt.Sprintf("%s+%#x %s length %#x", e.Section, e.Offset, e.Kind, e.Length), "Format: " + e.Format}
	switch e.Kind {
	case "CIE":
		lines = append(lines, fmt.Sprintf("Version: %d", e.Version), fmt.Sprintf("Augmentation: %q", e.Augmentation),
			fmt.Sprintf("Code alignment factor: %d", e.CodeAlignment), fmt.Sprintf("Data alignment factor: %d", e.DataAlignment),
			fmt.Sprintf("Return address column: %d", x.register(t, e.ReturnAddress)))
		if e.Version >= 4 {
			lines = append(lines, fmt.Sprintf("Address size: %d", e.AddressSize), fmt.Sprintf("Segment desc size: %d", e.SegmentSize))
		}
		if e.Personality != "" {
			lines = append(lines, "Personality Address: "+strings.TrimPrefix(e.Personality, "*"))
		}
	case "FDE":
		lines = append(lines, fmt.Sprintf("cie %#x %s to %s", e.CIE, e.Start, e.End))
		if e.LSDA != "" {
			lines = append(lines, "LSDA Address: "+strings.TrimPrefix(e.LSDA, "*"))
		}
	}
	for _, in := range e.Instructions {
		words := []string{in.Op}
		for _, o := range in.Operands {
			offset := strings.TrimPrefix(strings.TrimPrefix(o, "val"), "cfa")
			if b, isExpr := strings.CutPrefix(o, "expr:"); isExpr {
				expr, err := hex.DecodeString(b)
				if err != nil {
					t.Fatal(err)
				}
				words = append(words, x.expr("", expr))
			} else if n, err := strconv.ParseInt(strings.TrimPrefix(offset, "+"), 0, 64); err == nil {
				words = append(words, fmt.Sprint(n))
			} else if space, ok := x.names.Space(o); ok {
				words = append(words, fmt.Sprintf("in addrspace%d", space))
			} else {
				words = append(words, fmt.Sprint(x.register(t, o)))
			}
		}
		if in.Location != "" {
			words = append(words, "to "+in.Location)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

var (
	llvmEntry       = regexp.MustCompile(`^([0-9a-f]{8,}) ([0-9a-f]+) [0-9a-f]+ (CIE|FDE)(?: cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.\.([0-9a-f]+))?$`)
	llvmTerminator  = regexp.MustCompile(`^([0-9a-f]{8,}) ZERO terminator$`)
	llvmField       = regexp.MustCompile(`^  ([A-Z][A-Za-z ]*): +(\S.*)$`)
	llvmInstruction = regexp.MustCompile(`^  (DW_CFA_\w+):(?: (.*))?$`)
)

// llvmEntries lists the entries as llvm-dwarfdump has them.
func llvmEntries(t *testing.T, path string, x *rowText) [][]string {
	var entries [][]string
	pipe(t, exec.Command(llvm(t, "dwarfdump"), "--debug-frame", "--eh-frame", path), func(r io.Reader) {
		section := ""
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<26)
		add := func(line string) { entries[len(entries)-1] = append(entries[len(entries)-1], line) }
		var fields []string // of a CIE, whose order here is another
		for s.Scan() {
			line := s.Text()
			if len(fields) > 0 && (line == "" || strings.HasPrefix(line, "  DW_CFA_")) {
				for _, f := range fields {
					add(f)
				}
				fields = nil
			}
			if name, ok := strings.CutSuffix(line, " contents:"); ok {
				section = name
			} else if m := llvmTerminator.FindStringSubmatch(line); m != nil {
				offset, _ := strconv.ParseUint(m[1], 16, 64)
				entries = append(entries, []string{fmt.Sprintf("%s+%#x terminator length 0x0", section, offset), "Format: DWARF32"})
			} else if m := llvmEntry.FindStringSubmatch(line); m != nil {
				var n [5]uint64
				for i, digits := range []string{m[1], m[2], m[4], m[5], m[6]} {
					n[i], _ = strconv.ParseUint(digits, 16, 64)
				}
				entries = append(entries, []string{fmt.Sprintf("%s+%#x %s length %#x", section, n[0], m[3], n[1])})
				if m[3] == "FDE" {
					fields = []string{fmt.Sprintf("cie %#x %#x to %#x", n[2], n[3], n[4])}
				}
			} else if m := llvmInstruction.FindStringSubmatch(line); m != nil {
				add(strings.TrimSpace(m[1] + " " + x.llvmOperands(t, m[1], m[2])))
			} else if m := llvmField.FindStringSubmatch(line); m != nil {
				value := m[2]
				switch m[1] {
				case "Augmentation data":
					continue // what it means is in other lines
				case "Address size", "Segment desc size":
					fields = append(fields, m[1]+": "+value)
					continue
				case "Personality Address", "LSDA Address":
					n, _ := strconv.ParseUint(value, 16, 64)
					fields = append(fields, fmt.Sprintf("%s: %#x", m[1], n))
					continue
				}
				add(m[1] + ": " + value)
			}
		}
	})
	return entries
}

// llvmOperands are the operands of an instruction, with numbers for registers.
func (x *rowText) llvmOperands(t *testing.T, op, s string) string {
	t.Helper()
	head, expr := s, ""
	if at := strings.Index(s, "DW_OP_"); at >= 0 {
		head, expr = s[:at], x.operations(t, s[at:])
	}
	words := strings.Fields(head)
	for i, w := range words {
		switch {
		case w[0] >= 'A' && w[0] <= 'Z', strings.HasPrefix(w, "reg"):
			words[i] = fmt.Sprint(x.llvmRegister(t, w))
		case w[0] == '+':
			words[i] = w[1:]
		}
	}
	if expr != "" {
		words = append(words, expr)
	}
	return strings.Join(words, " ")
}

// TestEntriesEqualLLVMDwarfdump compares every field of every entry and every
// instruction.
func TestEntriesEqualLLVMDwarfdump(t *testing.T) {
	long(t)
	llvm(t, "dwarfdump")
	type file struct {
		path string
		x    *rowText
	}
	cpu := &rowText{names: x86_64.Description().Names(0), expr: decodable(t, locexpr.DWARF5)}
	wave64 := &rowText{names: amdgpu.Description().Names(64), expr: decodable(t, locexpr.LLVMUser)}
	var files []file
	for _, f := range rowFiles {
		// What a file without code is said to be at is of no use to llvm-dwarfdump.
		if !f.proof && f.name != "static" {
			files = append(files, file{f.path(t), cpu})
		}
	}
	for _, path := range subject.CodeObjects(t) {
		files = append(files, file{path, &rowText{names: amdgpu.Description().Names(wavesOf(t, path)), expr: wave64.expr}})
	}
	files = append(files, file{assemble(t, "vendor.s", "amdgcn-amd-amdhsa", "-mcpu=gfx90a"), wave64})
	for _, f := range files {
		t.Run(filepath.Base(f.path), func(t *testing.T) {
			entries, problems := dumpCFI(t, f.path)
			if len(problems) > 0 {
				t.Errorf("problems: %q", problems)
			}
			var got, rest [][]string
			for _, e := range entries {
				lines := f.x.entryLines(t, e)
				for i := range lines { // kind: of an expression is rows' own
					lines[i] = strings.Replace(lines[i], " :DW_OP_", " DW_OP_", 1)
				}
				if e.Section == ".debug_frame" {
					got = append(got, lines)
				} else {
					rest = append(rest, lines)
				}
			}
			got = append(got, rest...)
			want := llvmEntries(t, f.path, f.x)
			lines := 0
			for i := range want {
				lines += len(want[i])
				if i < len(got) && !cmp.Equal(want[i], got[i]) {
					t.Fatalf("entry %d (-llvm-dwarfdump +unwindd):\n%s", i, cmp.Diff(want[i], got[i]))
				}
			}
			if len(want) != len(got) {
				t.Errorf("%d entries, llvm-dwarfdump has %d", len(got), len(want))
			}
			t.Logf("%s: %d entries, %d lines", f.path, len(got), lines)
		})
	}
}
