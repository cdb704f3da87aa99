// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// contradictions are what call frame information of an object has otherwise than its code,
// and in how many bytes of how many.
func contradictions(t *testing.T, path string) (reasons map[string]uint64, total uint64) {
	t.Helper()
	o := readObject(t, path)
	a := New()
	e := sections{data: o.data}
	opened, err := a.OpenObject(context.Background(), e, &o.req)
	if err != nil || !opened.ChecksCFI {
		t.Fatalf("%s: %v, checked: %v", path, err, opened.ChecksCFI)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	req := &sdk.FrameRulesRequest{Object: 1}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			total += s.Size
			req.Functions = append(req.Functions, sdk.CodeRange{PC: s.Value, Start: s.Value, Code: o.data[".text"][s.Value-text.Addr:][:s.Size], Bounded: true})
		}
	}
	answer, err := a.FrameRules(context.Background(), e, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	reasons = map[string]uint64{}
	for i := range answer.Functions {
		for _, c := range answer.Functions[i].Contradictions {
			reasons[c.Reason] += c.End - c.Start
		}
	}
	return reasons, total
}

// TestWrongRulesAreContradicted writes rules of one kind after another for a function that saves
// EXEC in VCC and changes both again, right ones and wrong ones.
func TestWrongRulesAreContradicted(t *testing.T) {
	const (
		laneCFA = ".cfi_escape 0x0f, 9, 0x90, 0x40, 0x94, 4, 0x36, 0x24, 0x36, 0xe9, 2" // regx SGPR32; deref_size 4; lit6; shl; lit6; form_aspace_address
		waveCFA = ".cfi_escape 0x30, 0x40, 0, 6"                                        // def_aspace_cfa SGPR32, 0, private_wave
		backIn  = ".cfi_escape 0x10, 0x10, 8, 0x90, 0x3e, 0x93, 4, 0x90, 0x3f, 0x93, 4" // PC: SGPR30, SGPR31
		movedIn = ".cfi_escape 0x10, 0x10, 8, 0x90, 0x24, 0x93, 4, 0x90, 0x25, 0x93, 4" // PC: SGPR4, SGPR5
		execVCC = ".cfi_escape 0x09, 0x11, 0x80, 6"                                     // EXEC: VCC_64
		execS8  = ".cfi_escape 0x10, 0x11, 8, 0x90, 0x28, 0x93, 4, 0x90, 0x29, 0x93, 4" // EXEC: SGPR8, SGPR9
	)
	for _, c := range []struct {
		name, processor, cfa, pc, exec string
		want                           string
	}{
		{"right", "gfx942", laneCFA, backIn, execS8, ""},
		{"a lane's pointer for the wave's", "gfx942", waveCFA, backIn, execS8, wrongUnit},
		{"the wave's pointer for a lane's", "gfx90a", laneCFA, backIn, execS8, ""}, // there is code of both kinds
		{"right for the wave", "gfx90a", waveCFA, backIn, execS8, ""},
		{"a return address that is elsewhere", "gfx942", laneCFA, movedIn, execS8, wrongReturn},
		{"EXEC where it was saved and is no more", "gfx942", laneCFA, backIn, execVCC, wrongExec},
	} {
		dir := t.TempDir()
		source, file, out := filepath.Join(dir, "f.s"), filepath.Join(dir, "f.o"), filepath.Join(dir, "f.co")
		text := ".cfi_sections .eh_frame\n.text\n.globl f\n.hidden f\n.type f,@function\nf:\n.cfi_startproc\n" + c.cfa + "\n" + backIn + `
	s_mov_b64 s[8:9], exec
	s_mov_b64 vcc, exec
	s_mov_b64 s[4:5], 0
	s_mov_b64 vcc, 0
	s_mov_b64 exec, -1
` + c.pc + "\n" + c.exec + `
	s_nop 0
	s_nop 0
	.cfi_escape 0x08, 0x11
	s_mov_b64 exec, s[8:9]
` + backIn + `
	s_setpc_b64 s[30:31]
	.cfi_endproc
	.size f,.-f
`
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		oracle.Run(t, oracle.Tool(t, "llvm-mc-22"), "-triple", "amdgcn-amd-amdhsa", "-mcpu="+c.processor, "-filetype=obj", "-o", file, source)
		oracle.Run(t, oracle.Tool(t, "ld.lld-22"), "-shared", "-o", out, file)
		reasons, _ := contradictions(t, out)
		if c.want == "" && len(reasons) > 0 || c.want != "" && (len(reasons) != 1 || reasons[c.want] == 0) {
			t.Errorf("%s: %v, expected %q", c.name, reasons, c.want)
		}
	}
}

// TestCallFrameInformationThatTheCodeContradicts is of LLVM 23, which takes a lane's stack
// pointer for one of the wave on gfx942, and elsewhere is wrong in epilogues; and of call
// frame information that is right but for the last instructions of epilogues.
func TestCallFrameInformationThatTheCodeContradicts(t *testing.T) {
	for _, c := range []struct {
		path    string
		reasons []string
		percent uint64 // of the code, at most
	}{
		{"testdata/amd_h.gfx942.llvm23.co", []string{wrongUnit}, 100},
		{"testdata/amd_h.gfx90a.llvm23.co", []string{wrongReturn}, 5},
		{"testdata/amd_k.gfx90a.llvm23.co", []string{wrongLanes, wrongReturn}, 100},
		{"testdata/amd_h.gfx90a.cfi.co", nil, 0},
	} {
		reasons, total := contradictions(t, c.path)
		var wrong uint64
		for reason, n := range reasons {
			wrong += n
			t.Logf("%s: %d of %d bytes: %s", c.path, n, total, reason)
			if !slices.Contains(c.reasons, reason) {
				t.Errorf("%s: %s", c.path, reason)
			}
		}
		for _, reason := range c.reasons {
			if reasons[reason] == 0 {
				t.Errorf("%s: nothing is wrong by: %s", c.path, reason)
			}
		}
		if wrong*100 > total*c.percent {
			t.Errorf("%s: %d of %d bytes are contradicted", c.path, wrong, total)
		}
	}
}
