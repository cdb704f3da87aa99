// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDemangleGivesTheNamesOfLLVMsTools(t *testing.T) {
	tests := []struct{ name, want string }{
		{"_Z1fi", "f(int)"},
		{"_Z1fi@@VERS_1.2", "f(int)"},
		{"_ZSt4sortISt6vectorIS0_IiEEEvT_S3_", "void std::sort<std::vector<std::vector<int>>>(std::vector<std::vector<int>>, std::vector<std::vector<int>>)"},
		{"_Z3foov.cold", "foo() (.cold)"},
		{"_Z3fooi.part.0.cold", "foo(int) (.part.0.cold)"},
		{"_Z3fooi.constprop.0.isra.0", "foo(int) (.constprop.0.isra.0)"},
		{"_Z3fooPFvvE.cold", "foo(void (*)()) (.cold)"},
		{"_ZZ4mainE5count.1", "main::count (.1)"},
		{"_ZZN1a1fEvE1x.0.llvm.5", "a::f()::x (.0.llvm.5)"},
		{"_Z5fa.bcv.L5", "fa.bc() (.L5)"},
		{"_ZTV3foo", "vtable for foo"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h0123456789abcdefE", "std::sys::backtrace::__rust_begin_short_backtrace"},
		{"_ZN5alloc5slice29_$LT$impl$u20$$u5b$T$u5d$$GT$7sort_by28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.123", "alloc::slice::<impl [T]>::sort_by::{{closure}} (.llvm.123)"},
		{"_ZN47_$LT$a..b$u20$as$u20$c..D$GT$2_e17h0123456789abcdefE", "_ZN47_$LT$a..b$u20$as$u20$c..D$GT$2_e17h0123456789abcdefE"}, // a length that is none
		{"_ZN29_$LT$a..b$u20$as$u20$c..D$GT$2_e17h0123456789abcdefE", "<a::b as c::D>::_e"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_RNvCs1234_7mycrate3foo.llvm.123", "mycrate::foo (.llvm.123)"},
		// Copies of device functions in kernels of CUDA.
		{"$_Z6kernelv$_Z1fi", "f(int)"},
		{"$__internal_0_$__cuda_sm20_div_u64", "$__internal_0_$__cuda_sm20_div_u64"},
		// Of Windows.
		{"?f@A@ns@@QEBAHPEAV?$B@H@2@@Z", "ns::A::f(class ns::B<int> *) const"},
		{"?x@A@@2HA", "int A::x"},
		{"?x@@3HA", "int x"},
		{"?f@@YAXXZ.llvm.123", "f(void)"},
		{"?x", "?x"},
		{"?f@@YAX", "?f@@YAX"},
		// Not mangled.
		{"memcpy@GLIBC_2.2.5", "memcpy"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"main.main", "main.main"},
		{"runtime.(*mheap).alloc", "runtime.(*mheap).alloc"},
		{"type:.eq.struct { F uintptr; c chan int }", "type:.eq.struct { F uintptr; c chan int }"},
		{"foo.cold", "foo.cold"},
		{"", ""},
		// Looks mangled, and is not.
		{"_Z", "_Z"},
		{"_Restore", "_Restore"},
		{"_ZN3foo", "_ZN3foo"},
		{"_Z999999999999999999999f", "_Z999999999999999999999f"},
	}
	for _, test := range tests {
		for range 2 { // the second time from the cache
			if got := Demangle(test.name); got != test.want {
				t.Errorf("Demangle(%q) = %q, want %q", test.name, got, test.want)
			}
		}
	}
}

func TestStripVersionCutsVersionsOnly(t *testing.T) {
	tests := []struct{ name, want string }{
		{"f@V", "f"},
		{"f@@GLIBC_2.2.5", "f"},
		{"f@", "f@"},
		{"f@@", "f@@"},
		{"@f", "@f"},
		{"f@@@V", "f@@@V"},
		{"pkg.f(a@b c)", "pkg.f(a@b c)"},
		{"?x@@3HA", "?x@@3HA"},
	}
	for _, test := range tests {
		if got := StripVersion(test.name); got != test.want {
			t.Errorf("StripVersion(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

// hostileNames grow, nest or refer to themselves.
func hostileNames() map[string]string {
	doubling := "_Z1f"
	doubling += "St4pairIiiE"
	for i := range 36 {
		s := "S_"
		if i > 0 {
			s = "S" + strings.ToUpper(fmt.Sprintf("%c", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i-1])) + "_"
		}
		doubling += "St4pairI" + s + s + "E"
	}
	return map[string]string{
		"doubling":          doubling,
		"pointers":          "_Z1f" + strings.Repeat("P", maxMangled-8) + "i",
		"nested names":      "_ZN" + strings.Repeat("1a", maxMangled/2-8) + "Ev",
		"nested templates":  "_Z1f" + strings.Repeat("1aI", 2000) + "i" + strings.Repeat("E", 2000),
		"functions":         "_Z1f" + strings.Repeat("F", 8000),
		"expressions":       "_Z1fIX" + strings.Repeat("ng", 4000) + "Li1EEvv",
		"longer than bound": "_Z1f" + strings.Repeat("i", maxMangled),
		"rust nesting":      "_RNv" + strings.Repeat("Nv", 4000) + "C1a1b",
		"rust back":         "_RIC1a" + strings.Repeat("TB3_B3_E", 500) + "E",
		"rust doubling":     "_RINvC1a1f" + rustDoubling(40) + "E",
		"packs":             "_Z1fIJ" + strings.Repeat("J", 3000) + strings.Repeat("E", 3000) + "EvDpT_",
	}
}

// rustDoubling nests tuples that each name the one before twice.
func rustDoubling(n int) string {
	s := "Tii"
	for range n {
		s += "E" + "TB8_B8_"
	}
	return s + "E"
}

func TestHostileNamesTakeBoundedTime(t *testing.T) {
	for name, mangled := range hostileNames() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			got := Demangle(mangled)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(got) > 1<<maxDemangled && got != mangled {
				t.Errorf("result has %d bytes", len(got))
			}
		})
	}
}

func TestNamesBeyondTheLimitComeBackAsTheyAre(t *testing.T) {
	within, beyond := "_Z1f"+strings.Repeat("i", 100), "_Z1f"+strings.Repeat("i", maxMangled)
	if got := Demangle(within); !strings.HasPrefix(got, "f(int, int") {
		t.Errorf("%.20s", got)
	}
	if got := Demangle(beyond); got != beyond {
		t.Errorf("%.20s, want the name itself", got)
	}
}

func TestCacheKeepsItsBound(t *testing.T) {
	c := newNameCache()
	long := strings.Repeat("x", 1000)
	for i := range 60000 {
		key := fmt.Sprint(i)
		if got := c.get(key, func(s string) string { return s + long }); got != key+long {
			t.Fatalf("get(%q) gives another key's value", key)
		}
	}
	total := 0
	for i := range c.shards {
		s := &c.shards[i]
		for _, m := range []map[string]string{s.young, s.old} {
			for k, v := range m {
				total += len(k) + len(v)
			}
		}
	}
	if bound := cacheShards * 2 * generationBytes; total > bound || total < bound/4 {
		t.Errorf("the cache holds %d bytes, want a good part of %d", total, bound)
	}
}

func TestCacheKeepsWhatIsInUse(t *testing.T) {
	c := newNameCache()
	long := strings.Repeat("x", 1000)
	computed := 0
	for i := range 40000 {
		c.get(fmt.Sprint(i), func(s string) string { return s + long })
		c.get("hot", func(s string) string { computed++; return s })
	}
	if computed != 1 {
		t.Errorf("a name in use was computed %d times, want once", computed)
	}
}

func TestDemangleIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				n := (g*7 + i) % 100
				if got, want := Demangle(fmt.Sprintf("_Z4f%03di", n)), fmt.Sprintf("f%03d(int)", n); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"?f@A@ns@@QEBAHPEAV?$B@H@2@@Z", "_Z1fi", "_ZNSt6vectorIiSaIiEE9push_backEOi.isra.0@@V", "_RNvCs1234_7mycrate3foo", "___Z1fv_block_invoke", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"} {
		f.Add(s)
	}
	for _, s := range hostileNames() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := stackNames.demangleOnce(StripVersion(name))
		if len(got) >= 1<<maxDemangled && len(got) > len(name) {
			t.Errorf("result has %d bytes", len(got))
		}
	})
}

func BenchmarkDemangleCached(b *testing.B) {
	for b.Loop() {
		Demangle("_ZNSt6vectorIiSaIiEE9push_backEOi")
	}
}
