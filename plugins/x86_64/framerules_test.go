// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// assemble returns the bytes between NAME: and NAME_end: of each named piece of
// assembly language, and the offsets of its local labels pc and resume.
func assemble(t *testing.T, sources map[string]string) map[string][]byte {
	t.Helper()
	oracle.Tools(t, "as")
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, ".balign 64\n%s:\n%s\n%s_end:\n", name, sources[name], name)
	}
	dir := t.TempDir()
	source, object := filepath.Join(dir, "t.s"), filepath.Join(dir, "t.o")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("as", "--64", "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("as: %v\n%s", err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := file.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[string]uint64)
	for _, s := range symbols {
		at[s.Name] = s.Value
	}
	code := make(map[string][]byte)
	for _, name := range names {
		code[name] = text[at[name]:at[name+"_end"]]
	}
	return code
}

// rowText writes a row as offsets from base, CFA, and rules.
func rowText(base uint64, r *cfi.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-%d ", r.Start-base, r.End-base)
	name := func(column uint64) string {
		info, _ := bindDescription().Register(uint32(column))
		return info.Name
	}
	if r.CFA.Kind == cfi.CFARegister {
		fmt.Fprintf(&b, "%s%+d", name(r.CFA.Register), r.CFA.Offset)
	} else {
		fmt.Fprintf(&b, "expr:%x", r.CFA.Expr)
	}
	for _, x := range r.Rules {
		switch x.Rule.Kind {
		case cfi.Offset:
			fmt.Fprintf(&b, " %s=c%+d", name(x.Column), x.Rule.Offset)
		case cfi.Register:
			fmt.Fprintf(&b, " %s=%s", name(x.Column), name(x.Rule.Register))
		case cfi.Undefined:
			fmt.Fprintf(&b, " %s=u", name(x.Column))
		case cfi.Expression:
			fmt.Fprintf(&b, " %s=expr:%x", name(x.Column), x.Rule.Expr)
		case cfi.ValExpression:
			fmt.Fprintf(&b, " %s=val:%x", name(x.Column), x.Rule.Expr)
		default:
			fmt.Fprintf(&b, " %s=kind%d", name(x.Column), x.Rule.Kind)
		}
	}
	return b.String()
}

func rowTexts(base uint64, rules *sdk.FrameRules) []string {
	var out []string
	for i := range rules.Rows {
		out = append(out, rowText(base, &rules.Rows[i]))
	}
	return out
}

// ask makes a request of one function, and checks the answer as the engine
// does.
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

