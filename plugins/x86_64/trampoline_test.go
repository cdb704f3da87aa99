// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
)

func TestFrameRulesOfSignalTrampolines(t *testing.T) {
	code := assemble(t, map[string]string{
		"glibc": "nop; mov $15,%rax; syscall; nop",
		"next":  "nop; mov $15,%rax; syscall; push %rbp; ret",
		"short": "nop; mov $15,%eax; syscall; nop",
		"other": "nop; mov $14,%eax; syscall; ret",
		"call":  "call .+9; mov $15,%eax; syscall",
	})
	cases := map[string]struct {
		code  string
		at    uint64
		exact bool
		want  string // range; "" for no trampoline
	}{
		"first instruction":   {"glibc", 1, true, "1-11"},
		"second instruction":  {"glibc", 8, true, "1-11"},
		"short form":          {"short", 6, true, "1-9"},
		"address of a return": {"glibc", 1, false, "1-10"},
		"before the return":   {"glibc", 0, false, "0-10"},
		"instruction before":  {"glibc", 0, true, ""},
		"in the system call":  {"glibc", 10, true, "1-11"},
		"a return to after":   {"glibc", 10, false, ""},
		"the next function":   {"next", 10, true, ""},
		"before a function":   {"next", 8, true, "1-10"},
		"another system call": {"other", 1, true, ""},
		"a call ends before":  {"call", 4, false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, sdk.CodeRange{PC: testBase + c.at, Start: testBase, Code: code[c.code], Exact: c.exact})
			if got.Trampoline != (c.want != "") {
				t.Fatalf("trampoline %v, rows %v", got.Trampoline, rowTexts(testBase, &got))
			}
			if c.want == "" {
				return
			}
			if len(got.Rows) != 1 || !got.Rows[0].SignalFrame {
				t.Fatalf("expected one row of a signal frame, got %v", got.Rows)
			}
			// The CFA is the word at rsp+160, the interrupted rsp; rbx is at
			// rsp+128, rip at rsp+168.
			want := c.want + " expr:77a00106 rax=expr:779001 rdx=expr:778801 rcx=expr:779801 rbx=expr:778001" +
				" rsi=expr:77f000 rdi=expr:77e800 rbp=expr:77f800 rsp=expr:77a001 r8=expr:7728 r9=expr:7730 r10=expr:7738" +
				" r11=expr:77c000 r12=expr:77c800 r13=expr:77d000 r14=expr:77d800 r15=expr:77e000 rip=expr:77a801 rflags=expr:77b001"
			if diff := cmp.Diff(strings.Fields(want), strings.Fields(rowText(testBase, &got.Rows[0]))); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}
