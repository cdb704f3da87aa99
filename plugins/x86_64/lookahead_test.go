// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
)

// Code without bounds. The PC is after the marker: a nop with the displacement
// 0x11223344.
var marker = []byte{0x0f, 0x1f, 0x80, 0x44, 0x33, 0x22, 0x11}

const markerText = "nopl 0x11223344(%rax); "

func TestFrameRulesWithoutBounds(t *testing.T) {
	cases := map[string]struct {
		code    string
		inCall  bool // the PC is inside the call that ends at the marker
		want    []string
		because string
	}{
		"body": {code: markerText + "mov %eax,%ebx; add $24,%rsp; pop %rbx; ret",
			want: []string{"7-9 rsp+40 rbx=c-16 rip=c-8"}},
		"epilogue": {code: markerText + "pop %r12; pop %rbx; ret",
			want: []string{"7-9 rsp+24 rbx=c-16 r12=c-24 rip=c-8"}},
		"frame_pointer": {code: markerText + "mov -8(%rbp),%rbx; leave; ret",
			want: []string{"7-11 rbp+16 rbx=c-24 rbp=c-16 rip=c-8"}},
		"prologue": {code: markerText + "push %rbx; mov %edi,%ebx; sub $16,%rsp; add $16,%rsp; pop %rbx; ret",
			want: []string{"7-8 rsp+8 rip=c-8"}},
		// rbx is the caller's on the way from here to the loop, and not within the loop.
		"before_a_loop": {code: markerText + "push %rbx; 1: cmp %esi,(%rdi); je 2f; mov (%rdi),%ebx; jmp 1b; 2: pop %rbx; ret",
			want: []string{"7-8 rsp+8 rip=c-8"}},
		"realigned": {code: markerText + "mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret",
			want: []string{"7-11 expr:767806 rbp=expr:7600 rip=c-8"}},
		"backwards": {code: "1: add $8,%rsp; ret; " + markerText + "jmp 1b",
			want: []string{"12-14 rsp+16 rip=c-8"}},
		"both_ways": {code: markerText + "test %eax,%eax; je 1f; pop %rax; ret; 1: add $8,%rsp; ret",
			want: []string{"7-9 rsp+16 rip=c-8"}},
		"call_in_progress": {code: "call .+99; " + markerText + "add $8,%rsp; ret", inCall: true,
			want: []string{"4-5 rsp+16 rip=c-8"}},
		"through_calls": {code: markerText + "call .+99; call *%rax; add $8,%rsp; ret",
			want: []string{"7-12 rsp+16 rip=c-8"}},
		"call_that_does_not_return": {code: "call .+99; " + markerText + "endbr64; push %rbx; pop %rbx; ret", inCall: true,
			because: "the call before does not return"},
		"arguments_that_stay": {code: "push %rax; push $1; call .+99; " + markerText + "add $88,%rsp; ret", inCall: true,
			because: "the call before does not return"},
		"two_frames": {code: markerText + "test %eax,%eax; je 1f; pop %rcx; 1: ret",
			because: "stack pointer is not known"},
		"different_frames": {code: markerText + "test %eax,%eax; je 1f; pop %rcx; ret; 1: ret",
			because: "different frames"},
		"no_return":   {code: markerText + "1: jmp 1b", because: "no return"},
		"not_code":    {code: markerText + ".byte 0x06", because: "no return"},
		"not_in_call": {code: "nop; nop; " + markerText + "ret", inCall: true, because: "not inside a call"},
	}
	sources := make(map[string]string)
	for name, c := range cases {
		sources[name] = c.code
	}
	code := assemble(t, sources)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			at := bytes.Index(code[name], marker)
			r := sdk.CodeRange{Start: testBase, Code: code[name], PC: testBase + uint64(at+len(marker)), Exact: true}
			if c.inCall {
				r.PC, r.Exact = testBase+uint64(at)-1, false
				// What follows the call is right behind it.
				r.Code = append(append([]byte{}, code[name][:at]...), code[name][at+len(marker):]...)
			}
			got := ask(t, r)
			if diff := cmp.Diff(c.want, rowTexts(testBase, &got)); diff != "" {
				t.Errorf("rows, reason %q (-want +got):\n%s", got.Reason, diff)
			}
			if !strings.Contains(got.Reason, c.because) {
				t.Errorf("reason %q, expected one that contains %q", got.Reason, c.because)
			}
		})
	}
}

