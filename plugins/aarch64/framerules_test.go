// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

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

// rowText writes a row as offsets from base, CFA, and rules.
func rowText(base uint64, r *cfi.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-%d x%d%+d", r.Start-base, r.End-base, r.CFA.Register, r.CFA.Offset)
	for _, x := range r.Rules {
		switch x.Rule.Kind {
		case cfi.Offset:
			fmt.Fprintf(&b, " %d=c%+d", x.Column, x.Rule.Offset)
		default:
			fmt.Fprintf(&b, " %d=kind%d", x.Column, x.Rule.Kind)
		}
	}
	if r.WindowSave {
		b.WriteString(" signed")
	}
	return b.String()
}

const testBase = 0x401000

func TestFrameRulesOfFunctions(t *testing.T) {
	for name, c := range map[string]struct {
		words []uint32
		want  []string
	}{
		"leaf": {[]uint32{0x8b010000, 0xd65f03c0}, []string{"0-8 x31+0"}}, // add x0, x0, x1; ret
		"frame record": { // stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]; mov x19, x0; bl; ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; ret
			[]uint32{0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0xaa0003f3, 0x94000100, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0},
			[]string{"0-4 x31+0", "4-8 x31+32", "8-16 x31+32 29=c-32", "16-24 x31+32 19=c-16 29=c-32 30=c-24",
				"24-28 x31+32 29=c-32 30=c-24", "28-32 x31+0"}},
		"a stack pointer that is aligned for C": { // as runtime.nanotime1: str x30, [sp, #-48]!; stur x29, [sp, #-8]; sub x29, sp, #8; mov x20, sp;
			// sub x1, x20, #32; and x1, x1, #-16; mov sp, x1; blr x2; mov sp, x20; ldur x29, [sp, #-8]; ldr x30, [sp], #48; ret
			[]uint32{0xf81d0ffe, 0xf81f83fd, 0xd10023fd, 0x910003f4, 0xd1008281, 0x927cec21, 0x9100003f, 0xd63f0040, 0x9100029f, 0xf85f83fd, 0xf84307fe, 0xd65f03c0},
			[]string{"0-4 x31+0", "4-12 x31+48", "12-16 x31+48 29=c-56", "16-28 x31+48 20=kind1 29=c-56", "28-36 x29+56 20=kind1 29=c-56 30=c-48",
				"36-40 x31+48 20=kind1 29=c-56 30=c-48", "40-44 x31+48 20=kind1 30=c-48", "44-48 x31+0 20=kind1"}},
		"signed": { // paciasp; stp x29, x30, [sp, #-16]!; bl; ldp x29, x30, [sp], #16; autiasp; ret
			[]uint32{0xd503233f, 0xa9bf7bfd, 0x94000100, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0},
			[]string{"0-4 x31+0", "4-8 x31+0 signed", "8-16 x31+16 30=c-8 signed", "16-20 x31+0 signed", "20-24 x31+0"}},
		"large frame": { // mov x16, #0x10000; sub sp, sp, x16; add sp, sp, #16, lsl #12; ret
			[]uint32{0xd2a00030, 0xcb3063ff, 0x914043ff, 0xd65f03c0},
			[]string{"0-8 x31+0", "8-12 x31+65536", "12-16 x31+0"}},
		"call that does not return": { // stp x29, x30, [sp, #-16]!; cbz x0, 1f; bl; ldp x29, x30, [sp], #16; ret; 1: bl
			[]uint32{0xa9bf7bfd, 0xb4000080, 0x94000100, 0xa8c17bfd, 0xd65f03c0, 0x94000100},
			[]string{"0-4 x31+0", "4-8 x31+16", "8-16 x31+16 30=c-8", "16-20 x31+0", "20-24 x31+16 30=c-8"}},
	} {
		t.Run(name, func(t *testing.T) {
			var code []byte
			for _, w := range c.words {
				code = binary.LittleEndian.AppendUint32(code, w)
			}
			rules := ask(t, sdk.CodeRange{PC: testBase, Start: testBase, Code: code, Bounded: true, Exact: true})
			var got []string
			for i := range rules.Rows {
				got = append(got, rowText(testBase, &rules.Rows[i]))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("reason %q (-want +got):\n%s", rules.Reason, diff)
			}
		})
	}
}

// A trampoline has a row at its instructions, and at the byte before where a handler
// returns to it.
func TestTrampoline(t *testing.T) {
	code := []byte("\x1f\x20\x03\xd5" + trampoline + "\x1f\x20\x03\xd5")
	for _, c := range []struct {
		at      uint64
		isExact bool
		want    string
	}{
		{4, true, "4-12"}, {8, true, "4-12"}, {3, false, "3-12"}, {3, true, ""}, {12, true, ""}, {0, true, ""},
	} {
		got := ask(t, sdk.CodeRange{PC: testBase + c.at, Start: testBase, Code: code, Exact: c.isExact})
		rows := ""
		for _, r := range got.Rows {
			rows += fmt.Sprintf("%d-%d", r.Start-testBase, r.End-testBase)
			if !r.SignalFrame || !got.Trampoline || len(r.Rules) != 33 || r.ReturnAddress != uint64(pc) {
				t.Errorf("%+v", r)
			}
		}
		if rows != c.want {
			t.Errorf("at %d, exact %v: rows %q, expected %q (%s)", c.at, c.isExact, rows, c.want, got.Reason)
		}
	}
}
