// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// classify asks about one PC.
func classify(t *testing.T, pc uint64, before []byte) (sdk.ReturnClass, uint64) {
	t.Helper()
	req := &sdk.ClassifyReturnRequest{PCs: []uint64{pc}, Offsets: []uint32{0, uint32(len(before))}, Code: before}
	answer, err := New().ClassifyReturn(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(bindDescription(), req); err != nil {
		t.Fatal(err)
	}
	return answer.Classes[0], answer.Targets[0]
}

func TestClassifyReturn(t *testing.T) {
	nops := strings.Repeat("nop;", 12)
	cases := map[string]struct {
		code   string
		want   sdk.ReturnClass
		length uint64 // of a direct call
	}{
		"direct":             {nops + "call .+0x100", sdk.AfterDirectCall, 5},
		"address_prefix":     {nops + "addr32 call .+0x100", sdk.AfterDirectCall, 5},
		"tls_general":        {nops + ".byte 0x66; rex64 call .+0x100", sdk.AfterDirectCall, 6},
		"register":           {nops + "call *%rax", sdk.AfterIndirectCall, 0},
		"extended_register":  {nops + "call *%r12", sdk.AfterIndirectCall, 0},
		"memory":             {nops + "call *(%rax)", sdk.AfterIndirectCall, 0},
		"displacement":       {nops + "call *0x18(%rax)", sdk.AfterIndirectCall, 0},
		"wide_displacement":  {nops + "call *0x1234(%rax)", sdk.AfterIndirectCall, 0},
		"stack":              {nops + "call *0x8(%rsp)", sdk.AfterIndirectCall, 0},
		"index":              {nops + "call *0x1234(%r13,%r14,8)", sdk.AfterIndirectCall, 0},
		"got":                {nops + "call *0x1234(%rip)", sdk.AfterIndirectCall, 0},
		"absolute":           {nops + "call *0x1234", sdk.AfterIndirectCall, 0},
		"notrack":            {nops + "notrack call *%rax", sdk.AfterIndirectCall, 0},
		"bnd":                {nops + "bnd call *%rax", sdk.AfterIndirectCall, 0},
		"segment":            {nops + "call *%fs:0x10", sdk.AfterIndirectCall, 0},
		"jump":               {nops + "jmp .+0x100", sdk.NotAfterCall, 0},
		"indirect_jump":      {nops + "jmp *%rax", sdk.NotAfterCall, 0},
		"after_one_more":     {nops + "call .+0x100; nop", sdk.NotAfterCall, 0},
		"immediate_not_call": {nops + "mov $0x11111111,%eax", sdk.NotAfterCall, 0},
		"nothing_known":      {"nop", sdk.UnknownReturn, 0},
		"short_but_a_call":   {"call *%rax", sdk.AfterIndirectCall, 0},
	}
	sources := make(map[string]string)
	for name, c := range cases {
		sources[name] = c.code
	}
	code := assemble(t, sources)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pc := uint64(testBase)
			class, target := classify(t, pc, code[name])
			if class != c.want {
				t.Errorf("class of %x: %d, expected %d", code[name], class, c.want)
			}
			if want := class == sdk.AfterDirectCall; want != (target != 0) {
				t.Errorf("target %#x of class %d", target, class)
			}
			// .+0x100 counts from the start of the call.
			if want := pc - c.length + 0x100; class == sdk.AfterDirectCall && target != want {
				t.Errorf("target %#x, expected %#x", target, want)
			}
		})
	}
}

func TestClassifyReturnNeedsOffsetsThatFit(t *testing.T) {
	for name, req := range map[string]*sdk.ClassifyReturnRequest{
		"no offsets":   {PCs: []uint64{1}},
		"past the end": {PCs: []uint64{1}, Offsets: []uint32{0, 2}, Code: []byte{0}},
		"backwards":    {PCs: []uint64{1, 2}, Offsets: []uint32{0, 1, 0}, Code: []byte{0}},
	} {
		if _, err := New().ClassifyReturn(context.Background(), req); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzClassifyReturn(f *testing.F) {
	for _, seed := range []string{"\xe8\x00\x01\x00\x00", "\xff\xd0", "\x41\xff\x94\x24\x34\x12\x00\x00", "\x67\xe8\x00\x00\x00\x00", "\x66\x66\x48\xe8\x00\x00\x00\x00"} {
		f.Add(uint64(testBase), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, pc uint64, before []byte) {
		class, target := classify(t, pc, before)
		if class != sdk.AfterDirectCall && target != 0 {
			t.Errorf("class %d has target %#x", class, target)
		}
	})
}
