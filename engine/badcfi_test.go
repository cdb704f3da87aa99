// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Call frame instructions as bytes. SGPR32 is column 64, SGPR45 77, SGPR46 78,
// EXEC of 64 lanes 17; space 6 is private memory of a wave.
const (
	cfaOf64  = "0x30,0x40,0x00,0x06"                         // DW_CFA_LLVM_def_aspace_cfa 64, 0, 6
	cfaExpr  = "0x0f,4,0x30,0x36,0xe9,2"                     // DW_CFA_def_cfa_expression { lit0; lit6; LLVM_form_aspace_address }
	returnIn = "0x10,16,8,0x90,62,0x93,4,0x90,63,0x93,4"     // DW_CFA_expression 16 { regx 62; piece 4; regx 63; piece 4 }
	noCFA    = "0x10,16,8,0x90,62,0x93,4,0x90,63,0x93,4,0,0" // the same, padded
	illCFI   = "ill-formed call frame information: "         // of errors
	illExpr  = "ill-formed expression: offset 0: "           //
	notInCFI = "operation is not allowed in call frame information"
)

// badCFI is call frame information that the heterogeneous extension says
// something about, with the section that does.
var badCFI = []struct {
	name, section string
	cfi           []string // instructions
	found         trace.FoundBy
	stopped       string // why the stack ends in frame 0; "": it does not
	problem       string // of the module
	register      uint64 // in frame 1, which is
	location      string // there, or fails for
	reason        string
	kind          locexpr.ErrorKind
}{
	{name: "good", cfi: []string{cfaOf64, returnIn}, found: trace.ByCFI},
	{name: "register after an expression", section: "A.6.4.2.2, 5", cfi: []string{cfaExpr, returnIn, "0x0d,0x41"}, found: trace.ByRules,
		problem: illCFI + "CFA rule is not a register and an offset: DW_CFA_def_cfa_register"},
	{name: "offset after an expression", section: "A.6.4.2.2, 6", cfi: []string{cfaExpr, returnIn, "0x0e,0x10"}, found: trace.ByRules,
		problem: illCFI + "CFA rule is not a register and an offset: DW_CFA_def_cfa_offset"},
	{name: "factored offset after an expression", section: "A.6.4.2.2, 7", cfi: []string{cfaExpr, returnIn, "0x13,0x10"}, found: trace.ByRules,
		problem: illCFI + "CFA rule is not a register and an offset: DW_CFA_def_cfa_offset_sf"},
	{name: "register without a CFA", section: "A.6.4.2.2, 5", cfi: []string{noCFA, "0x0d,0x41"}, found: trace.ByRules,
		problem: illCFI + "CFA rule is not a register and an offset: DW_CFA_def_cfa_register"},
	{name: "address space", section: "A.6.4.2.2, 3", cfi: []string{"0x30,0x40,0x00,0x09", returnIn},
		stopped: illCFI + "unknown address space: the CFA is in space 9", problem: illCFI + "unknown address space: the CFA is in space 9"},
	{name: "factored displacement", section: "A.6.4.2.2, 4", cfi: []string{"0x31,0x40,0x04,0x06", returnIn}, found: trace.ByCFI},
	{name: "size of the register", section: "A.6.4.2.2, 1", cfi: []string{"0x0c,0x40,0x00", returnIn},
		stopped: illCFI + "size does not match the register: register 64 has 32 bits, an address 64", problem: "register 64 has 32 bits"},
	{name: "lane", section: "A.6.4.2", cfi: []string{"0x0f,5,0xe9,3,0x36,0xe9,2", returnIn},
		stopped: illExpr + "DW_OP_LLVM_push_lane: " + notInCFI, problem: "DW_OP_LLVM_push_lane: " + notInCFI},
	{name: "CFA of itself", section: "A.6.4.2", cfi: []string{"0x0f,1,0x9c", returnIn},
		stopped: illExpr + "DW_OP_call_frame_cfa: " + notInCFI, problem: "DW_OP_call_frame_cfa: " + notInCFI},
	{name: "CFA in a register", section: "A.6.4.2.2, 8", cfi: []string{"0x0f,2,0x90,64", returnIn},
		stopped: illCFI + "CFA is not a memory byte address: register 64", problem: "CFA is not a memory byte address: register 64"},
	{name: "undefined CFA", section: "A.6.4.2.2, 8", cfi: []string{"0x0f,2,0xe9,8", returnIn},
		stopped: illCFI + "CFA is not a memory byte address: undefined", problem: "CFA is not a memory byte address: undefined"},
	{name: "CFA of bits", section: "A.6.4.2.2, 8", cfi: []string{"0x0f,7,0x30,0x36,0xe9,2,0x33,0xe9,6", returnIn},
		stopped: illCFI + "CFA is not a memory byte address: memory 6:0x0 +3 bits", problem: "CFA is not a memory byte address"},
	{name: "CFA that has no end", section: "A.2.5", cfi: []string{"0x0f,3,0x2f,0xfd,0xff", returnIn},
		stopped: "too many operations", problem: "evaluation error: offset 0: DW_OP_skip: limit exceeded"},
	{name: "CFA divided by 0", section: "A.2.5", cfi: []string{"0x0f,3,0x31,0x30,0x1b", returnIn},
		stopped: "division by zero", problem: "evaluation error: offset 2: DW_OP_div: division by zero"},
	{name: "registers in each other", section: "A.6.4.1", cfi: []string{cfaOf64, returnIn, "0x09,77,78,0x09,78,77"}, found: trace.ByCFI,
		problem: illCFI + "register rules lead to themselves: columns [77 78]", register: 77, location: "undefined"},
	{name: "register in itself", section: "A.6.4.1", cfi: []string{cfaOf64, returnIn, "0x09,77,77"}, found: trace.ByCFI,
		problem: illCFI + "register rules lead to themselves: columns [77]", register: 77, location: "undefined"},
	// No state of this thread; another may have it.
	{name: "CFA in memory that is missing", section: "A.2.5", cfi: []string{"0x0f,7,0x0a,0,0x10,0x06,0x36,0xe9,2", returnIn}, stopped: "the recorded stack ends here"},

	{name: "frame base", section: "A.6.4.2", cfi: []string{cfaOf64, returnIn, "0x10,77,2,0x91,0"}, found: trace.ByCFI,
		register: 77, reason: "DW_OP_fbreg: " + notInCFI, kind: locexpr.IllFormed},
	{name: "entry value", section: "A.6.4.2", cfi: []string{cfaOf64, returnIn, "0x10,77,3,0xa3,1,0x50"}, found: trace.ByCFI,
		register: 77, reason: "DW_OP_entry_value: " + notInCFI, kind: locexpr.IllFormed},
	{name: "object", section: "A.6.4.2", cfi: []string{cfaOf64, returnIn, "0x10,77,1,0x97"}, found: trace.ByCFI,
		register: 77, reason: "DW_OP_push_object_address: " + notInCFI, kind: locexpr.IllFormed},
	{name: "registers on entry that need each other", section: "A.6.4.2", found: trace.ByCFI,
		cfi:      []string{cfaOf64, returnIn, "0x10,77,8,0xe9,7,78,0x94,4,0x36,0xe9,2", "0x10,78,8,0xe9,7,77,0x94,4,0x36,0xe9,2"},
		register: 77, reason: "circular dependency", kind: locexpr.IllFormed},
	{name: "register on entry that needs itself", section: "A.6.4.2", cfi: []string{cfaOf64, returnIn, "0x10,77,3,0xe9,7,77"}, found: trace.ByCFI,
		register: 77, reason: "circular dependency", kind: locexpr.IllFormed},
	{name: "register in one of another size", section: "A.6.4.1: register(R)", cfi: []string{cfaOf64, returnIn, "0x09,77,17"}, found: trace.ByCFI,
		register: 77, reason: illCFI + "size does not match the register: register 17 has 64 bits, column 32", kind: locexpr.IllFormed},
	{name: "CFA of 32 bits as a value", section: "A.6.4.1: val_offset(N)", cfi: []string{cfaOf64, returnIn, "0x14,77,4"}, found: trace.ByCFI,
		register: 77, location: "implicit 10040000"},
	{name: "CFA of 32 bits as a value of 64", section: "A.6.4.1: val_offset(N)", cfi: []string{cfaOf64, returnIn, "0x14,17,4"}, found: trace.ByCFI,
		register: 17, reason: illCFI + "size does not match the register: register 17 has 64 bits, an address 32", kind: locexpr.IllFormed},
	{name: "value of another size", section: "A.6.4.1: val_expression(E)", cfi: []string{cfaOf64, returnIn, "0x16,77,1,0x35"}, found: trace.ByCFI,
		register: 77, reason: illCFI + "size does not match the register: register 77 has 32 bits, the value 64", kind: locexpr.IllFormed},
	{name: "value", section: "A.6.4.1: val_expression(E)", cfi: []string{cfaOf64, returnIn, "0x16,17,1,0x35"}, found: trace.ByCFI,
		register: 17, location: "implicit 0500000000000000"},
	{name: "undefined place", section: "A.6.4.1: expression(E)", cfi: []string{cfaOf64, returnIn, "0x10,77,2,0xe9,8"}, found: trace.ByCFI,
		register: 77, location: "undefined"},
	{name: "implicit place", section: "A.6.4.1: expression(E)", cfi: []string{cfaOf64, returnIn, "0x10,77,6,0x9e,4,1,2,3,4"}, found: trace.ByCFI,
		register: 77, location: "implicit 01020304"},
	{name: "the CFA itself", section: "A.6.4.1: expression(E), the initial stack", cfi: []string{cfaOf64, returnIn, "0x10,77,0"}, found: trace.ByCFI,
		register: 77, location: "memory 6:0x400"},
	{name: "half a return address", section: "A.2.5.4.3.4: undefined storage", cfi: []string{cfaOf64, "0x10,16,6,0x90,62,0x93,4,0x93,4"},
		stopped: "return address: location is undefined"},
	{name: "state that was not remembered", section: "DWARF 5, 6.4.2.4", cfi: []string{cfaOf64, returnIn, "0x0b"}, found: trace.ByRules,
		problem: "restore_state without remember_state: DW_CFA_restore_state"},
	{name: "instruction", section: "DWARF 5, 7.24", cfi: []string{cfaOf64, returnIn, "0x3f"}, found: trace.ByRules,
		problem: "unknown call frame instruction: 0x3f"},
}

