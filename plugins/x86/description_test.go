// SPDX-License-Identifier: Apache-2.0

package x86

import (
	"context"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) {
	code := []byte{0x55, 0x89, 0xe5, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x5d, 0xc3} // push %ebp; mov %esp,%ebp; call; pop %ebp; ret
	archtest.Test(t, New(), archtest.Options{Code: code})
}

func TestDescriptionIsValid(t *testing.T) {
	if err := Description().Validate(); err != nil {
		t.Fatal(err)
	}
}

// A register is where the record of its set has it, and no two share a byte.
func TestRegisterSetsAreLaidOutAsTheirRecords(t *testing.T) {
	for _, set := range registerSets() {
		if set.Source == sdk.PerfSample {
			continue
		}
		var taken []uint32
		for _, f := range set.Fields {
			for i := range f.Size {
				taken = append(taken, f.Offset+i)
			}
		}
		slices.Sort(taken)
		if n := len(taken); len(slices.Compact(taken)) != n {
			t.Errorf("set %s %#x: two registers share a byte", set.Owner, set.Type)
		}
	}
	for _, want := range []struct {
		source   sdk.RegisterSource
		kind     uint32
		register uint32
		offset   uint32
	}{
		{sdk.CoreNote, ntPrstatus, eip, 72 + 4*12}, {sdk.CoreNote, ntPrstatus, esp, 72 + 4*15}, {sdk.CoreNote, ntPrstatus, ebx, 72},
		{sdk.MinidumpContext, 716, eip, 184}, {sdk.MinidumpContext, 716, esp, 196}, {sdk.MinidumpContext, 716, ebp, 180},
		{sdk.MinidumpContext, 716, eax, 176}, {sdk.PerfSample, 0, esp, 7}, {sdk.PerfSample, 0, eip, 8},
	} {
		i := slices.IndexFunc(registerSets(), func(s sdk.RegisterSet) bool { return s.Source == want.source && s.Type == want.kind })
		fields := registerSets()[i].Fields
		j := slices.IndexFunc(fields, func(f sdk.RegisterField) bool { return f.Register == want.register })
		if fields[j].Offset != want.offset {
			t.Errorf("set %d %#x: register %d at %d, expected %d", want.source, want.kind, want.register, fields[j].Offset, want.offset)
		}
	}
}

// ask makes a request of one function, and checks the answer as the engine does.
func ask(t *testing.T, r sdk.CodeRange) sdk.FrameRules {
	t.Helper()
	req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{r}}
	answer, err := New().FrameRules(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(bindDescription(), req); err != nil {
		t.Fatal(err)
	}
	return answer.Functions[0]
}

const testBase = 0x401000

// cfaAt is the CFA of a function at an offset of its code: the register and the distance; "" where
// there is none.
func cfaAt(t *testing.T, code string, offset uint64, bounded, exact bool) (cfa cfi.CFARule, row *cfi.Row) {
	t.Helper()
	rules := ask(t, sdk.CodeRange{PC: testBase + offset, Start: testBase, Code: []byte(code), Bounded: bounded, Exact: exact})
	for i := range rules.Rows {
		if r := &rules.Rows[i]; r.Start <= testBase+offset && testBase+offset < r.End {
			return r.CFA, r
		}
	}
	return cfa, nil
}

