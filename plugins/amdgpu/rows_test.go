// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"debug/elf"
	"reflect"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
)

// checkRows holds the rows of a function against those that each instruction has
// when nothing is known of the one before it. It answers how many there are, and
// how many of them have no rules of their own.
func checkRows(t *testing.T, name string, o *objectCode, r *sdk.CodeRange) (rows, shared int) {
	t.Helper()
	mode, err := o.mode(o.waveSize(r), o.processor.scratch == architectedScratch)
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.follow(r, r.Start, o.code.hasCode(r.Start, r.Code), mode)
	if err != nil {
		t.Fatal(name, err)
	}
	end := r.Start + uint64(len(r.Code))
	got, gaps, err := f.rows(r.Start, end)
	if err != nil {
		t.Fatal(name, err)
	}
	for i := 1; i < len(got); i++ {
		if &got[i].Rules[0] == &got[i-1].Rules[0] {
			shared++
		}
	}
	for b := range f.All() {
		if !b.IsReached {
			continue
		}
		err := f.replay(b, func(pc uint64, in *isa.Inst, s *codeState) {
			if pc < r.Start || pc >= end {
				return
			}
			x := &viewer{flow: f, now: &evidence{}, before: &evidence{}}
			x.look(in, s)
			v := x.view(in)
			var row cfi.Row
			reason := ""
			for i := range got {
				if pc >= got[i].Start && pc < got[i].End {
					row = got[i]
				}
			}
			for _, g := range gaps {
				if pc >= g.start && pc < g.end {
					reason = g.reason
				}
			}
			if reason != v.reason {
				t.Errorf("%s, at %#x: reason %q, expected %q", name, pc, reason, v.reason)
			}
			var want cfi.Row
			if v.reason == "" {
				w := &writer{machineMode: f.machineMode}
				want = w.row(row.Start, row.End, &v)
			}
			if !reflect.DeepEqual(row, want) {
				t.Errorf("%s, at %#x: %v, expected %v", name, pc, rowText(&row, f.lanes), rowText(&want, f.lanes))
			}
		})
		if err != nil {
			t.Fatal(name, err)
		}
	}
	return len(got), shared
}

// TestRowsAreThatOfEachInstruction: what rows share, and what instructions share
// a row, is what each of them has alone.
func TestRowsAreThatOfEachInstruction(t *testing.T) {
	rows, shared := 0, 0
	check := func(name string, o *objectCode, r *sdk.CodeRange) {
		n, s := checkRows(t, name, o, r)
		rows, shared = rows+n, shared+s
	}
	for _, c := range framePrograms {
		data, labels := assemble(t, c.processor, c.code)
		check(c.name, program(c.processor, data), &sdk.CodeRange{PC: labels["f"], Start: labels["f"], Code: data, Bounded: true})
	}
	// The address that memory is relative to goes to another register.
	data, labels := assemble(t, "gfx90a", `
f:	s_add_i32 s33, s32, 0x7c0
	s_and_b32 s33, s33, 0xfffff800
	s_mov_b32 s34, s32
	s_add_i32 s32, s33, 0x800
	buffer_store_dword v40, off, s[0:3], s33 offset:4
	v_mov_b32_e32 v40, 0
	s_mov_b32 s35, s33
	s_mov_b32 s33, 0
	s_endpgm
`)
	check("an aligned stack pointer that moves", program("gfx90a", data), &sdk.CodeRange{PC: labels["f"], Start: labels["f"], Code: data, Bounded: true})
	for path, processor := range map[string]string{"testdata/amd_h.gfx90a.co": "gfx90a", "testdata/amd_k.gfx1100.co": "gfx1100"} {
		for _, f := range functionsOf(t, path) {
			o := program(processor, nil)
			o.code = code{{f.Start, f.Code}}
			check(path+" "+f.Name, o, &f)
		}
	}
	if rows < 150 || shared == 0 {
		t.Errorf("%d rows, %d of them with the rules of the one before", rows, shared)
	}
}

