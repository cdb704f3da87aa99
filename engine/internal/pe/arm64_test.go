// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arm64Row is a row in a line: registers by their DWARF numbers.
func arm64Row(r *Row) string {
	s := fmt.Sprintf("%s %d-%d", r.Part, (r.Start-madeBase-madeCode)/4, (r.End-madeBase-madeCode)/4)
	if s += fmt.Sprintf(" %d%+d", r.CFA.Register, r.CFA.Offset); len(r.CFA.Expr) > 0 {
		s += fmt.Sprintf(" %x", r.CFA.Expr)
	}
	for _, rule := range r.Rules {
		if s += fmt.Sprintf(" %d=c%+d", rule.Column, rule.Rule.Offset); rule.Rule.Expr != nil {
			s += fmt.Sprintf("?%x", rule.Rule.Expr)
		}
	}
	if r.WindowSave {
		s += " signed"
	}
	if r.SignalFrame {
		s += fmt.Sprintf(" interrupted, pc is %d", r.ReturnAddress)
	}
	return s
}

// arm64File is a file with one function of a number of instructions, all of them nop or what is given.
func arm64File(t testing.TB, count int, word uint32, code ...uint32) (*File, Function) {
	t.Helper()
	m := &maker{machine: MachineARM64, code: words(slices.Repeat([]uint32{0xd503201f}, count)...)}
	copy(m.code[len(m.code)-4*len(code):], words(code...))
	return arm64Function(t, m, word)
}

func arm64Function(t testing.TB, m *maker, word uint32) (*File, Function) {
	t.Helper()
	m.functions(madeCode, word)
	f := m.open(t)
	fn, ok, err := f.FunctionAt(madeBase + madeCode)
	if !ok || err != nil {
		t.Fatal(ok, err, f.Problems())
	}
	return f, fn
}

// record puts an .xdata record: codes, and epilogues by offset and index, or for nil one at the end that
// shares its codes from an index on.
func (m *maker) record(length uint32, codes []byte, epilogs [][2]uint32, last uint32) uint32 {
	for len(codes)%4 != 0 {
		codes = append(codes, 0xe3)
	}
	header := length | uint32(len(codes)/4)<<27 | uint32(len(epilogs))<<22
	if epilogs == nil {
		header |= 1<<21 | last<<22
	}
	list := []uint32{header}
	for _, e := range epilogs {
		list = append(list, e[0]|e[1]<<22)
	}
	return m.put(append(words(list...), codes...)...)
}

