// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/sdk"
)

// The code after a system call that makes a thread is executed by two.
func TestFrameRulesOfWhatMakesThreads(t *testing.T) {
	code := assemble(t, map[string]string{
		"clone":  "push %rbx; mov $56,%eax; syscall; test %rax,%rax; je 1f; pop %rbx; ret; 1: mov %rsi,%rsp; call *%r12; hlt",
		"clone3": "mov $435,%eax; syscall; test %rax,%rax; jl 2f; je 1f; ret; 1: xor %ebp,%ebp; call *%rdx; hlt; 2: neg %eax; ret",
		"fork":   "mov $57,%eax; syscall; ret",
	})
	// The return address is at the stack pointer, or 8 above; zero where rsp-rsi, or rax, is.
	const (
		parent  = " rip=val:770074001c280400302f0300770806"
		parent3 = " rip=val:7000280400302f0300770006"
	)
	for name, c := range map[string]struct {
		at    uint64
		want  []string
		ahead string // the first row without bounds
	}{
		"clone": {8, []string{
			"0-1 rsp+8 rip=c-8", "1-8 rsp+16 rip=c-8",
			"8-11 rsp+16" + parent, "11-13 rsp+16" + parent, "13-14 rsp+16" + parent, "14-15 rsp+8 rip=c-8", "15-18 rsp+16" + parent,
		}, "8-11 rsp+16 rbx=c-16" + parent},
		"clone3": {7, []string{
			"0-7 rsp+8 rip=c-8",
			"7-10 rsp+8" + parent3, "10-12 rsp+8" + parent3, "12-14 rsp+8" + parent3, "14-15 rsp+8" + parent3, "15-17 rsp+8" + parent3,
			"17-20 rsp+8 rbp=u rip=c-8", "20-22 rsp+8" + parent3, "22-23 rsp+8 rip=c-8",
		}, "7-10 rsp+8" + parent3},
		"fork": {7, []string{"0-8 rsp+8 rip=c-8"}, "7-8 rsp+8 rip=c-8"},
	} {
		r := sdk.CodeRange{PC: testBase + c.at, Start: testBase, Code: code[name], Bounded: true, Exact: true, Name: name}
		got := ask(t, r)
		if diff := cmp.Diff(c.want, rowTexts(testBase, &got)); diff != "" {
			t.Errorf("%s: rows (-want +got):\n%s", name, diff)
		}
		r.Bounded, r.Name = false, ""
		got = ask(t, r)
		if diff := cmp.Diff(c.ahead, rowTexts(testBase, &got)[0]); diff != "" {
			t.Errorf("%s: the row without bounds (-want +got):\n%s", name, diff)
		}
	}
}