func TestFrameRulesOfUnlikelyPartsAreNotReadFromTheirStart(t *testing.T) {
	code := assemble(t, map[string]string{"part": "xor %ebx,%ebx; add $24,%rsp; pop %rbx; ret"})["part"]
	got := ask(t, sdk.CodeRange{PC: testBase, Start: testBase, Code: code, Bounded: true, Exact: true, Name: "f.cold"})
	want := []string{"0-2 rsp+40 rbx=c-16 rip=c-8"}
	if diff := cmp.Diff(want, rowTexts(testBase, &got)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestFrameRulesOfLinkageTables(t *testing.T) {
	const (
		header = "pushq 0x2fe2(%rip); jmp *0x2fe4(%rip); .byte 0x0f,0x1f,0x40,0; "
		lazy   = "jmp *0x2fe2(%rip); .byte 0x68; .long 5; .byte 0xe9; .long -48; "
	)
	cases := map[string]struct {
		code string
		at   uint64
		want []string
	}{
		"header_push":     {header + lazy, 0, []string{"0-6 rsp+16 rip=c-8", "6-12 rsp+24 rip=c-8"}},
		"header_jump":     {header + lazy, 6, []string{"0-6 rsp+16 rip=c-8", "6-12 rsp+24 rip=c-8"}},
		"entry_jump":      {header + lazy, 16, []string{"16-27 rsp+8 rip=c-8", "27-32 rsp+16 rip=c-8"}},
		"entry_push":      {header + lazy, 22, []string{"16-27 rsp+8 rip=c-8", "27-32 rsp+16 rip=c-8"}},
		"entry_to_header": {header + lazy, 27, []string{"16-27 rsp+8 rip=c-8", "27-32 rsp+16 rip=c-8"}},
		"ibt_header":      {"pushq 0x2fe2(%rip); bnd jmp *0x2fe3(%rip); nopl (%rax)", 6, []string{"0-6 rsp+16 rip=c-8", "6-13 rsp+24 rip=c-8"}},
		"ibt_lazy":        {"endbr64; .byte 0x68; .long 5; .byte 0xf2,0xe9; .long -48; nop", 9, []string{"0-9 rsp+8 rip=c-8", "9-15 rsp+16 rip=c-8"}},
		"ibt_second":      {"endbr64; bnd jmp *0x2fe2(%rip); nopl 0(%rax,%rax)", 4, []string{"0-11 rsp+8 rip=c-8"}},
		"got":             {"jmp *0x2fe2(%rip); xchg %ax,%ax", 0, []string{"0-6 rsp+8 rip=c-8"}},
		"mold":            {"endbr64; mov $7,%r11d; jmp *0x2fe2(%rip)", 10, []string{"0-16 rsp+8 rip=c-8"}},
		"mold_header":     {"endbr64; push %r11; pushq 0x2fe2(%rip); jmp *0x2fe4(%rip)", 12, []string{"0-6 rsp+8 rip=c-8", "6-12 rsp+16 rip=c-8", "12-18 rsp+24 rip=c-8"}},
		"tls_descriptor":  {"pushq 0x2fe2(%rip); jmp *0x4444(%rip); nopl 0(%rax)", 0, nil},
		"inside_the_jump": {"jmp *0x2fe2(%rip); xchg %ax,%ax", 1, nil},
	}
	sources := make(map[string]string)
	for name, c := range cases {
		sources[name] = c.code
	}
	code := assemble(t, sources)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, sdk.CodeRange{PC: testBase + c.at, Start: testBase, Code: code[name], Name: ".plt", Exact: true})
			if diff := cmp.Diff(strings.Join(c.want, "\n"), strings.Join(rowTexts(testBase, &got), "\n")); diff != "" {
				t.Errorf("rows of %x, reason %q (-want +got):\n%s", code[name], got.Reason, diff)
			}
		})
	}
}
