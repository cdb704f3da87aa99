// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/engine/internal/target/machocore/machocoretest"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestEncryptedProgramsOfMacOS walks stacks as TestMacOSCoresAtEachInstruction, of cores without the program's code: it
// is in a file that is encrypted, whole or without its unwind information. No caller that is wrong is found by more
// than a guess, and with the code in the core, or nothing encrypted, none is wrong.
func TestEncryptedProgramsOfMacOS(t *testing.T) {
	oracle.Tools(t, "clang-22", "ld64.lld-22")
	source, err := filepath.Abs("testdata/macos")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"arm64", "x86_64"} {
		m := macMachines[name]
		dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
			{"clang-22", "-target", m.arch + "-apple-macos13", "-O2", "-fno-stack-protector", "-c", filepath.Join(source, "chain.c"), "-o", "chain.o"},
			{"ld64.lld-22", "-arch", m.arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", "chain", "chain.o"},
		}}.Make(t)
		plain, err := os.ReadFile(filepath.Join(dir, "chain"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := macho.New("chain", plain)
		if err != nil {
			t.Fatal(err)
		}
		code, text := f.Section("__TEXT", "__text"), f.Text()
		for _, c := range []encryptedCase{
			{what: "all", size: text.FileSize - code.Offset, system: 1},
			{what: "the code", size: code.Size, system: 1, hasBodies: true},
			{what: "all, and the core has it", size: text.FileSize - code.Offset, system: 1, isInCore: true, isRight: true},
			{what: "nothing", size: text.FileSize - code.Offset, isRight: true},
		} {
			c.offset = code.Offset
			t.Run(name+" "+c.what, func(t *testing.T) { c.check(t, m, f, plain) })
		}
	}
}

// encryptedCase is a part of a program that is encrypted.
type encryptedCase struct {
	what               string
	offset, size       uint64
	system             uint32
	isInCore           bool // its code is in the core
	hasBodies, isRight bool // rows of bodies are found; all stacks are right
}

func (c *encryptedCase) check(t *testing.T, m *macMachine, f *macho.File, plain []byte) {
	path := filepath.Join(t.TempDir(), "chain")
	if err := os.WriteFile(path, machotest.Encrypted(t, plain, uint32(c.offset), uint32(c.size), c.system), 0o600); err != nil { //nolint:gosec // small
		t.Fatal(err)
	}
	core := &machocoretest.Builder{Machine: m.number}
	text := f.Text()
	if c.isInCore {
		core.Segment(machocoretest.Segment{Address: text.Address + macSlide, Data: plain[:text.FileSize], Protection: text.Protection})
	}
	core.Images(machocoretest.Image{Path: path, UUID: f.UUID(), Address: text.Address + macSlide})
	core.Bits(47)
	truth := m.fill(t, core, chainOf(t, f))
	file := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(file, core.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, target := openMacOSCore(t, file, Options{})
	counts := map[string]int{}
	for i, th := range target.Threads() {
		c.checkStack(t, target.Walk(context.Background(), th), truth[i], counts)
	}
	t.Logf("%v of %d stacks", counts, len(truth))
	if is := counts["by function-body"] > 30; is != c.hasBodies { // a few are of the space between functions
		t.Errorf("frames found by the row of a body: %v, expected %v", is, c.hasBodies)
	}
	if c.isRight && counts["right"] != len(truth) {
		t.Errorf("%d of %d stacks are right", counts["right"], len(truth))
	}
	problems := strings.Join(target.process.Segment(text.Address+macSlide).Module.Info().Problems, "\n")
	if is := strings.Contains(problems, path+": ") && strings.Contains(problems, "are encrypted (cryptid 1)"); is != (c.system != 0 && !c.isInCore) {
		t.Errorf("problems %q", problems)
	}
}

// checkStack counts a stack. A return address that is not the true one is an error, unless it is marked.
func (c *encryptedCase) checkStack(t *testing.T, s *trace.Stack, truth []uint64, counts map[string]int) {
	t.Helper()
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.FoundBy == trace.ByFunctionBody {
			counts["by function-body"]++
		}
		switch isTrue := i < len(truth) && f.PC == truth[i]; {
		case isTrue:
		case f.FoundBy.IsGuess() || f.RestsOnGuess:
			counts["wrong and marked"]++
			return
		default:
			t.Errorf("thread %s: %#x, expected %#x; frame %d is found by %s", s.Thread.ID, pcsOf(s), truth, i, f.FoundBy)
			return
		}
	}
	if slices.Equal(pcsOf(s), truth) {
		counts["right"]++
	} else {
		counts["short"]++
	}
}