func TestFramesOfPrologues(t *testing.T) {
	for name, c := range map[string]struct {
		code     string
		offset   uint64
		register uint32
		distance int64
	}{
		"at the beginning":      {"\x55\x89\xe5\x5d\xc3", 0, esp, 4},
		"push %ebp":             {"\x55\x89\xe5\x5d\xc3", 1, esp, 8},
		"mov %esp,%ebp":         {"\x55\x89\xe5\x5d\xc3", 3, ebp, 8},
		"for hot patches":       {"\x8b\xff\x55\x8b\xec\x5d\xc3", 5, ebp, 8},
		"fixed space":           {"\x83\xec\x1c\x90\x83\xc4\x1c\xc3", 3, esp, 32},
		"the PC by a call":      {"\x53\xe8\x00\x00\x00\x00\x5b\x90\x5b\xc3", 7, esp, 8},
		"removes its arguments": {"\x56\x8b\x74\x24\x08\x5e\xc2\x04\x00", 1, esp, 8},
		// lea 4(%esp),%ecx; and $-16,%esp; push -4(%ecx); push %ebp; mov %esp,%ebp; push %ecx; nop;
		// mov -4(%ebp),%ecx; leave; lea -4(%ecx),%esp; ret
		"a stack that is aligned anew": {"\x8d\x4c\x24\x04\x83\xe4\xf0\xff\x71\xfc\x55\x89\xe5\x51\x90\x8b\x4d\xfc\xc9\x8d\x61\xfc\xc3", 7, ecx, 0},
	} {
		cfa, _ := cfaAt(t, c.code, c.offset, true, true)
		if cfa.Kind != cfi.CFARegister || cfa.Register != uint64(c.register) || cfa.Offset != c.distance {
			t.Errorf("%s: %+v, expected register %d + %d", name, cfa, c.register, c.distance)
		}
	}
}

// push $1; push $2; call a, which removes both; push $3; call b, whose argument the caller
// removes; add $4,%esp; then the function's own frame.
func TestArgumentsThatCalleesRemove(t *testing.T) {
	const code = "\x53\x83\xec\x08" + "\x6a\x01\x6a\x02\xe8\x00\x01\x00\x00" + "\x90\x85\xc0\x74\x01\x90" + "\x83\xc4\x08\x5b\xc3"
	for offset, want := range map[uint64]int64{4: 16, 8: 24, 13: 16, 14: 16, 19: 16, 22: 8} {
		if cfa, row := cfaAt(t, code, offset, true, true); row == nil || cfa.Register != uint64(esp) || cfa.Offset != want {
			t.Errorf("at %d: %+v, expected esp+%d", offset, cfa, want)
		}
	}
}

func TestSignalTrampolines(t *testing.T) {
	const old, rt = "\x58\xb8\x77\x00\x00\x00\xcd\x80\x90", "\xb8\xad\x00\x00\x00\xcd\x80\x90"
	for name, c := range map[string]struct {
		code   string
		offset uint64
		sp     string
	}{
		"sigreturn, before it pops": {old, 0, "\x74\x20\x06"},             // breg4 32; deref
		"sigreturn":                 {old, 1, "\x74\x1c\x06"},             // breg4 28; deref
		"rt_sigreturn":              {rt, 0, "\x74\xbc\x01\x06"},          // breg4 188; deref
		"rt_sigreturn, in the call": {rt, 7, "\x74\xbc\x01\x06"},          // likewise
		"before the trampoline":     {"\x90" + rt, 0, "\x74\xbc\x01\x06"}, // a handler's return address less 1
	} {
		rules := ask(t, sdk.CodeRange{PC: testBase + c.offset, Start: testBase, Code: []byte(c.code), Exact: name != "before the trampoline"})
		i := slices.IndexFunc(rules.Rows, func(r cfi.Row) bool { return r.Start <= testBase+c.offset && testBase+c.offset < r.End })
		if i < 0 || !rules.Trampoline || !rules.Rows[i].SignalFrame || string(rules.Rows[i].CFA.Expr) != c.sp {
			t.Errorf("%s: %+v", name, rules)
		}
	}
}

func TestLinkageTables(t *testing.T) {
	entries := "\xff\x35\x04\xc0\x04\x08\xff\x25\x08\xc0\x04\x08\x90\x90\x90\x90" + "\xff\x25\x0c\xc0\x04\x08\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff"
	for offset, want := range map[uint64]int64{0: 8, 6: 12, 16: 4, 22: 4, 27: 8} {
		if cfa, row := cfaAt(t, entries, offset, false, true); row == nil || cfa.Register != uint64(esp) || cfa.Offset != want {
			t.Errorf("at %d: %+v, expected esp+%d", offset, cfa, want)
		}
	}
}