// TestARM64Rows has functions whose rows can be told by hand.
func TestARM64Rows(t *testing.T) {
	for name, c := range map[string]struct {
		length  uint32
		codes   string
		epilogs [][2]uint32
		last    uint32
		want    []string
	}{
		"a frame pointer, and an epilogue at the end": {8, "\xe1\x81\x04\xe4", nil, 0, []string{
			"prologue 0-1 31+0", "prologue 1-2 31+64", "prologue 2-3 31+80 29=c-80 30=c-72",
			"body 3-4 29+80 29=c-80 30=c-72",
			"epilogue 4-5 29+80 29=c-80 30=c-72", "epilogue 5-6 31+80 29=c-80 30=c-72", "epilogue 6-7 31+64", "epilogue 7-8 31+0",
		}},
		"save_next, and an epilogue of its own": {9, "\xe6\xd8\x02\xe6\x26\xe4\x26\xe4", [][2]uint32{{7, 6}}, 0, []string{
			"prologue 0-1 31+0", "prologue 1-2 31+48 19=c-48 20=c-40", "prologue 2-3 31+48 19=c-48 20=c-40 21=c-32 22=c-24",
			"prologue 3-4 31+48 19=c-48 20=c-40 21=c-32 22=c-24 72=c-32 73=c-24", "body 4-7 31+48 19=c-48 20=c-40 21=c-32 22=c-24 72=c-32 73=c-24 74=c-16 75=c-8",
			"epilogue 7-8 31+48 19=c-48 20=c-40", "epilogue 8-9 31+0",
		}},
		"a fragment": {2, "\xe5\xe1\x81\xe4", [][2]uint32{}, 0, []string{"body 0-2 29+16 29=c-16 30=c-8"}},
		"a signed return address, and no epilogue": {3, "\xd2\xc1\x02\xfc\xe4", [][2]uint32{}, 0, []string{
			"prologue 0-1 31+0", "prologue 1-2 31+0 signed", "prologue 2-3 31+32 signed",
		}},
		"a machine frame":      {1, "\xe9\xe4", [][2]uint32{}, 0, []string{"body 0-1 31+16 31=c-16 32=c-8 interrupted, pc is 32"}},
		"a call that was none": {1, "\xec\xe4", [][2]uint32{}, 0, []string{"body 0-1 31+0 interrupted, pc is 30"}},
		"any registers":        {2, "\xe7\x60\x42\xe4", [][2]uint32{}, 0, []string{"prologue 0-1 31+0", "body 1-2 31+48 64=c-48 65=c-40"}},
		"vectors of SVE": {4, "\xe7\x00\xc1\xe7\x14\xc3\xdf\x02\xe4", [][2]uint32{}, 0, []string{
			"prologue 0-1 31+0", "prologue 1-2 0+0 8f00922e0011101e22",
			"prologue 2-3 0+0 8f00922e0011101e22 52=c+0?110022922e0011731e22",
			"body 3-4 0+0 8f00922e0011101e22 52=c+0?110022922e0011731e22 72=c+0?110022922e0011781e22",
		}},
	} {
		m := &maker{machine: MachineARM64, code: make([]byte, 4*c.length)}
		f, fn := arm64Function(t, m, m.record(c.length, []byte(c.codes), c.epilogs, c.last))
		var got []string
		if err := f.Rows(fn, func(r *Row) bool { got = append(got, arm64Row(r)); return true }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nexpected\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Blocks of memory with all registers are read at their offsets.
func TestARM64RegistersOfInterruptedCode(t *testing.T) {
	for code, want := range map[byte]map[uint64]int64{
		0xe8: {0: 0xa0 - 0x150, 18: 0x130 - 0x150, arm64LR: 0x138 - 0x150, arm64FP: 0x140 - 0x150, arm64SP: 0x98 - 0x150, arm64PC: 0x148 - 0x150},
		0xea: {0: 8 - 912, arm64LR: 248 - 912, arm64SP: 256 - 912, arm64PC: 264 - 912, arm64V0 + 31: 272 + 31*16 - 912},
		0xeb: {8: 0x78 - 1232, arm64SP: 0x98 - 1232, arm64PC: 0xf8 - 1232, arm64LR: 0x120 - 1232, arm64V0: 0x1a0 - 1232},
	} {
		m := &maker{machine: MachineARM64, code: make([]byte, 4)}
		f, fn := arm64Function(t, m, m.record(1, []byte{code, 0xe4}, [][2]uint32{}, 0))
		err := f.Rows(fn, func(r *Row) bool {
			for column, offset := range want {
				if rule, ok := r.Rule(column); !ok || rule.Offset != offset {
					t.Errorf("code %#x: register %d by %+v, expected at CFA%+d", code, column, rule, offset)
				}
			}
			return r.SignalFrame && r.ReturnAddress == arm64PC
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The epilogue of packed data is at the end, or where the code has one.
func TestARM64EpiloguesOfPackedDataAreThoseOfTheCode(t *testing.T) {
	const (
		word = arm64PackedFunction | 8<<2 | 2<<16 | 1<<23 // x19 and x20, 16 bytes
		load = 0xa8c153f3                                 // ldp x19, x20, [sp], #16
		jump = 0x14000040
	)
	for name, c := range map[string]struct {
		code []uint32
		want string
	}{
		"a return":             {[]uint32{load, arm64Return}, "epilogue 7-8 31+0"},
		"a jump":               {[]uint32{load, jump}, "epilogue 7-8 31+0"},
		"a loop":               {[]uint32{0xd503201f, jump}, "body 1-8 31+16 19=c-16 20=c-8"},
		"a return before that": {[]uint32{load, arm64Return, jump}, "epilogue 6-7 31+0 body 7-8 31+16 19=c-16 20=c-8"},
	} {
		f, fn := arm64File(t, 8, word, c.code...)
		var got []string
		if err := f.Rows(fn, func(r *Row) bool { got = append(got, arm64Row(r)); return true }); err != nil {
			t.Error(err)
		}
		if all := strings.Join(got, " "); !strings.HasSuffix(all, c.want) {
			t.Errorf("%s: %s, expected at its end %s", name, all, c.want)
		}
	}
}

// Code in no function is a leaf, whose caller is in lr.
func TestARM64Leaf(t *testing.T) {
	f, _ := arm64File(t, 9, arm64PackedFunction|8<<2)
	var row Row
	if err := f.RowAt(madeBase+madeCode+32, &row); err != nil || arm64Row(&row) != "leaf 8-9 31+0" {
		t.Errorf("%s, %v", arm64Row(&row), err)
	}
}

// Damaged unwind information is refused with its place.
func TestHostileARM64UnwindInformation(t *testing.T) {
	record := func(b ...byte) func(*maker) uint32 { return func(m *maker) uint32 { return m.put(b...) } }
	codes := func(text string) func(*maker) uint32 {
		return func(m *maker) uint32 { return m.record(2, []byte(text), [][2]uint32{}, 0) }
	}
	for want, word := range map[string]func(*maker) uint32{
		"unwind code is reserved":                 codes("\xf8\x00\xe4"),
		"the unwind codes have no end":            codes("\xe3\xe3\xe3\xe3"),
		"save_next without a pair":                codes("\xe6\xe4"),
		"save_reg of register 31":                 codes("\xd3\x00\xe4"),
		"alloc_l has 4 bytes, 2 are left":         codes("\xe3\xe3\xe0\x00"),
		"of version 1, expected 0":                record(2, 0, 4, 0x08),
		".xdata record of 128 bytes":              record(2, 0, 0, 0xf8),
		"the epilogue at index 9":                 func(m *maker) uint32 { return m.record(2, []byte("\xe4"), nil, 9) },
		"the frame is smaller than the registers": func(*maker) uint32 { return arm64PackedFunction | 2<<2 | 4<<16 },
	} {
		m := &maker{machine: MachineARM64, code: make([]byte, 8)}
		f, fn := arm64Function(t, m, word(m))
		if err := f.Rows(fn, func(*Row) bool { return true }); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "made.dll: ") {
			t.Errorf("%v, expected %q", err, want)
		}
		useAll(f)
	}
}

// FuzzARM64Unwind reads unwind information and code of one function.
func FuzzARM64Unwind(f *testing.F) {
	f.Add(words(8|1<<21|1<<27), []byte("\xe1\x81\x04\xe4"), uint32(0), make([]byte, 32))
	f.Add(words(9|1<<22|2<<27, 7|6<<22), []byte("\xe6\xd8\x02\xe6\x26\xe4\x26\xe4"), uint32(0), make([]byte, 36))
	f.Add([]byte{}, []byte{}, uint32(arm64PackedFunction|8<<2|2<<16|1<<23), words(0, 0, 0, 0, 0, 0, 0xa8c153f3, arm64Return))
	f.Fuzz(func(t *testing.T, header, codes []byte, word uint32, text []byte) {
		if len(text) < 4 || len(text) > 0x1000 || len(header)+len(codes) > 0x1000 {
			return
		}
		m := &maker{machine: MachineARM64, code: text}
		if at := m.put(append(header, codes...)...); word&arm64FlagMask == 0 {
			word = at
		}
		m.functions(madeCode, word)
		file := m.open(t)
		at := uint64(madeBase + madeCode)
		if fn, ok, err := file.FunctionAt(at); ok && err == nil {
			if err := file.Rows(fn, func(r *Row) bool {
				if r.Start != at || r.End <= at {
					t.Fatalf("row %#x to %#x, expected it to begin at %#x", r.Start, r.End, at)
				}
				at = r.End
				return true
			}); err == nil && at != fn.End {
				t.Fatalf("rows end at %#x, expected %#x", at, fn.End)
			}
		}
		useAll(file)
	})
}
