// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// newerProcessors are those of the table that LLVM 22 does not know yet, or not
// any more.
const newerProcessors = " gfx940 gfx941 gfx1154 gfx1170 gfx1171 gfx1172 gfx12-5-generic "

// TestProcessorsAreThoseOfLLVM asks llvm-readelf what each number of the flags
// stands for.
func TestProcessorsAreThoseOfLLVM(t *testing.T) {
	tool := oracle.Tool(t, "llvm-readelf-22")
	file, err := os.ReadFile("testdata/amd_k.gfx1100.co")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"-h"}
	for n := range uint32(mach + 1) {
		b := bytes.Clone(file)
		binary.LittleEndian.PutUint32(b[48:], n)
		path := filepath.Join(dir, fmt.Sprintf("%02x", n))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ *Flags: +0x([0-9a-fA-F]+)(?:, (\S+))?`).FindAllStringSubmatch(string(out), -1)
	if len(lines) != mach+1 {
		t.Fatalf("%d lines of flags in %d bytes", len(lines), len(out))
	}
	known := 0
	for n, line := range lines {
		theirs, ours := line[2], ""
		if p := processorOf(uint32(n)); p != nil {
			ours = p.name
		}
		switch {
		case theirs == ours:
		case theirs == "" && strings.Contains(newerProcessors, " "+ours+" "):
		case ours == "" && (n < 0x2c || !strings.HasPrefix(theirs, "gfx9") && !strings.HasPrefix(theirs, "gfx1")): // before gfx9
		default:
			t.Errorf("%#x: %q, of llvm-readelf %q", n, ours, theirs)
		}
		if theirs != "" && theirs == ours {
			known++
		}
	}
	if known < 35 {
		t.Errorf("%d processors are in both tables", known)
	}
}
