// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
)

func disassembleAll(t *testing.T, address uint64, code []byte) []sdk.Instruction {
	t.Helper()
	req := &sdk.DisassembleRequest{Address: address, Code: code}
	answer, err := New().Disassemble(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(bindDescription(), req); err != nil {
		t.Fatal(err)
	}
	return answer.Instructions
}

func TestDisassemble(t *testing.T) {
	code := assemble(t, map[string]string{"t": "endbr64; push %rbp; mov %rsp,%rbp; vzeroupper; rdpkru; call .+0x20; .byte 0x06; ret; .byte 0x48,0x8b"})["t"]
	var got []string
	for _, i := range disassembleAll(t, testBase, code) {
		got = append(got, fmt.Sprintf("%d %d %s", i.Address-testBase, i.Size, i.Text))
	}
	want := []string{"0 4 endbr64", "4 1 push %rbp", "5 3 mov %rsp,%rbp", "8 3 vzeroupper", "11 3 rdpkru",
		"14 5 callq 0x40102e", "19 1 (bad)", "20 1 retq", "21 1 (bad)", "22 1 (bad)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions of %x (-want +got):\n%s", code, diff)
	}
}

func TestMovesOfDebugRegistersAccessNoMemory(t *testing.T) {
	for _, code := range []string{"\x0f\x23\x58", "\x0f\x20\x05", "\x0f\x22\x08", "\x0f\x21\x84"} {
		answer, err := New().Disassemble(t.Context(), &sdk.DisassembleRequest{Address: testBase, Code: []byte(code)})
		if err != nil || len(answer.Instructions) != 1 || answer.Instructions[0].Size != 3 || len(answer.Instructions[0].Accesses) != 0 {
			t.Errorf("% x: %+v, %v", code, answer, err)
		}
	}
}

func FuzzDisassemble(f *testing.F) {
	f.Add([]byte("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xc3"))
	f.Add([]byte("\x62\xf1\x7c\x48\x58\xc1\xc4\xe3\xf9\x6b\xc9\x20"))
	f.Add([]byte("\x0f\x23\x58\xc3")) // ModRM of moves of debug registers has no address
	f.Fuzz(func(t *testing.T, code []byte) {
		at := uint64(testBase)
		for _, i := range disassembleAll(t, testBase, code) {
			if i.Address != at || i.Size == 0 || i.Text == "" {
				t.Fatalf("instruction %+v at %#x", i, at)
			}
			at += uint64(i.Size)
		}
		if at != testBase+uint64(len(code)) {
			t.Errorf("%d of %d bytes", at-testBase, len(code))
		}
	})
}
