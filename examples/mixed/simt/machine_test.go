// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestKernelGivesWhatItsSourceSays executes the kernel that calls functions, and
// computes in Go what its source does.
func TestKernelGivesWhatItsSourceSays(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a kernel")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22", "llvm-objdump-22")
	const lanes, arguments, wear, parts, private = 64, 0x1000, 0x2000, 0x3000, 0x100000
	file := filepath.Join(t.TempDir(), "inspect.co")
	if err := Compile("../inspect.hip", "gfx90a", file); err != nil {
		t.Fatal(err)
	}
	p, err := Disassemble("llvm-objdump-22", file, "inspect", "compare_sides", "measure")
	if err != nil {
		t.Fatal(err)
	}
	p.Loaded = 0x7f0000000000
	d := Dispatch{Program: p, Lanes: lanes, Items: 3*lanes - 9, Group: lanes, Arguments: arguments, Private: private, PrivateSize: 0x1000}
	if err := d.Kernel(file, "inspect"); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(1))
	for group := range 3 {
		w, first := d.Wave(group, 0)
		w.Memory[arguments], w.Memory[arguments+8] = wear, parts
		want := make([]uint32, lanes)
		for lane := range want {
			worn := uint32(random.Intn(20))
			w.Memory[wear+4*uint64(lane)] = worn
			if want[lane] = worn; worn > 10 && first+lane < d.Items {
				want[lane] = 0
			}
			for side := range 2 {
				at := parts + 64*uint64(lane) + 32*uint64(side)
				left := uint32(random.Intn(5))
				w.Memory[at] = left
				for i := range left {
					v := uint32(random.Intn(100))
					w.Memory[at+4*uint64(1+i)] = v
					if worn > 10 && first+lane < d.Items {
						want[lane] = max(want[lane], v)
					}
				}
			}
		}
		for done := false; !done; {
			if done, err = w.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for lane, v := range want {
			if got := w.Memory[wear+4*uint64(lane)]; got != v {
				t.Errorf("group %d, lane %d: %d, expected %d", group, lane, got, v)
			}
		}
		if len(w.Calls) > 0 {
			t.Errorf("group %d: %d calls are in progress at the end", group, len(w.Calls))
		}
	}
}

func TestWhatIsNotKnownIsAnError(t *testing.T) {
	for line, want := range map[string]string{
		"s_bfe_u32 s0, s1, s2":                      "not known here",
		"s_bitset1_b32 s0, 1":                       "not known here",
		"s_load_dword vcc_lo, s[0:1], 0x0":          "cannot set vcc_lo",
		"v_nop":                                     "not known here",
		"buffer_wbl2":                               "not known here",
		"s_and_saveexec_b32 s0, s1":                 "not known here", // of half a mask
		"s_cbranch_scc0 4":                          "not known here",
		"s_mov_b32 exec_lo, 0":                      "cannot set exec_lo",
		"s_mov_b32 s0, m0":                          "invalid syntax",
		"s_setpc_b64 s[30:31]":                      "no call came from",
		"v_sqrt_f32_e32 v0, v1":                     "not known here",
		"v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_0":  "not known here",
		"v_readlane_b32 s0, v1, 64":                 "lane 64",
		"v_lshlrev_b64 v[0:1], 2, v4":               "v4 has no word 1",
		"global_load_dwordx2 v[0:1], v[2:3], off":   "not known here",
		"buffer_load_dword v0, v1, s[0:3], 0 offen": "not known here",
		"flat_load_dword v0, v[2:3]":                "no address of a word",
		"ds_read_b64 v[0:1], v1":                    "not known here",
		"ds_read_b32 v0, v2":                        "no address of a word",
	} {
		name, operands, _ := strings.Cut(line, " ")
		in := &instruction{next: 4, name: name, operands: strings.Fields(strings.ReplaceAll(operands, ",", " "))}
		if branchTarget.MatchString(name) {
			in.target = 8
		}
		w := NewWave(&Program{code: map[uint64]*instruction{0: in}}, 64, 1)
		w.VGPR[2][0] = 2
		if _, err := w.Step(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", line, err, want)
		}
	}
	// With no lane active it is one, too.
	w := NewWave(&Program{code: map[uint64]*instruction{0: {next: 4, name: "v_readfirstlane_b32", operands: []string{"s0", "v0"}}}}, 64, 1)
	w.Exec = 0
	if _, err := w.Step(); err == nil {
		t.Error("v_readfirstlane_b32: expected an error")
	}
}

// TestFaultsAndLocalMemory executes an access of memory that is not there, which
// the wave outlives up to where it waits, beside ones of the work-group's memory.
func TestFaultsAndLocalMemory(t *testing.T) {
	p := &Program{code: map[uint64]*instruction{}}
	for i, line := range []string{
		"ds_write_b32 v0 v1 offset:4", "ds_read_b32 v2 v0 offset:4", "flat_load_dword v3 v[4:5]",
		"v_mov_b32_e32 v6 7", "s_waitcnt vmcnt(0)", "s_endpgm",
	} {
		f := strings.Fields(line)
		at := uint64(4 * i)
		p.code[at] = &instruction{address: at, next: at + 4, name: f[0], operands: f[1:]}
	}
	w := NewWave(p, 64, 0b11)
	w.IsMapped = func(address uint64) bool { return address < 0x1000 }
	w.Memory[0x10] = 5
	for lane := range 2 {
		w.VGPR[0][lane], w.VGPR[1][lane] = uint32(8*lane), uint32(30+lane)
		w.VGPR[4][lane] = uint32(0x10 + 0x1000*lane)
	}
	if err := w.RunToFault(); err != nil {
		t.Fatal(err)
	}
	if w.PC != 16 || len(w.Faults) != 1 || w.Faults[0] != (Fault{1, 0x1010}) {
		t.Errorf("at %#x with faults %v, expected at 0x10 with that of lane 1 at 0x1010", w.PC, w.Faults)
	}
	if w.VGPR[2][0] != 30 || w.VGPR[2][1] != 31 || w.Local[4] != 30 || w.Local[12] != 31 {
		t.Errorf("local memory %v gave %v", w.Local, w.VGPR[2][:2])
	}
	if w.VGPR[3][0] != 5 || w.VGPR[6][1] != 7 {
		t.Errorf("%d was loaded, %d moved, expected 5 and 7", w.VGPR[3][0], w.VGPR[6][1])
	}
	if err := NewWave(p, 64, 0b11).RunToFault(); err == nil {
		t.Error("a kernel whose memory is all there has no fault")
	}
}
