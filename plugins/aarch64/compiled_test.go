// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// compiled is a program with what makes frames differ: large ones, arrays of a length that
// is not known, switches, calls that do not return, many registers and floating point.
const compiled = `
extern int g(const char *, ...);
extern double h(double, double);
extern void stop(int) __attribute__((noreturn));
int leaf(int a) { return a * 3 + 1; }
int small(int a) { return g("%d", a) + a; }
int rare(int *p) { if (!p) stop(1); return g("", *p) + *p; }
int large(int a) { char b[70000]; g(b, a); return b[a]; }
int huge(int a) { char b[1 << 20]; g(b, a); g(b); return b[a]; }
int vla(int n) { char b[n]; g(b, n); return g(b) + b[0]; }
int loops(int n, int *p) { int s = 0; for (int i = 0; i < n; i++) { s += g("", p[i], s, i); if (s < 0) stop(s); } return s; }
double floats(int n, double *p) { double a = 0, b = 1, c = 2; for (int i = 0; i < n; i++) { a = h(a, p[i]); b = h(b, a); c = h(c, b); } return a + b + c; }
int choose(int a, int b, int c) {
	switch (a) {
	case 0: return g("0", b); case 1: return g("1", c) + b; case 2: b += g("2"); break; case 3: stop(b);
	case 4: c = b * 7; break; case 5: return c; case 6: g("6"); g("7"); b = g("8", c); break; case 7: b = -c; break;
	case 8: return g("9", b, c) * b; default: stop(a);
	}
	return b + g("x", c);
}
int many(int a, int b, int c, int d, int e) { int x = g("", a), y = g("", b), z = g("", c), u = g("", d), v = g("", e);
	return g("", a, b, c, d, e, x, y, z, u, v, a + x, b + y, c + z) + a + b + c + d + e + x + y + z + u + v; }
int tail(int a) { if (a > 3) return g("", a); g("t"); return small(a); }
`

// compilers are the options by which the program is compiled.
var compilers = [][]string{
	{"aarch64-linux-gnu-gcc", "-O0"},
	{"aarch64-linux-gnu-gcc", "-O1", "-fno-omit-frame-pointer"},
	{"aarch64-linux-gnu-gcc", "-O2"},
	{"aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer", "-fno-plt"},
	{"aarch64-linux-gnu-gcc", "-O3", "-mbranch-protection=standard", "-fstack-clash-protection"},
	{"aarch64-linux-gnu-gcc", "-Os", "-mbranch-protection=pac-ret+leaf+b-key", "-march=armv8.3-a"},
	{"aarch64-linux-gnu-gcc", "-O2", "-fstack-protector-all", "-fstack-clash-protection"},
	{"aarch64-linux-gnu-gcc", "-O3", "-march=armv8.2-a+sve"},
	{"clang-22", "--target=aarch64-linux-gnu", "-O0"},
	{"clang-22", "--target=aarch64-linux-gnu", "-O1"},
	{"clang-22", "--target=aarch64-linux-gnu", "-O2", "-fomit-frame-pointer"},
	{"clang-22", "--target=aarch64-linux-gnu", "-O2", "-mbranch-protection=standard", "-march=armv8.3-a"},
	{"clang-22", "--target=aarch64-linux-gnu", "-Os", "-fstack-clash-protection"},
	{"clang-22", "--target=aarch64-linux-gnu", "-O3", "-march=armv8.2-a+sve"},
}

// TestCompiled: frames of functions as GCC and Clang compile them are those of their call
// frame information, with signed return addresses, probes and vectors too.
func TestCompiled(t *testing.T) {
	for _, compiler := range compilers {
		t.Run(strings.Join(compiler, " "), func(t *testing.T) {
			oracle.Tools(t, compiler[0], "aarch64-linux-gnu-ld")
			dir := t.TempDir()
			source, object, linked := filepath.Join(dir, "c.c"), filepath.Join(dir, "c.o"), filepath.Join(dir, "c.so")
			if err := os.WriteFile(source, []byte(compiled), 0o600); err != nil {
				t.Fatal(err)
			}
			oracle.Run(t, compiler[0], append(compiler[1:], "-fPIC", "-fasynchronous-unwind-tables", "-c", "-o", object, source)...)
			oracle.Run(t, "aarch64-linux-gnu-ld", "-shared", "-o", linked, object)
			f := openFile(t, linked, ".eh_frame")
			c := compareFunctions(t, f, false, false)
			c.report(t, "whole functions")
			ahead := compareAhead(t, f, 1)
			ahead.report(t, "without bounds")
			if c.right+c.partial < c.all*9/10 {
				t.Errorf("%d of %d instructions are right, %d with unknown registers; expected nine of ten", c.right, c.all, c.partial)
			}
		})
	}
}

