// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// A part of a function has the frame that the function has made where it jumps there.
func TestPartsAreReadWithTheirFunction(t *testing.T) {
	const start, part = 0x2000, 0x1000
	function := []byte{ // push %rbx; sub $0x20,%rsp; test %edi,%edi; jne part; add $0x20,%rsp; pop %rbx; ret
		0x53, 0x48, 0x83, 0xec, 0x20, 0x85, 0xff, 0x0f, 0x85, 0xf3, 0xef, 0xff, 0xff, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3}
	cold := []byte{0x31, 0xff, 0xe8, 0, 1, 0, 0} // xor %edi,%edi; call, which does not return
	ask := func(parts ...sdk.CodePart) sdk.FrameRules {
		t.Helper()
		req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{
			{PC: part + 6, Start: start, Code: function, Bounded: true, Name: "f", Parts: parts}}}
		answer, err := New().FrameRules(context.Background(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Validate(bindDescription(), req); err != nil {
			t.Fatal(err)
		}
		return answer.Functions[0]
	}
	got := ask(sdk.CodePart{Start: part, Code: cold}, sdk.CodePart{Start: 0x9000, Code: cold})
	if len(got.Rows) != 1 || rowText(part, &got.Rows[0]) != "0-7 rsp+48 rip=c-8" {
		t.Errorf("%+v", got)
	}
	// Where the function does not lead, nothing is known.
	if got := ask(sdk.CodePart{Start: part + 1, Code: cold[1:]}); len(got.Rows) != 0 || got.Reason == "" {
		t.Errorf("code that is not reached: %+v", got)
	}
	if got := ask(sdk.CodePart{Start: 0x9000, Code: cold}); len(got.Rows) != 0 || got.Reason == "" {
		t.Errorf("the PC is in no part: %+v", got)
	}
}
