// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

var registerNames = [...]string{0: "rax", 1: "rdx", 2: "rcx", 3: "rbx", 4: "rsi", 5: "rdi", 6: "rbp", 7: "rsp", 12: "r12", 16: "rip", 23: "xmm6"}

// short is a row in a line: part, offsets in the code, CFA and rules.
func short(r *Row) string {
	s := fmt.Sprintf("%v %d-%d %s%+d", r.Part, r.Start-madeBase-madeCode, r.End-madeBase-madeCode, registerNames[r.CFA.Register], r.CFA.Offset)
	for _, rule := range r.Rules {
		s += fmt.Sprintf(" %s=c%+d", registerNames[rule.Column], rule.Rule.Offset)
	}
	if r.SignalFrame {
		s += " signal"
	}
	if r.IsCodeMissing {
		s += " unread"
	}
	return s
}

// The codes of the document's table, with registers as instructions number them.
const (
	rbx, rbp, rsi, rdi, r12 = 3, 5, 6, 7, 12
)

func code(offset byte, o Operation, info byte) []byte { return []byte{offset, byte(o) | info<<4} }

// info makes an UNWIND_INFO.
func info(versionAndFlags, prolog, frame byte, codes ...[]byte) []byte {
	all := slices.Concat(codes...)
	b := append([]byte{versionAndFlags, prolog, byte(len(all) / 2), frame}, all...)
	if len(all)%4 != 0 {
		b = append(b, 0, 0)
	}
	return b
}

