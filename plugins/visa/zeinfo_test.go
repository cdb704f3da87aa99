// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readTestZeInfo(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/two.ze_info")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestZeInfoOfACompiler(t *testing.T) {
	z, err := readZeInfo(readTestZeInfo(t))
	if err != nil {
		t.Fatal(err)
	}
	want := zeInfo{
		kernels: []zeKernel{
			{name: "alpha", lanes: 8, registers: 128, scratch: 131072, hasStackCalls: true},
			{name: "beta", lanes: 8, registers: 128, slm: 1024, scratch: 131072, hasStackCalls: true},
			{name: "Intel_Symbol_Table_Void_Program", lanes: 8, registers: 128},
		},
		functions: []zeKernel{{name: "rec", lanes: 8, registers: 128}},
	}
	if d := cmp.Diff(want, *z, cmp.AllowUnexported(zeInfo{}, zeKernel{})); d != "" {
		t.Error(d)
	}
	if k := z.kernelOf(".text.beta"); k == nil || k.name != "beta" {
		t.Errorf("%+v", k)
	}
	for _, name := range []string{".text.rec", "beta", ".text.", ".data.beta", ""} {
		if k := z.kernelOf(name); k != nil {
			t.Errorf("%q: %+v", name, k)
		}
	}
}

func TestZeInfoThatIsNone(t *testing.T) {
	kernel := func(text string) string { return "version: '1.0'\nkernels:\n  - name: k\n" + text }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "no YAML document"},
		{"no YAML", "a: [", "line 1"},
		{"a word", "word", "line 1: a word, expected a mapping"},
		{"no version", "kernels:\n", `version "", expected 1`},
		{"another version", "version: '2.0'\n", `version "2.0", expected 1`},
		{"a version that only begins so", "version: '10.0'\n", `version "10.0"`},
		{"a list of versions", "version: [1]\n", "line 1: a list, expected a word"},
		{"kernels that are no list", "version: 1\nkernels:\n  a: b\n", "line 3: a mapping, expected a list"},
		{"a kernel that is a word", "version: 1\nkernels: [k]\n", "line 2: a word, expected a mapping"},
		{"a kernel without a name", "version: 1\nkernels:\n  - {}\n", "line 3: a kernel without a name"},
		{"kernels once more", "version: 1\nkernels:\nkernels:\n", "line 3: kernels once more"},
		{"a number that is none", kernel("    execution_env:\n      simd_size: many\n"), `line 5: "many", expected a number`},
		{"a negative number", kernel("    execution_env:\n      grf_count: -1\n"), `line 5: "-1"`},
		{"a large number", kernel("    execution_env:\n      simd_size: 4294967296\n"), "at most 32 bits"},
		{"a large size", kernel("    execution_env:\n      slm_size: 18446744073709551616\n"), "at most 64 bits"},
		{"neither true nor false", kernel("    execution_env:\n      has_stack_calls: 1\n"), "expected true or false"},
		{"an environment that is a list", kernel("    execution_env: []\n"), "line 4: a list, expected a mapping"},
		{"an alias", "version: &v 1\nkernels:\n  - name: *v\n", "line 3: an alias, expected a word"},
		{"an alias in place of a list", "version: 1\na: &a [x]\nkernels: *a\n", "line 3: an alias, expected a list"},
		{"a buffer that is a word", kernel("    per_thread_memory_buffers: [scratch]\n"), "line 4: a word, expected a mapping"},
		{"a large buffer", kernel("    per_thread_memory_buffers:\n      - {type: scratch, size: 4294967296}\n"), "line 5"},
		{"too much", strings.Repeat(" ", maxZeInfo+1), "expected at most 4194304"},
		{"too many kernels", "version: 1\nkernels:\n" + strings.Repeat("- {name: k}\n", maxZeKernels+1), "more than 65536 kernels"},
		{"deep", "version: 1\nkernels: " + strings.Repeat("[", 20000), ".ze_info: yaml"},
	} {
		if z, err := readZeInfo([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), ".ze_info: ") {
			t.Errorf("%s: %v %v, expected %q", c.name, z, err, c.want)
		}
	}
}

func TestZeInfoOfWhichNothingIsKnown(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       zeInfo
	}{
		{"a version alone", "version: '1.40'\n", zeInfo{}},
		{"lists of nothing", "version: 1.2\nkernels:\nfunctions: []\n", zeInfo{}},
		{"other members", "version: 1\nother: {a: [b]}\nkernels:\n- name: k\n  other: 1\n  execution_env: {other: []}\n", zeInfo{kernels: []zeKernel{{name: "k"}}}},
		{"members that are no words", "version: 1\n? [kernels]\n: 1\n", zeInfo{}},
		{"buffers elsewhere and in slots", "version: 1\nkernels:\n- name: k\n  per_thread_memory_buffers:\n  - {type: global, size: 7}\n  - {type: scratch, size: 0x40, slot: 0}\n  - {size: 64, type: scratch, slot: 1}\n",
			zeInfo{kernels: []zeKernel{{name: "k", scratch: 128}}}},
		{"aliases that nobody reads", "version: 1\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", zeInfo{}},
	} {
		z, err := readZeInfo([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if d := cmp.Diff(c.want, *z, cmp.AllowUnexported(zeInfo{}, zeKernel{})); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func FuzzZeInfo(f *testing.F) {
	f.Add(readTestZeInfo(f))
	f.Add([]byte("version: 1\nkernels:\n- {name: &k k, execution_env: {simd_size: 0x8}}\n- <<: *k\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := readZeInfo(data)
		if err != nil {
			return
		}
		for _, k := range append(z.kernels, z.functions...) {
			if k.name == "" || k.scratch > uint64(len(data))<<32 {
				t.Errorf("%+v", k)
			}
		}
	})
}