// TestGo: frames of Go's functions are those of its call frame information in calls. Not
// known are those of calls for a larger stack, before which the return address is moved to x3.
// Of functions in assembly, which change stacks, the information says that the return address
// moves with the stack pointer; they are left out.
func TestGo(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "p.go"), filepath.Join(dir, "p")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOARCH": "arm64", "GOOS": "linux", "CGO_ENABLED": "0", "GOFLAGS": "", "GO111MODULE": "off"} {
		t.Setenv(name, value)
	}
	oracle.Run(t, oracle.Tool(t, "go"), "build", "-o", program, source)
	c := compareFunctions(t, openFile(t, program, ".debug_frame"), true, true)
	c.report(t, "calls")
	if c.right < c.all*7/10 {
		t.Errorf("%d of %d calls are right, expected seven of ten", c.right, c.all)
	}
}

func TestExits(t *testing.T) {
	const base = 0x401000
	for name, c := range map[string]struct {
		code    []byte
		bounded bool
		want    sdk.CodeExits
	}{
		"a return":                 {codeOf(0xd65f03c0), true, sdk.CodeExits{}},
		"calls are not followed":   {codeOf(0x94000400, 0xd63f0040, 0xd65f03c0), true, sdk.CodeExits{}},
		"a tail jump":              {codeOf(0x910043ff, 0x140003ff), true, sdk.CodeExits{Jumps: []uint64{base + 0x1000}}},
		"a branch to another part": {codeOf(0xb4008000, 0xd65f03c0), true, sdk.CodeExits{Jumps: []uint64{base + 0x1000}}},
		"a branch inside":          {codeOf(0xb4000040, 0xd65f03c0, 0xd65f03c0), true, sdk.CodeExits{}},
		"an entry of a linkage table": {codeOf(0xd503245f, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220), true, // adrp x16, +0x11000
			sdk.CodeExits{Slots: []uint64{0x412ff0}}},
		"a linker's thunk":                      {codeOf(0xb0000090, 0x91044210, 0xd61f0200), true, sdk.CodeExits{Jumps: []uint64{0x412110}}},
		"a jump through a literal":              {codeOf(0x58000050, 0xd61f0200, 0, 0), true, sdk.CodeExits{Slots: []uint64{base + 8}}},
		"one that may have two targets":         {codeOf(0xb0000090, 0xb4000040, 0x91044210, 0xd61f0200), true, sdk.CodeExits{Jumps: []uint64{0x412110}, Open: true}},
		"a jump through a register":             {codeOf(0xd61f0040), true, sdk.CodeExits{Open: true}},
		"a register that a call does not keep":  {codeOf(0xb0000090, 0x94000400, 0xd61f0200), true, sdk.CodeExits{Open: true}},
		"a return to another register":          {codeOf(0xd65f0040), true, sdk.CodeExits{Open: true}},
		"a call at the end does not return":     {codeOf(0x94000400), true, sdk.CodeExits{}},
		"a call at the end of what was read":    {codeOf(0x94000400), false, sdk.CodeExits{Jumps: []uint64{base + 4}}},
		"code that runs on":                     {codeOf(0xd503201f), true, sdk.CodeExits{Jumps: []uint64{base + 4}}},
		"no instruction":                        {codeOf(0x02000000), true, sdk.CodeExits{Open: true}},
		"nothing is executed behind a trap":     {codeOf(0xd4200000), true, sdk.CodeExits{}},
		"a signed jump through what was loaded": {codeOf(0xb0000090, 0xf947fa11, 0xd71f0a30), true, sdk.CodeExits{Slots: []uint64{0x412ff0}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, sdk.CodeRange{PC: base, Start: base, Code: c.code, Bounded: c.bounded, Exact: true, Exits: true})
			if diff := cmp.Diff(sdk.FrameRules{Exits: &c.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Entries of linkage tables have the frame of the function that calls them; the first one
// pushes two words.
func TestLinkageTables(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte
		want []string
	}{
		"the first":            {codeOf(0xa9bf7bf0, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220, 0xd503201f), []string{"0-4 x31+0", "4-20 x31+16"}},
		"the first, for BTI":   {codeOf(0xd503245f, 0xa9bf7bf0, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220), []string{"0-8 x31+0", "8-24 x31+16"}},
		"for TLS descriptors":  {codeOf(0xa9bf0fe2, 0xb0000082, 0xb0000083, 0xf947f442, 0x913fa063, 0xd61f0040), []string{"0-4 x31+0", "4-24 x31+16"}},
		"another":              {codeOf(0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220), []string{"0-16 x31+0"}},
		"for BTI":              {codeOf(0xd503245f, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220), []string{"0-20 x31+0"}},
		"for signed addresses": {codeOf(0xb0000090, 0xf947fa11, 0x913fc210, 0xd503219f, 0xd61f0220), []string{"0-20 x31+0"}},
		"other code":           {codeOf(0xb0000090, 0xf947fa11, 0x913fc210, 0xd503201f), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for at := uint64(0); at < uint64(len(c.code)); at += instructionSize {
				rules := ask(t, sdk.CodeRange{PC: testBase + at, Start: testBase, Code: c.code, Name: ".plt", Exact: true})
				var got []string
				for i := range rules.Rows {
					got = append(got, rowText(testBase, &rules.Rows[i]))
				}
				if at == 20 && name == "the first" { // padding
					continue
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("at %d, reason %q (-want +got):\n%s", at, rules.Reason, diff)
				}
			}
		})
	}
}

func TestCodeWithoutBounds(t *testing.T) {
	for name, c := range map[string]struct {
		code    []byte
		at      uint64
		inCall  bool
		want    string
		because string
	}{
		"a leaf":                        {codeOf(0x8b010000, 0xd65f03c0), 0, false, "0-4 x31+0", ""},
		"an epilogue":                   {codeOf(0xf9400bf3, 0xa8c27bfd, 0xd65f03c0), 0, false, "0-4 x31+32 19=c-16 29=c-32 30=c-24", ""},
		"half an epilogue":              {codeOf(0xa9407bfd, 0x910083ff, 0xd65f03c0), 4, false, "4-8 x31+32", ""},
		"by the frame pointer":          {codeOf(0x910003bf, 0xa8c27bfd, 0xd65f03c0), 0, false, "0-4 x29+32 29=c-32 30=c-24", ""},
		"a prologue":                    {codeOf(0xa9be7bfd, 0x94000100, 0xa8c27bfd, 0xd65f03c0), 0, false, "0-4 x31+0", ""},
		"in a call":                     {codeOf(0x94000100, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0), 3, true, "3-4 x31+32 19=c-16 29=c-32 30=c-24", ""},
		"signed":                        {codeOf(0xa8c27bfd, 0xd50323bf, 0xd65f03c0), 0, false, "0-4 x31+32 29=c-32 30=c-24 signed", ""},
		"signed, to be authenticated":   {codeOf(0xd50323bf, 0xd65f03c0), 0, false, "0-4 x31+0 signed", ""},
		"an authenticating return":      {codeOf(0xa8c27bfd, 0xd65f0bff), 0, false, "0-4 x31+32 29=c-32 30=c-24 signed", ""},
		"to be signed":                  {codeOf(0xd503233f, 0xa9be7bfd, 0x94000100, 0xa8c27bfd, 0xd65f0bff), 0, false, "0-4 x31+0", ""},
		"another function behind":       {codeOf(0x94000100, 0xa9be7bfd, 0x94000100, 0xa8c27bfd, 0xd65f03c0), 3, true, "", "not known"},
		"a leaf behind":                 {codeOf(0x94000100, 0x8b010000, 0xd65f03c0), 3, true, "", "not known"},
		"two frames":                    {codeOf(0xb4000060, 0x910043ff, 0xd65f03c0, 0xd65f03c0), 0, false, "", "different frames"},
		"two ways":                      {codeOf(0xb4000060, 0xa8c27bfd, 0xd65f03c0, 0xa8c27bfd, 0xd65f03c0), 0, false, "0-4 x31+32 29=c-32 30=c-24", ""},
		"no return":                     {codeOf(0x14000000), 0, false, "", "no return"},
		"no instruction":                {codeOf(0x02000000), 0, false, "", "no return"},
		"not in a call":                 {codeOf(0xd503201f, 0xd65f03c0), 3, true, "", "not inside a call"},
		"between instructions":          {codeOf(0xd503201f, 0xd65f03c0), 2, false, "", "multiples of 4"},
		"nothing behind the call":       {codeOf(0x94000100), 3, true, "", "no code ahead"},
		"a stack pointer off alignment": {codeOf(0x910023ff, 0xd65f03c0), 0, false, "", "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := ask(t, sdk.CodeRange{PC: testBase + c.at, Start: testBase, Code: c.code, Exact: !c.inCall})
			got := ""
			for i := range rules.Rows {
				got += rowText(testBase, &rules.Rows[i])
			}
			if got != c.want || !strings.Contains(rules.Reason, c.because) {
				t.Errorf("row %q, reason %q, expected %q, %q", got, rules.Reason, c.want, c.because)
			}
		})
	}
}

// A request whose context has ended is not answered.
func TestFrameRulesOfAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: testBase, Start: testBase, Code: codeOf(0xd65f03c0)}}}
	if _, err := New().FrameRules(ctx, nil, req); err == nil {
		t.Error("no error")
	}
}