// TestRows has functions whose rows can be told by hand.
func TestRows(t *testing.T) {
	nops := func(n int) string { return strings.Repeat("\x90", n) }
	for name, c := range map[string]struct {
		code string
		info []byte
		want []string
	}{
		"pushes and an allocation": {
			"\x53\x56\x48\x83\xec\x28\x90\x48\x83\xc4\x28\x5e\x5b\xc3\x90",
			info(1, 6, 0, code(6, AllocSmall, 4), code(2, PushNonvol, rsi), code(1, PushNonvol, rbx)),
			[]string{
				"prologue 0-1 rsp+8 rip=c-8", "prologue 1-2 rsp+16 rbx=c-16 rip=c-8", "prologue 2-6 rsp+24 rbx=c-16 rsi=c-24 rip=c-8",
				"body 6-11 rsp+64 rbx=c-16 rsi=c-24 rip=c-8", "epilogue 11-12 rsp+24 rbx=c-16 rsi=c-24 rip=c-8",
				"epilogue 12-13 rsp+16 rbx=c-16 rip=c-8", "epilogue 13-14 rsp+8 rip=c-8", "body 14-15 rsp+64 rbx=c-16 rsi=c-24 rip=c-8",
			},
		},
		"a frame register": { // push rbp; push rdi; sub rsp,0x40; lea rbp,[rsp+0x20]; nop; lea rsp,[rbp+0x20]; pop rdi; pop rbp; ret
			"\x55\x57\x48\x83\xec\x40\x48\x8d\x6c\x24\x20\x90\x48\x8d\x65\x20\x5f\x5d\xc3",
			info(1, 11, 0x20|rbp, code(11, SetFPReg, 0), code(6, AllocSmall, 7), code(2, PushNonvol, rdi), code(1, PushNonvol, rbp)),
			[]string{
				"prologue 0-1 rsp+8 rip=c-8", "prologue 1-2 rsp+16 rbp=c-16 rip=c-8", "prologue 2-6 rsp+24 rdi=c-24 rbp=c-16 rip=c-8",
				"prologue 6-11 rsp+88 rdi=c-24 rbp=c-16 rip=c-8", "body 11-16 rbp+56 rdi=c-24 rbp=c-16 rip=c-8",
				"epilogue 16-17 rsp+24 rdi=c-24 rbp=c-16 rip=c-8", "epilogue 17-18 rsp+16 rbp=c-16 rip=c-8", "epilogue 18-19 rsp+8 rip=c-8",
			},
		},
		"a frame register set in the middle": { // what was pushed behind it is found from it
			nops(12), info(1, 6, rbp, code(6, AllocSmall, 1), code(5, PushNonvol, rbx), code(4, SetFPReg, 0), code(1, PushNonvol, rbp)),
			[]string{
				"prologue 0-1 rsp+8 rip=c-8", "prologue 1-4 rsp+16 rbp=c-16 rip=c-8", "prologue 4-5 rbp+16 rbp=c-16 rip=c-8",
				"prologue 5-6 rbp+16 rbx=c-24 rbp=c-16 rip=c-8", "body 6-12 rbp+16 rbx=c-24 rbp=c-16 rip=c-8",
			},
		},
		"moves": { // SAVE_NONVOL counts by 8, SAVE_XMM128 by 16, the far ones by 1; ALLOC_LARGE of both sizes
			nops(40), info(1, 30, 0, code(30, SaveXMM128, 6), []byte{2, 0}, code(24, SaveNonvol, rdi), []byte{0x20, 0},
				code(18, SaveNonvolFar, rbx), words(0x80010), code(10, AllocLarge, 1), words(0x80000), code(3, AllocLarge, 0), []byte{0x11, 0}),
			[]string{
				"prologue 0-3 rsp+8 rip=c-8", "prologue 3-10 rsp+144 rip=c-8", "prologue 10-18 rsp+524432 rip=c-8",
				"prologue 18-24 rsp+524432 rbx=c-128 rip=c-8", "prologue 24-30 rsp+524432 rbx=c-128 rdi=c-524176 rip=c-8",
				"body 30-40 rsp+524432 rbx=c-128 rdi=c-524176 rip=c-8 xmm6=c-524400",
			},
		},
		"moves above a frame register": { // SAVE_NONVOL is above where rsp was, not above the register
			nops(12), info(1, 8, 0x10|rbp, code(8, SaveNonvol, rbx), []byte{3, 0}, code(6, SetFPReg, 0), code(2, AllocSmall, 7), code(1, PushNonvol, rbp)),
			[]string{
				"prologue 0-1 rsp+8 rip=c-8", "prologue 1-2 rsp+16 rbp=c-16 rip=c-8", "prologue 2-6 rsp+80 rbp=c-16 rip=c-8",
				"prologue 6-8 rbp+64 rbp=c-16 rip=c-8", "body 8-12 rbp+64 rbx=c-56 rbp=c-16 rip=c-8",
			},
		},
		"moves above a frame register that more was allocated below": {
			nops(12), info(1, 8, 0x10|rbp, code(8, SaveNonvol, rbx), []byte{3, 0}, code(7, AllocSmall, 3), code(6, SetFPReg, 0), code(2, AllocSmall, 7), code(1, PushNonvol, rbp)),
			[]string{
				"prologue 0-1 rsp+8 rip=c-8", "prologue 1-2 rsp+16 rbp=c-16 rip=c-8", "prologue 2-6 rsp+80 rbp=c-16 rip=c-8",
				"prologue 6-7 rbp+64 rbp=c-16 rip=c-8", "prologue 7-8 rbp+64 rbp=c-16 rip=c-8", "body 8-12 rbp+64 rbx=c-56 rbp=c-16 rip=c-8",
			},
		},
		"a machine frame": {
			nops(4), info(1, 0, 0, code(0, AllocSmall, 0), code(0, PushMachFrame, 0)),
			[]string{"body 0-4 rsp+48 rsp=c-16 rip=c-40 signal"},
		},
		"a machine frame with an error code": {
			nops(4) + "\xc3", info(1, 0, 0, code(0, PushMachFrame, 1)),
			[]string{"body 0-5 rsp+48 rsp=c-16 rip=c-40 signal"},
		},
		"a jump to another function": { // add rsp,0x28; jmp, and a jump in the body
			"\x48\x83\xec\x28\xe9\x00\x10\x00\x00\x48\x83\xc4\x28\xe9\x00\x10\x00\x00",
			info(1, 4, 0, code(4, AllocSmall, 4)),
			[]string{"prologue 0-4 rsp+8 rip=c-8", "body 4-13 rsp+48 rip=c-8", "epilogue 13-18 rsp+8 rip=c-8"},
		},
		"a jump that leaves with the frame": { // to another part of the function
			"\x53\x90\xe9\x00\x10\x00\x00\x48\xff\xe0",
			info(1, 1, 0, code(1, PushNonvol, rbx)),
			[]string{"prologue 0-1 rsp+8 rip=c-8", "body 1-10 rsp+16 rbx=c-16 rip=c-8"},
		},
		"code that the decoder does not know": { // vzeroupper; vmovaps; endbr64: a return's byte inside is none
			"\x53\xc5\xf8\x77\xc5\xf8\x29\x84\x24\xc3\xc3\xc3\xc3\xf3\x0f\x1e\xfa\x62\xf1\x7c\x48\x28\x40\xc3\x5b\xc3",
			info(1, 1, 0, code(1, PushNonvol, rbx)),
			[]string{"prologue 0-1 rsp+8 rip=c-8", "body 1-24 rsp+16 rbx=c-16 rip=c-8", "epilogue 24-25 rsp+16 rbx=c-16 rip=c-8", "epilogue 25-26 rsp+8 rip=c-8"},
		},
		"code that the decoder does not know, at the end": {
			"\x48\x83\xec\x28\x48\x83\xc4\x28\xc5\xf8\x77\xc3", info(1, 4, 0, code(4, AllocSmall, 4)),
			[]string{"prologue 0-4 rsp+8 rip=c-8", "body 4-11 rsp+48 rip=c-8", "epilogue 11-12 rsp+8 rip=c-8"},
		},
		"an instruction that is cut off": {"\x90\x62", info(1, 0, 0), []string{"body 0-2 rsp+8 rip=c-8"}},
		"version 2": { // the codes of epilogues are no others
			"\x53\x90\x5b\xc3",
			info(2, 1, 0, code(2, epilogOperation, 1), code(0, epilogOperation, 0), code(1, PushNonvol, rbx)),
			[]string{"prologue 0-1 rsp+8 rip=c-8", "body 1-2 rsp+16 rbx=c-16 rip=c-8", "epilogue 2-3 rsp+16 rbx=c-16 rip=c-8", "epilogue 3-4 rsp+8 rip=c-8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &maker{code: []byte(c.code)}
			m.functions(madeCode, madeCode+uint32(len(c.code)), m.put(c.info...))
			checkRows(t, m.open(t), c.want)
		})
	}
}