// buildBadCFI makes a code object with a kernel, into which every function
// returns, and a function for each case.
func buildBadCFI(t *testing.T) string {
	t.Helper()
	oracle.Tools(t, "clang-22", "ld.lld-22")
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString(".text\n.cfi_sections .debug_frame\n.globl k\n.p2align 8\n.type k,@function\nk:\n.cfi_startproc\n")
	b.WriteString(".cfi_escape " + cfaExpr + "\n.cfi_undefined 16\ns_nop 0\ns_nop 0\ns_nop 0\ns_endpgm\n.cfi_endproc\n.Lk: .size k, .Lk-k\n")
	for i, c := range badCFI {
		fmt.Fprintf(&b, ".globl f%d\n.type f%d,@function\nf%d:\n.cfi_startproc\n", i, i, i)
		for _, instruction := range c.cfi {
			fmt.Fprintf(&b, ".cfi_escape %s\n", instruction)
		}
		fmt.Fprintf(&b, "s_nop 0\ns_nop 0\ns_setpc_b64 s[30:31]\n.cfi_endproc\n.L%d: .size f%d, .L%d-f%d\n", i, i, i, i)
	}
	source, o, file := filepath.Join(dir, "bad.s"), filepath.Join(dir, "bad.o"), filepath.Join(dir, "bad.co")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"clang-22", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-c", source, "-o", o},
		{"ld.lld-22", "-shared", o, "-o", file},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return file
}

