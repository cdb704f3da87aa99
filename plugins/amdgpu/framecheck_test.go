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

// TestWrongRulesAreContradicted writes rules of one kind after another for functions that
// save registers and change them, right ones and wrong ones.
func TestWrongRulesAreContradicted(t *testing.T) {
	const (
		laneCFA = ".cfi_escape 0x0f, 9, 0x90, 0x40, 0x94, 4, 0x36, 0x24, 0x36, 0xe9, 2" // regx SGPR32; deref_size 4; lit6; shl; lit6; form_aspace_address
		waveCFA = ".cfi_escape 0x30, 0x40, 0, 6"                                        // def_aspace_cfa SGPR32, 0, private_wave
		backIn  = ".cfi_escape 0x10, 0x10, 8, 0x90, 0x3e, 0x93, 4, 0x90, 0x3f, 0x93, 4" // PC: SGPR30, SGPR31
		backS4  = ".cfi_escape 0x10, 0x10, 8, 0x90, 0x24, 0x93, 4, 0x90, 0x25, 0x93, 4" // PC: SGPR4, SGPR5
		backS6  = ".cfi_escape 0x10, 0x10, 8, 0x90, 0x26, 0x93, 4, 0x90, 0x27, 0x93, 4" // PC: SGPR6, SGPR7
		execVCC = ".cfi_escape 0x09, 0x11, 0x80, 6"                                     // EXEC: VCC_64
		execS8  = ".cfi_escape 0x10, 0x11, 8, 0x90, 0x28, 0x93, 4, 0x90, 0x29, 0x93, 4" // EXEC: SGPR8, SGPR9
		in6     = ".cfi_escape 0x09, 0x42, 0x26"                                        // SGPR34: SGPR6
		in7     = ".cfi_escape 0x09, 0x42, 0x27"                                        // SGPR34: SGPR7
		inLane  = ".cfi_escape 0x10, 0x42, 6, 0x90, 0xa8, 0x14, 0xe9, 5, 0"             // SGPR34: lane 0 of VGPR40
		at0     = ".cfi_escape 0x05, 0xa8, 0x14, 0"                                     // VGPR40: CFA+0
		at256   = ".cfi_escape 0x05, 0xa8, 0x14, 0x40"                                  // VGPR40: CFA+256
		inV41   = ".cfi_escape 0x09, 0xa8, 0x14, 0xa9, 0x14"                            // VGPR40: VGPR41
		inV42   = ".cfi_escape 0x09, 0xa8, 0x14, 0xaa, 0x14"                            // VGPR40: VGPR42
	)
	const (
		exec    = "s_mov_b64 s[8:9], exec\n s_mov_b64 vcc, exec\n s_mov_b64 s[4:5], 0\n s_mov_b64 vcc, 0\n s_mov_b64 exec, -1\n"
		inVCC   = "s_mov_b64 s[8:9], exec\n s_mov_b64 vcc, 0\n s_mov_b64 exec, -1\n" // it never was there
		back    = "s_mov_b64 s[6:7], s[30:31]\n s_mov_b64 s[4:5], 0\n s_mov_b64 s[30:31], 0\n"
		undo    = "s_mov_b64 s[30:31], s[6:7]\n"
		scalar  = "s_mov_b32 s6, s34\n s_mov_b32 s7, 0\n s_mov_b32 s34, 0\n"
		vector  = "s_or_saveexec_b64 s[8:9], -1\n buffer_store_dword v40, off, s[0:3], s32\n buffer_store_dword v42, off, s[0:3], s32 offset:4\n"
		changed = vector + "v_mov_b32 v41, v40\n v_mov_b32 v40, 0\n v_mov_b32 v42, 1\n"
		lane    = vector + "v_writelane_b32 v40, s34, 0\n s_mov_b32 s34, 0\n"
		again   = lane + "v_readlane_b32 s34, v40, 0\n buffer_load_dword v40, off, s[0:3], s32\n" // as at the end of epilogues
	)
	for _, c := range []struct {
		name, section, processor, cfa, code, rules, undo string
		want                                             string
	}{
		{"right", ".eh_frame", "gfx942", laneCFA, exec, execS8, "", ""},
		{"a lane's pointer for the wave's", ".eh_frame", "gfx942", waveCFA, exec, execS8, "", wrongUnit},
		{"the same", ".debug_frame", "gfx942", waveCFA, exec, execS8, "", wrongUnit},
		{"the wave's pointer for a lane's", ".eh_frame", "gfx90a", laneCFA, exec, execS8, "", ""}, // there is code of both kinds
		{"right for the wave", ".eh_frame", "gfx90a", waveCFA, exec, execS8, "", ""},
		{"a return address that is elsewhere", ".eh_frame", "gfx942", laneCFA, exec, backS4 + "\n" + execS8, "", wrongReturn},
		{"the same, which is in place", ".debug_frame", "gfx942", laneCFA, exec, backS4 + "\n" + execS8, "", ""},
		{"a return address that was moved", ".debug_frame", "gfx942", laneCFA, back, backS6, undo, ""},
		{"one that was moved elsewhere", ".debug_frame", "gfx942", laneCFA, back, backS4, undo, wrongReturn},
		{"EXEC where it was saved and is no more", ".eh_frame", "gfx942", laneCFA, exec, execVCC, "", wrongExec},
		{"the same", ".debug_frame", "gfx942", laneCFA, exec, execVCC, "", wrongExec},
		{"EXEC where it never was", ".debug_frame", "gfx90a", waveCFA, inVCC, execVCC, "", wrongExec},
		{"EXEC where it is", ".debug_frame", "gfx90a", waveCFA, inVCC, execS8, "", ""},
		{"a scalar register", ".eh_frame", "gfx942", laneCFA, scalar, in6, "", ""},
		{"a scalar register that is elsewhere", ".eh_frame", "gfx942", laneCFA, scalar, in7, "", wrongScalar},
		{"one in a lane", ".eh_frame", "gfx90a", waveCFA, lane, at0 + "\n" + inLane, "", ""},
		{"one in a lane of a register that was restored", ".eh_frame", "gfx90a", waveCFA, again, at0 + "\n" + inLane, "", wrongScalar},
		{"a vector register in memory", ".eh_frame", "gfx90a", waveCFA, changed, at0, "", ""},
		{"one in the memory of another", ".eh_frame", "gfx90a", waveCFA, changed, at256, "", wrongVector},
		{"a vector register in another", ".eh_frame", "gfx90a", waveCFA, changed, inV41, "", ""},
		{"one in another that has something else", ".eh_frame", "gfx90a", waveCFA, changed, inV42, "", wrongVector},
	} {
		dir := t.TempDir()
		source, file, out := filepath.Join(dir, "f.s"), filepath.Join(dir, "f.o"), filepath.Join(dir, "f.co")
		text := ".cfi_sections " + c.section + "\n.text\n.globl f\n.hidden f\n.type f,@function\nf:\n.cfi_startproc\n" + c.cfa + "\n" + backIn +
			"\n " + c.code + ".cfi_remember_state\n" + c.rules + "\n s_nop 0\n s_nop 0\n " + c.undo +
			".cfi_restore_state\n s_mov_b64 exec, s[8:9]\n s_setpc_b64 s[30:31]\n.cfi_endproc\n.size f,.-f\n"
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		oracle.Run(t, oracle.Tool(t, "llvm-mc-22"), "-triple", "amdgcn-amd-amdhsa", "-mcpu="+c.processor, "-filetype=obj", "-o", file, source)
		oracle.Run(t, oracle.Tool(t, "ld.lld-22"), "-shared", "-o", out, file)
		reasons, _ := contradictions(t, out)
		if c.want == "" && len(reasons) > 0 || c.want != "" && (len(reasons) != 1 || reasons[c.want] == 0) {
			t.Errorf("%s, %s: %v, expected %q", c.name, c.section, reasons, c.want)
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