// checkRows compares the rows of the first function, listed and looked up at each address.
func checkRows(t *testing.T, f *File, want []string) {
	t.Helper()
	fn, ok, err := f.FunctionAt(madeBase + madeCode)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	var got []string
	if err := f.Rows(fn, func(r *Row) bool {
		got = append(got, short(r))
		var at Row
		for pc := r.Start; pc < r.End; pc++ {
			if err := f.RowAt(pc, &at); err != nil || short(&at) != short(r) {
				t.Errorf("row at %#x: %s, %v, expected %s", pc, short(&at), err, short(r))
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nexpected:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestChainedInformation has a second range of a function, which saves one more register,
// a third that shares the information of the first, and one that is chained to itself.
func TestChainedInformation(t *testing.T) {
	m := &maker{code: []byte(strings.Repeat("\x90", 64))}
	first := m.put(info(1, 5, 0, code(5, AllocSmall, 7), code(1, PushNonvol, rbx))...)
	entry := words(madeCode, madeCode+16, first)
	second := m.put(append(info(1|IsChained<<3, 4, 0, code(4, SaveNonvol, rsi), []byte{2, 0}), entry...)...)
	table := madeData + uint32(len(m.data))
	self := table + 12*4
	m.functions(madeCode, madeCode+16, first, madeCode+16, madeCode+32, second, madeCode+32, madeCode+48, table|isIndirect, madeCode+48, madeCode+64, self)
	m.put(append(info(1|IsChained<<3, 0, 0), words(madeCode+48, madeCode+64, self)...)...)
	f := m.open(t)
	for pc, want := range map[uint64]string{
		15: "body 5-16 rsp+80 rbx=c-16 rip=c-8",
		19: "prologue 16-20 rsp+80 rbx=c-16 rip=c-8",
		20: "body 20-32 rsp+80 rbx=c-16 rsi=c-64 rip=c-8",
		33: "body 32-48 rsp+80 rbx=c-16 rip=c-8",
	} {
		var r Row
		if err := f.RowAt(madeBase+madeCode+pc, &r); err != nil || short(&r) != want {
			t.Errorf("%d: %s, %v, expected %s", pc, short(&r), err, want)
		}
	}
	var r Row
	if err := f.RowAt(madeBase+madeCode+50, &r); err == nil || !strings.Contains(err.Error(), "more than 32 unwind informations are chained") {
		t.Errorf("chained to itself: %v", err)
	}
}

// TestLeaves looks up code that is in no function, and what is no code.
func TestLeaves(t *testing.T) {
	m := &maker{code: []byte(strings.Repeat("\x90", 64))}
	u := m.put(info(1, 0, 0)...)
	m.functions(madeCode+16, madeCode+32, u, madeCode+48, madeCode+50, u)
	f := m.open(t)
	for pc, want := range map[uint64]string{
		0: "leaf 0-16 rsp+8 rip=c-8", 15: "leaf 0-16 rsp+8 rip=c-8", 32: "leaf 32-48 rsp+8 rip=c-8", 63: "leaf 50-64 rsp+8 rip=c-8",
	} {
		var r Row
		if err := f.RowAt(madeBase+madeCode+pc, &r); err != nil || short(&r) != want {
			t.Errorf("%d: %s, %v, expected %s", pc, short(&r), err, want)
		}
	}
	for _, pc := range []uint64{0, madeBase, madeBase + madeData, madeBase + madeCode + 64, madeBase + 0x4000, ^uint64(0)} {
		if err := f.RowAt(pc, new(Row)); !errors.Is(err, ErrNoRow) {
			t.Errorf("%#x: %v, expected %v", pc, err, ErrNoRow)
		}
	}
}

// TestRowsWithoutCode has a file whose code is missing.
func TestRowsWithoutCode(t *testing.T) {
	m := &maker{code: []byte("\x53\x90\x90\x5b\xc3")}
	m.functions(madeCode, madeCode+5, m.put(info(1, 1, 0, code(1, PushNonvol, rbx))...))
	f := m.open(t)
	f.sections[0].RawSize = 0
	checkRows(t, f, []string{"prologue 0-1 rsp+8 rip=c-8", "body 1-5 rsp+16 rbx=c-16 rip=c-8 unread"})
}

// TestDefaultRules checks which registers Windows keeps.
func TestDefaultRules(t *testing.T) {
	var kept []uint64
	for _, r := range x64DefaultRules() {
		if r.Rule.Kind == cfi.SameValue {
			kept = append(kept, r.Column)
		}
	}
	if want := []uint64{3, 4, 5, 6, 12, 13, 14, 15, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, dwarfGSBase}; !slices.Equal(kept, want) {
		t.Errorf("%v, expected %v", kept, want)
	}
}