func TestCallFrameInformationThatIsIllFormed(t *testing.T) {
	d := openLanes(t, buildBadCFI(t), 64)
	address := map[string]uint64{}
	symbols, err := d.module.Object.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		address[s.Name] = loadedAt + s.Address
	}
	for i, c := range badCFI {
		t.Run(c.name, func(t *testing.T) {
			word := func(v uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:size] }
			var r sdk.Registers
			r.Set(regPC, word(address[fmt.Sprintf("f%d", i)]+4, 8))
			r.Set(regExec64, word(0xff, 8))
			back := address["k"] + 8
			for n, v := range map[uint32]uint64{30: back & 0xffffffff, 31: back >> 32, 32: 0x400, 33: 0x500, 45: 0x45, 46: 0x46} {
				r.Set(regSGPR0+n, word(v, 4))
			}
			module := *d.module
			tg := d.engine.Attach(&walk.Sample{Sample: trace.Sample{Arch: "amdgpu", ThreadID: c.name, Registers: r}, Loaded: []*target.Module{&module}})
			th := tg.Threads()[0]
			s := tg.Walk(context.Background(), th)
			switch {
			case c.stopped != "":
				if len(s.Frames) != 1 || !strings.Contains(s.Stopped.Detail, c.stopped) {
					t.Errorf("%s: %d frames, stopped: %v, expected %q", c.section, len(s.Frames), s.Stopped, c.stopped)
				}
			case len(s.Frames) != 2 || s.Frames[1].PC != back || s.Frames[1].FoundBy != c.found:
				t.Fatalf("%s: frames %+v, stopped: %v", c.section, s.Frames, s.Stopped)
			}
			problems := strings.Join(tg.ModuleInfo(&module.Module).Problems, "\n")
			if c.problem == "" && problems != "" || !strings.Contains(problems, c.problem) {
				t.Errorf("%s: problems %q, expected %q", c.section, problems, c.problem)
			}
			if c.register == 0 {
				return
			}
			err := tg.Process().Evaluate(context.Background(), th, 1, walk.Surroundings{}, nil, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
				l, err := ev.Location(t.Context(), append([]byte{0x90}, byte(c.register)), ctx)
				if err == nil && l.String() != c.location {
					t.Errorf("%s: register %d is %v, expected %s", c.section, c.register, l, c.location)
				}
				return err
			})
			in := (*locexpr.Error)(nil)
			if c.reason != "" && (!errors.As(err, &in) || in.Kind != c.kind || !strings.Contains(err.Error(), c.reason)) || c.reason == "" && err != nil {
				t.Errorf("%s: register %d: %v, expected %q", c.section, c.register, err, c.reason)
			}
		})
	}
}