func TestFrameRulesOfFunctions(t *testing.T) {
	cases := map[string]struct {
		code string
		want []string
	}{
		"leaf": {"lea (%rdi,%rsi),%rax; ret", []string{"0-5 rsp+8 rip=c-8"}},
		"pushes": {
			"endbr64; push %rbx; push %r12; sub $24,%rsp; mov %rdi,%rbx; mov %rsi,%r12; call .+64; add $24,%rsp; pop %r12; pop %rbx; ret",
			[]string{
				"0-5 rsp+8 rip=c-8",
				"5-7 rsp+16 rip=c-8",
				"7-11 rsp+24 rip=c-8",
				"11-14 rsp+48 rip=c-8",
				"14-17 rsp+48 rbx=c-16 rip=c-8",
				"17-26 rsp+48 rbx=c-16 r12=c-24 rip=c-8",
				"26-28 rsp+24 rbx=c-16 r12=c-24 rip=c-8",
				"28-29 rsp+16 rbx=c-16 rip=c-8",
				"29-30 rsp+8 rip=c-8"}},
		"frame_pointer": {
			"push %rbp; mov %rsp,%rbp; push %rbx; sub $8,%rsp; xor %ebx,%ebx; mov -8(%rbp),%rbx; leave; ret",
			[]string{
				"0-1 rsp+8 rip=c-8",
				"1-4 rsp+16 rip=c-8",
				"4-11 rbp+16 rbp=c-16 rip=c-8",
				"11-15 rbp+16 rbx=c-24 rbp=c-16 rip=c-8",
				"15-16 rbp+16 rbp=c-16 rip=c-8",
				"16-17 rsp+8 rip=c-8"}},
		"enter": {
			"enter $32,$0; nop; leave; ret",
			[]string{"0-4 rsp+8 rip=c-8", "4-6 rbp+16 rbp=c-16 rip=c-8", "6-7 rsp+8 rip=c-8"}},
		"aligned_stack": { // the frame pointer is all that is left
			"push %rbp; mov %rsp,%rbp; and $-64,%rsp; sub $128,%rsp; call .+99; leave; ret",
			[]string{
				"0-1 rsp+8 rip=c-8",
				"1-4 rsp+16 rip=c-8",
				"4-21 rbp+16 rbp=c-16 rip=c-8",
				"21-22 rsp+8 rip=c-8"}},
		"realigned_by_a_copy": { // the CFA is in memory: r10 does not survive the call
			"lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10; sub $40,%rsp; call .+99; mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret",
			[]string{
				"0-9 rsp+8 rip=c-8",
				"9-17 r10+0 rip=c-8",
				"17-23 r10+0 rbp=expr:7600 rip=c-8",
				"23-32 expr:767806 rbp=expr:7600 rip=c-8",
				"32-33 r10+0 rbp=expr:7600 rip=c-8",
				"33-37 r10+0 rip=c-8",
				"37-38 rsp+8 rip=c-8",
			}},
		"branches": { // an early exit before the prologue, a loop, a tail jump
			"test %edi,%edi; je 3f; push %rbx; 1: mov %edi,%ebx; dec %edi; jne 1b; test %ebx,%ebx; js 2f; pop %rbx; ret; 2: pop %rbx; jmp .+99; 3: ret",
			[]string{
				"0-5 rsp+8 rip=c-8",
				"5-16 rsp+16 rbx=c-16 rip=c-8",
				"16-17 rsp+8 rip=c-8",
				"17-18 rsp+16 rbx=c-16 rip=c-8",
				"18-21 rsp+8 rip=c-8",
			}},
		"scratch_in_a_preserved_register": { // not saved: it cannot be recovered
			"mov $1,%ebx; call .+99; ret",
			[]string{"0-5 rsp+8 rip=c-8", "5-11 rsp+8 rbx=u rip=c-8"}},
		"saved_in_another_register": {
			"mov %rbx,%r11; xor %ebx,%ebx; mov %r11,%rbx; ret",
			[]string{"0-5 rsp+8 rip=c-8", "5-8 rsp+8 rbx=r11 rip=c-8", "8-9 rsp+8 rip=c-8"}},
		"return_address_in_a_register": { // as vfork does
			"pop %rdi; mov $58,%eax; syscall; push %rdi; ret",
			[]string{
				"0-1 rsp+8 rip=c-8",
				"1-9 rsp+0 rip=rdi",
				"9-10 rsp+8 rip=c-8",
			}},
		"pc_read_by_a_call": {
			"call 1f; 1: pop %rax; ret",
			[]string{"0-5 rsp+8 rip=c-8", "5-6 rsp+16 rip=c-8", "6-7 rsp+8 rip=c-8"}},
		"vector_code": { // VEX and EVEX do not stop the reading
			"sub $8,%rsp; vaddps %ymm1,%ymm2,%ymm3; vpaddd %zmm17,%zmm18,%zmm19{%k1}; vzeroupper; add $8,%rsp; ret",
			[]string{"0-4 rsp+8 rip=c-8", "4-21 rsp+16 rip=c-8", "21-22 rsp+8 rip=c-8"}},
		"no_return_before_another_frame": { // the call does not return
			"cmp $1,%edi; je 1f; sub $24,%rsp; call .+99; 1: mov %edi,%eax; ret",
			[]string{
				"0-9 rsp+8 rip=c-8",
				"9-14 rsp+32 rip=c-8",
				"14-17 rsp+8 rip=c-8",
			}},
		"switch": {
			"push %rbx; cmp $3,%edi; ja 9f; lea .+200(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; notrack jmp *%rax; mov $1,%eax; 9: pop %rbx; ret",
			[]string{
				"0-1 rsp+8 rip=c-8",
				"1-29 rsp+16 rip=c-8",
				"29-30 rsp+8 rip=c-8",
			}},
		"x87_load": { // reads what is at the stack pointer, and writes nothing
			"fldt (%rsp); fldl (%rsp); ret",
			[]string{"0-7 rsp+8 rip=c-8"}},
		"x87_store": { // over the return address
			"fstpl (%rsp); ret",
			[]string{"0-3 rsp+8 rip=c-8"}},
		"arguments_before_no_evidence": { // whether the first call returns is open, in a function with tables
			"push %rbx; cmp $3,%edi; ja 9f; lea .+200(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp *%rax; " +
				"9: push $1; push $2; call .+99; nop; call .+99; ud2",
			[]string{"0-1 rsp+8 rip=c-8", "1-24 rsp+16 rip=c-8", "24-26 rsp+24 rip=c-8", "26-31 rsp+32 rip=c-8"}},
		"arguments_dropped_later": { // after the second call: so the first one returned
			"push %rbx; cmp $3,%edi; ja 9f; lea .+200(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp *%rax; " +
				"9: push $1; push $2; call .+99; nop; call .+99; add $16,%rsp; ud2",
			[]string{"0-1 rsp+8 rip=c-8", "1-24 rsp+16 rip=c-8", "24-26 rsp+24 rip=c-8", "26-41 rsp+32 rip=c-8", "41-43 rsp+16 rip=c-8"}},
		"string_operation": { // clears an array below the saved register
			"push %rbx; sub $16,%rsp; xor %ebx,%ebx; mov %rsp,%rdi; rep stosb; add $16,%rsp; pop %rbx; ret",
			[]string{"0-1 rsp+8 rip=c-8", "1-5 rsp+16 rip=c-8", "5-7 rsp+32 rip=c-8", "7-16 rsp+32 rbx=c-16 rip=c-8",
				"16-17 rsp+16 rbx=c-16 rip=c-8", "17-18 rsp+8 rip=c-8"}},
		"thread_local_call": { // the prefixes that ld relaxes
			"sub $8,%rsp; .byte 0x66; lea 16(%rip),%rdi; .value 0x6666; rex64 call .+99; add $8,%rsp; ret",
			[]string{
				"0-4 rsp+8 rip=c-8",
				"4-24 rsp+16 rip=c-8",
				"24-25 rsp+8 rip=c-8",
			}},
	}
	sources := make(map[string]string)
	for name, c := range cases {
		sources[name] = c.code
	}
	code := assemble(t, sources)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, sdk.CodeRange{PC: testBase, Start: testBase, Code: code[name], Bounded: true, Exact: true})
			if diff := cmp.Diff(c.want, rowTexts(testBase, &got)); diff != "" {
				t.Errorf("rows of %s, reason %q (-want +got):\n%s\n%s", hex.EncodeToString(code[name]), got.Reason, diff, strings.Join(rowTexts(testBase, &got), "\n"))
			}
		})
	}
}