// TestEvidenceChangesWithWhatTellsOfTheCaller steps through code: an instruction
// after which the frame may look otherwise is seen, and most others are known not
// to be such.
func TestEvidenceChangesWithWhatTellsOfTheCaller(t *testing.T) {
	steps := []struct {
		text string
		want bool // what is said after it
	}{
		{"v_writelane_b32 v60, s30, 0", true},
		{"v_writelane_b32 v60, s31, 1", true},
		{"v_writelane_b32 v60, s33, 1", true}, // another value in the same lane
		{"s_nop 0", false},
		{"s_mov_b32 s40, s33", true},
		{"s_mov_b32 s40, 5", true},
		{"s_mov_b32 s40, 6", false},
		{"s_add_u32 s32, s32, 0x100", true},
		{"s_cmp_eq_u32 s40, 0", false},
		{"v_mov_b32_e32 v1, v2", true},
		{"v_mov_b32_e32 v1, 0", true},
		{"v_mov_b32_e32 v1, 1", false},
		{"v_add_u32_e32 v1, v1, v1", false},
		{"buffer_store_dword v1, off, s[0:3], s32 offset:4", false},
		{"buffer_store_dword v40, off, s[0:3], s32 offset:4", true},
		{"v_cmp_eq_u32_e32 vcc, v1, v2", false},
		{"s_mov_b64 s[46:47], 0", true},
		{"s_mov_b64 s[46:47], exec", false}, // EXEC has it, too
		{"s_and_saveexec_b64 s[42:43], vcc", true},
		{"v_cmp_eq_u32_e32 vcc, v1, v3", true},  // VCC had the mask
		{"v_cmp_eq_u32_e32 vcc, v1, v4", false}, // a condition that nobody has read
		{"s_mov_b64 s[44:45], vcc", true},
		{"s_mov_b64 exec, s[44:45]", true},
		{"s_or_b64 exec, exec, s[42:43]", true},
		{"s_swappc_b64 s[30:31], s[4:5]", true},
		{"s_swappc_b64 s[30:31], s[4:5]", true}, // the row before it was that of a call
		{"s_nop 0", false},
		{"s_endpgm", false},
	}
	text := "f:\n"
	for _, s := range steps {
		text += s.text + "\n"
	}
	f, _ := followText(t, "gfx90a", text)
	x := &viewer{flow: f, now: &evidence{}, before: &evidence{}, isAnew: true}
	n := 0
	err := f.replay(f.Point(codeStart), func(_ uint64, in *isa.Inst, s *codeState) {
		got, call := x.look(in, s), in.Flow == isa.IndirectCall
		if n > 0 && got != (steps[n-1].want || call) || n == 0 && !got {
			t.Errorf("before %q: %v", steps[n].text, got)
		}
		n++
	})
	if err != nil || n != len(steps) {
		t.Errorf("%d instructions, %v, expected %d", n, err, len(steps))
	}
}

// followText follows a function that is written in assembly, and answers its code, too.
func followText(t *testing.T, processor, text string) (f *flow, data []byte) {
	t.Helper()
	data, _ = assemble(t, processor, text)
	o := program(processor, data)
	mode, err := o.mode(o.processor.lanes[0], false)
	if err != nil {
		t.Fatal(err)
	}
	f, err = o.follow(&sdk.CodeRange{PC: codeStart, Start: codeStart, Code: data, Bounded: true}, codeStart, true, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f, data
}

// functionsOf are the functions of an object that symbols name.
func functionsOf(t testing.TB, path string) (all []sdk.CodeRange) {
	t.Helper()
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
	data, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Info&0xf == symbolFunc && s.Size > 0 {
			all = append(all, sdk.CodeRange{PC: s.Value, Start: s.Value, Code: data[s.Value-text.Addr:][:s.Size], Bounded: true, Name: s.Name})
		}
	}
	return all
}