func TestClassifyReturn(t *testing.T) {
	for code, want := range map[string]sdk.ReturnClass{
		"\x90\x90\x90\x90\x90\x90\x90\x90\xe8\x00\x01\x00\x00": sdk.AfterDirectCall,
		"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xff\xd0":     sdk.AfterIndirectCall,
		"\x90\x90\x90\x90\x90\x90\x90\xff\x15\x00\x10\x40\x00": sdk.AfterIndirectCall,
		"\x90\x90\x90\x90\x90\x90\x65\xff\x15\x10\x00\x00\x00": sdk.AfterIndirectCall,
		"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90":     sdk.NotAfterCall,
	} {
		req := &sdk.ClassifyReturnRequest{PCs: []uint64{testBase}, Offsets: []uint32{0, uint32(len(code))}, Code: []byte(code)} //nolint:gosec // small
		answer, err := New().ClassifyReturn(context.Background(), req)
		if err != nil || answer.Classes[0] != want {
			t.Errorf("% x: %v, %v, expected %d", code, answer, err, want)
		}
	}
}

func TestTextsAndAccesses(t *testing.T) {
	for _, c := range []struct {
		code, text string
		accesses   []sdk.Access
	}{
		{"\x89\x10", "mov %edx,(%eax)", []sdk.Access{{IsWrite: true, Size: 4, Base: eax, Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: 32}}},
		{"\x8b\x05\x00\x10\x40\x00", "mov 0x401000,%eax", []sdk.Access{{IsRead: true, Size: 4, Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: sdk.NoRegister, Displacement: 0x401000, AddressBits: 32}}},
		{"\x65\xa1\x14\x00\x00\x00", "mov %gs:0x14,%eax", []sdk.Access{{IsRead: true, Size: 4, Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: gsBase, Displacement: 0x14, AddressBits: 32}}},
		{"\x40", "inc %eax", nil},
		{"\xc5\xf8\x77", "vzeroupper", nil},
	} {
		answer, err := New().Disassemble(context.Background(), &sdk.DisassembleRequest{Address: testBase, Code: []byte(c.code)})
		if err != nil || len(answer.Instructions) != 1 {
			t.Fatalf("% x: %+v, %v", c.code, answer, err)
		}
		if in := answer.Instructions[0]; in.Text != c.text || !slices.Equal(in.Accesses, c.accesses) {
			t.Errorf("% x: %q, %+v, expected %q, %+v", c.code, in.Text, in.Accesses, c.text, c.accesses)
		}
	}
}

// FuzzCode: any bytes give valid answers, and the same ones twice.
func FuzzCode(f *testing.F) {
	for _, seed := range []string{
		"\x55\x89\xe5\x83\xec\x18\xe8\x00\x00\x00\x00\xc9\xc3", "\x8d\x4c\x24\x04\x83\xe4\xf0\xff\x71\xfc\x55\x89\xe5\x51\xc9\x8d\x61\xfc\xc3",
		"\x53\x83\xec\x08\x6a\x01\x6a\x02\xe8\x00\x01\x00\x00\x83\xc4\x08\x5b\xc3", "\x58\xb8\x77\x00\x00\x00\xcd\x80",
		"\x67\x8b\x46\x08\xc5\xf8\x77\x62\xf1\x7c\x48\x10\x00\x9a\x00\x00\x00\x00\x07\x00",
	} {
		for flags := range uint8(4) {
			f.Add([]byte(seed), uint16(len(seed)/2), flags) //nolint:gosec // small
		}
	}
	f.Fuzz(func(t *testing.T, code []byte, at uint16, flags uint8) {
		if len(code) == 0 || len(code) > 1<<12 {
			return
		}
		r := sdk.CodeRange{PC: testBase + uint64(at)%uint64(len(code)), Start: testBase, Code: code, Bounded: flags&1 != 0, Exact: flags&2 != 0}
		a, b := ask(t, r), ask(t, r)
		if len(a.Rows) != len(b.Rows) || a.Reason != b.Reason {
			t.Errorf("%+v, then %+v", a, b)
		}
		if _, err := New().Disassemble(context.Background(), &sdk.DisassembleRequest{Address: testBase, Code: code}); err != nil {
			t.Error(err)
		}
	})
}
