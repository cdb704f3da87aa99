// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// igaLine is an instruction as iga64 lists it: its address, predicate and mask, and name.
var igaLine = regexp.MustCompile(`(?m)^/\* \[([0-9A-F]+)\]\s*\*/\s*(?:\([^)]*\)\s*)*([a-z0-9]+)(?:\.[a-z0-9.]+)? (.*)$`)

// decodeAll disassembles code and checks that it is covered.
func decodeAll(t *testing.T, code []byte, processor string) []sdk.Instruction {
	t.Helper()
	req := &sdk.DisassembleRequest{Address: 0x1000, Code: code, Processor: processor}
	answer, err := New().Disassemble(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	at := req.Address
	for _, in := range answer.Instructions {
		if in.Address != at {
			t.Fatalf("%#x, expected %#x", in.Address, at)
		}
		at += uint64(in.Size)
	}
	if at != req.Address+uint64(len(code)) {
		t.Fatalf("%d of %d bytes", at-req.Address, len(code))
	}
	return answer.Instructions
}

// TestDisassembleEqualsIGA holds the length of every instruction against Intel's
// disassembler, the names of those that are known, where calls go, and where they and
// returns have the address.
func TestDisassembleEqualsIGA(t *testing.T) {
	oracle.Tools(t, "iga64")
	for _, c := range []struct{ file, processor, platform string }{
		{"skl-rec-O2-1.elf", "skl", "9"}, {"tgllp-rec-O2-1.elf", "tgllp", "12p1"},
		{"dg2-g10-rec-O2-1.elf", "dg2-g10", "12p71"}, {"pvc-rec-O0-1.elf", "pvc", "12p72"},
	} {
		file, err := elf.Open(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		code, err := file.Section(".text").Data()
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(t.TempDir(), "code.bin")
		if err := os.WriteFile(binary, code, 0o600); err != nil {
			t.Fatal(err)
		}
		listed := igaLine.FindAllStringSubmatch(oracle.Run(t, "iga64", "-d", "-p="+c.platform, "-Xprint-pc", binary), -1)
		ours := decodeAll(t, code, c.processor)
		if len(listed) != len(ours) || len(ours) < 50 {
			t.Fatalf("%s: %d instructions, iga64 has %d", c.file, len(ours), len(listed))
		}
		named := 0
		for i, in := range ours {
			at, err := strconv.ParseUint(listed[i][1], 16, 64)
			if err != nil || at != in.Address-0x1000 {
				t.Fatalf("%s: %#x, iga64 has %#x, %v", c.file, in.Address-0x1000, at, err)
			}
			if want := igaText(listed[i][2], listed[i][3]); want != "" {
				named++
				if !strings.Contains(in.Text, "// "+want) {
					t.Errorf("%s: %#x: %s, expected %q of %s", c.file, at, in.Text, want, listed[i][0])
				}
			} else if !strings.Contains(in.Text, "// opcode ") {
				t.Errorf("%s: %#x: %s of %s", c.file, at, in.Text, listed[i][0])
			}
		}
		t.Logf("%s: %d instructions, %d of them named", c.file, len(ours), named)
	}
}

// igaText is what is written of an instruction of iga64's; "": only its opcode.
func igaText(name, operands string) string {
	fields := strings.Fields(operands)
	switch name {
	case "mov", "add", "send":
		return name
	case "call":
		for _, f := range fields {
			if label, ok := strings.CutPrefix(f, "L"); ok {
				if n, err := strconv.ParseUint(label, 10, 64); err == nil {
					return fmt.Sprintf("calls %#x, writes from byte 0 of r125 on", 0x1000+n)
				}
			}
		}
	case "ret":
		return "returns to the address in byte 0 of r125"
	}
	return ""
}

// TestDisassembleUnknownProcessor: opcodes are numbers, and lengths those that compaction
// says.
func TestDisassembleUnknownProcessor(t *testing.T) {
	full, short := make([]byte, 16), make([]byte, 8)
	full[0], short[0], short[3] = 0x61, 0x40, 0x20
	for _, processor := range []string{"", "none"} {
		list := decodeAll(t, append(append(full, short...), 1, 2, 3), processor)
		if len(list) != 3 || !strings.HasSuffix(list[0].Text, "// opcode 0x61") || !strings.HasSuffix(list[1].Text, "// opcode 0x40, compacted") ||
			list[2].Size != 3 || !strings.Contains(list[2].Text, "the code ends within an instruction") {
			t.Errorf("%q: %+v", processor, list)
		}
	}
	// call r10.0: the distance is in a register.
	indirect := []byte{0x2c, 0, 3, 0, 0, 0, 4, 0x7d, 4, 0xa, 0, 0, 0, 0, 0, 0}
	if list := decodeAll(t, indirect, "tgllp"); !strings.Contains(list[0].Text, "// calls by the distance in byte 0 of r10") {
		t.Errorf("an indirect call: %s", list[0].Text)
	}
}

func FuzzDisassemble(f *testing.F) {
	f.Add([]byte("\x61\x05\x04\x21\x04\x03\x10\x00"), "tgllp")
	f.Add([]byte("\x2c\x01\x03\x00\x00\x40\x04\x7d\x00\x00\x00\x00\xb8\xfd\xff\xff"), "skl")
	f.Fuzz(func(t *testing.T, code []byte, processor string) { decodeAll(t, code, processor) })
}
