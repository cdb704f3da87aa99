// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// TestMain lets the test binary be what confines tools.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" && os.Args[2] == "exec" {
		fmt.Fprintln(os.Stderr, confine.ExecMain(os.Args[3:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// manager runs programs by this test binary.
func manager(t *testing.T) *plugin.Manager {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, err := plugin.NewManager(plugin.Options{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// script is a tool that is a script of the shell's.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

var gfx90a = sdk.LLVMTarget{Triple: "amdgcn-amd-amdhsa", CPU: "gfx90a"}

// stretch is code of words, of which sizes says how many each instruction has.
func stretch(address uint64, words []uint32, sizes ...uint32) Stretch {
	s := Stretch{Address: address}
	for _, w := range words {
		s.Bytes = binary.LittleEndian.AppendUint32(s.Bytes, w)
	}
	for _, n := range sizes {
		s.Sizes = append(s.Sizes, 4*n)
	}
	return s
}

// waits, adds with a literal, and calls.
func sampleCode() []Stretch {
	return []Stretch{
		stretch(0x1000, []uint32{0xbf8c0070, 0x8004ff04, 0xfffffe30, 0xbe9e1e04}, 1, 2, 1),
		stretch(0x7f0000002000, []uint32{0xbf8c0070, 0, 0xbf810000}, 1, 1, 1),
	}
}

// TestToolsGiveTexts asks both tools, by name, by link and by help.
func TestToolsGiveTexts(t *testing.T) {
	m := manager(t)
	want := [][]string{
		{"s_waitcnt vmcnt(0) lgkmcnt(0)", "s_add_u32 s4, s4, 0xfffffe30", "s_swappc_b64 s[30:31], s[4:5]"},
		{"s_waitcnt vmcnt(0) lgkmcnt(0)", "v_cndmask_b32_e32 v0, s0, v0, vcc", "s_endpgm"},
	}
	for _, name := range []string{"llvm-mc-22", "llvm-objdump-22"} {
		path := oracle.Tool(t, name)
		link := filepath.Join(t.TempDir(), "disassemble")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "other")
		if b, err := os.ReadFile(path); err != nil || os.WriteFile(copied, b, 0o755) != nil {
			t.Fatal(err)
		}
		for _, path := range []string{path, link, copied} {
			p := New(path, m)
			if d := cmp.Diff(want, p.Texts(context.Background(), gfx90a, sampleCode())); d != "" {
				t.Errorf("%s (-want +got): %s", path, d)
			}
			if list := p.Problems(); list != nil {
				t.Error(path, list)
			}
		}
	}
}

// TestToolsDoNotKnow gives the tools a word that is no instruction, and a decoder's lengths
// that are not theirs: the others keep their texts.
func TestToolsDoNotKnow(t *testing.T) {
	m := manager(t)
	for _, name := range []string{"llvm-mc-22", "llvm-objdump-22"} {
		path := oracle.Tool(t, name)
		unknown := stretch(0x1000, []uint32{0xbf8c0070, 0xbf9effff, 0xbf810000}, 1, 1, 1)
		p := New(path, m)
		got := p.Texts(context.Background(), gfx90a, []Stretch{unknown})
		if d := cmp.Diff([][]string{{"s_waitcnt vmcnt(0) lgkmcnt(0)", "", "s_endpgm"}}, got); d != "" {
			t.Errorf("%s, an unknown word (-want +got): %s", name, d)
		}
		if list := strings.Join(p.Problems(), "\n"); !strings.Contains(list, "does not know instructions (1)") {
			t.Errorf("%s: %q", name, list)
		}

		p = New(path, m)
		none := stretch(0x1000, []uint32{0xbf9effff}, 1)
		p.Texts(context.Background(), gfx90a, []Stretch{none})
		if got := p.Texts(context.Background(), gfx90a, sampleCode()); got[0][0] != "s_waitcnt vmcnt(0) lgkmcnt(0)" {
			t.Errorf("%s, after nothing that it knows: %q, %q", name, got, p.Problems())
		}

		long := stretch(0x1000, []uint32{0xbf8c0070, 0xbf800000, 0xbf800001, 0xbf810000}, 1, 2, 1)
		p = New(path, m)
		got = p.Texts(context.Background(), gfx90a, []Stretch{long})
		if d := cmp.Diff([][]string{{"s_waitcnt vmcnt(0) lgkmcnt(0)", "", "s_endpgm"}}, got); d != "" {
			t.Errorf("%s, two instructions for one (-want +got): %s", name, d)
		}
		if list := p.Problems(); len(list) != 1 || !strings.Contains(list[0], "gives other lengths to 1 instructions") {
			t.Errorf("%s: %q", name, list)
		}
	}
}

// TestBadTools: whatever a tool does, texts are those of the decoder, one sentence names
// the tool, and it is not asked again.
func TestBadTools(t *testing.T) {
	m := manager(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("\ts_nop 0 ; encoding: [0x70,0x00,0x8c,0xbf]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const nothing = `read x < /dev/null`
	for _, c := range []struct{ what, name, text, problem string }{
		{"computes for ever", "llvm-mc", `while :; do :; done`, "did not end within 300ms of processor time"},
		{"floods", "llvm-mc", `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`, "wrote more than"},
		{"floods standard error", "llvm-objdump", `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&2; done`, "wrote more than"},
		{"crashes", "llvm-mc", `kill -SEGV $$`, "was killed by signal 11"},
		{"says nothing", "llvm-objdump", nothing, "gave no instruction, and exit status 1"},
		{"says why", "llvm-mc", `echo "error: no such target" >&2; exit 3`, "exit status 3: error: no such target"},
		{"knows no such processor", "llvm-mc", `echo "'gfx90a' is not a recognized processor for this target (ignoring processor)" >&2
			while read -r l; do echo "	s_nop 0 ; encoding: [0x00,0x00,0x80,0xbf]"; done`, "'gfx90a' is not a recognized processor"},
		{"lies of lengths", "llvm-mc", `while read -r l; do echo "	s_nop 0 ; encoding: [0x00,0x00,0x80,0xbf,0x00]"; done`, "gives other lengths to 6 instructions"},
		{"lies of counts", "llvm-mc", `while read -r l; do for i in 1 2 3; do echo "	s_nop 0 ; encoding: [0x00,0x00,0x80,0xbf]"; done; done`, "gives other lengths to 6 instructions"},
		{"lies of addresses", "llvm-objdump", `echo "Disassembly of section 1:"; echo "	s_nop 0 // 7F0000002002: BF800000"`, "does not know instructions (6)"},
		{"lies of sections", "llvm-objdump", `echo "Disassembly of section 18446744073709551617:"; echo "Disassembly of section 7:"; echo "	s_nop 0 // 000000001000: BF800000"`, "does not know instructions (6)"},
		{"writes escapes", "llvm-objdump", `echo "Disassembly of section 0:"; printf '\t\033[2J // 000000001000: BF800000\n'`, "does not know instructions (6)"},
		{"reads a file", "llvm-mc", `while read -r l; do echo "$l"; done < ` + secret, "exit status 2"},
		{"is another program", "tool", `echo "a tool"`, `is none of llvm-mc, llvm-objdump, nvdisasm and cuobjdump: its help begins with "a tool"`},
	} {
		path := script(t, c.name, c.text)
		p := New(path, m)
		p.processor, p.wall = 300*time.Millisecond, time.Minute
		texts := p.Texts(context.Background(), gfx90a, sampleCode())
		if d := cmp.Diff([][]string{{"", "", ""}, {"", "", ""}}, texts); d != "" {
			t.Errorf("a tool that %s (-want +got): %s", c.what, d)
		}
		list := p.Problems()
		if len(list) != 1 || !strings.Contains(list[0], c.problem) || !strings.HasPrefix(list[0], "disassembler "+path+": ") {
			t.Errorf("a tool that %s: %q, expected %q", c.what, list, c.problem)
		}
	}
	p := New(script(t, "llvm-mc", `while :; do :; done`), m)
	p.processor, p.wall = time.Hour, 300*time.Millisecond
	start := time.Now()
	p.Texts(context.Background(), gfx90a, sampleCode())
	if list := p.Problems(); len(list) != 1 || !strings.Contains(list[0], "did not end within 300ms") || time.Since(start) > 20*time.Second {
		t.Errorf("%q after %s", list, time.Since(start))
	}
}

// A counter counts runs.
type counter struct {
	runs int
	*plugin.Manager
}

func (c *counter) Run(ctx context.Context, p plugin.Program) (*plugin.Output, error) {
	c.runs++
	return c.Manager.Run(ctx, p)
}

// TestToolRunsOnceForAll: all stretches are one run, and a tool that failed is not run again.
func TestToolRunsOnceForAll(t *testing.T) {
	c := &counter{Manager: manager(t)}
	var list []Stretch
	for i := range uint64(5000) {
		s := sampleCode()[0]
		s.Address += 0x100 * i
		list = append(list, s)
	}
	for _, name := range []string{"llvm-mc-22", "llvm-objdump-22"} {
		c.runs = 0
		p := New(oracle.Tool(t, name), c)
		texts := p.Texts(context.Background(), gfx90a, list)
		if c.runs != 1 || texts[4999][2] != "s_swappc_b64 s[30:31], s[4:5]" || p.Problems() != nil {
			t.Errorf("%s: %d runs, %q, %q", name, c.runs, texts[4999], p.Problems())
		}
	}
	c.runs = 0
	p := New(script(t, "llvm-mc", "exit 1"), c)
	for range 3 {
		p.Texts(context.Background(), gfx90a, list)
	}
	if c.runs != 1 {
		t.Errorf("a tool that failed was run %d times", c.runs)
	}
}

// FuzzOutput reads whatever a tool might write.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("\ts_nop 0 ; encoding: [0x00,0x00,0x80,0xbf]\n"), []byte("<stdin>:2:2: warning: invalid instruction encoding\n"))
	f.Add([]byte("Disassembly of section 1:\n\ts_nop 0 // 7F0000002000: BF800000 <a+0x4>\n  1000: 55 \tpushq %rbp\n"), []byte(""))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		list := sampleCode()
		for i := range styles {
			if styles[i].isNVIDIA {
				found := newFound(list)
				readNVIDIA(&plugin.Output{Stdout: stdout, Stderr: stderr}, list, found)
				unknown := map[[2]int]bool{}
				markUnknown(list, []nvidiaPart{{}, {stretch: 1}}, unknownNVIDIA(stderr), unknown)
				partsWithout(list, unknown)
				continue
			}
			p := &Program{}
			found := &found{}
			for k := range list {
				found.texts = append(found.texts, make([]string, len(list[k].Sizes)))
				found.sizes = append(found.sizes, make([]uint32, len(list[k].Sizes)))
			}
			styles[i].read(&plugin.Output{Stdout: stdout, Stderr: stderr}, list, found)
			p.compare(list, found)
			for k, texts := range found.texts {
				for n, text := range texts {
					if text != "" && found.sizes[k][n] != list[k].Sizes[n] || text != textOf(text) {
						t.Fatalf("%q of %d bytes is taken, expected %d bytes", text, found.sizes[k][n], list[k].Sizes[n])
					}
				}
			}
		}
	})
}
