// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// readings are all three.
var readings = []struct {
	name string
	of   func(string) (string, bool)
}{{"LLVM", LLVM}, {"ABI", ABI}, {"GNU", GNU}}

// reference is a reference back to the substitution with a number.
func reference(n int) string {
	if n == 0 {
		return "S_"
	}
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	text := ""
	for n--; ; n /= 36 {
		text = string(digits[n%36]) + text
		if n < 36 {
			return "S" + text + "_"
		}
	}
}

// hostileNames grow, nest or refer to themselves. They are as long as names that
// are demangled may be, or as binutils read them.
func hostileNames(length int) map[string]string {
	repeat := func(s string, left int) string { return strings.Repeat(s, max(0, length-left)/len(s)) }
	doubling, packs, rebound, references := "_Z1fI1AIiiE", "_Z1fIJ", "_Z1fIiE", "_Z1fI"
	for i := 0; len(doubling) < length-20; i++ {
		s := reference(2*i + 2)
		doubling += "1AI" + s + s + "E"
	}
	for len(packs) < length-20 {
		packs += "ii"
	}
	for i := 0; len(rebound) < length-40; i++ {
		s := reference(i + 1)
		rebound += "P" + s
	}
	for len(references) < length-20 {
		references += "1aIiES1_"
	}
	return map[string]string{
		"doubling":        doubling + "Evv",
		"pointers":        "_Z1f" + repeat("P", 8) + "i",
		"scopes":          "_ZN" + repeat("1a", 8) + "Ev",
		"nested":          "_Z1f" + strings.Repeat("1aI", length/4-8) + "i" + strings.Repeat("E", length/4-8),
		"functions":       "_Z1f" + repeat("F", 8),
		"function":        "_Z1f" + strings.Repeat("PFv", length/4-8) + "i" + strings.Repeat("E", length/4-8),
		"arrays":          "_Z1f" + repeat("A1_", 8) + "i",
		"qualified":       "_Z1f" + repeat("PK", 8) + "i",
		"expressions":     "_Z1fIX" + repeat("ng", 20) + "Li1EEEvv",
		"binary":          "_Z1fIX" + repeat("pl", length/2) + repeat("Li1E", length/2) + "EEvv",
		"locals":          repeat("_Z", length/2) + repeat("Z1fvE", length/2) + "1g",
		"local":           "_Z" + strings.Repeat("Z", length/6) + "1fv" + strings.Repeat("E1g", length/6),
		"lambdas":         "_Z" + strings.Repeat("Z1fvEUl", length/9) + "v" + strings.Repeat("E_", length/9),
		"packs":           packs + "EEvDpT_",
		"packs of packs":  packs + "EEvDpDpDpDpDpDpT_",
		"nested packs":    "_Z1fIJ" + strings.Repeat("J", length/3) + strings.Repeat("E", length/3) + "EEvDpT_",
		"pack references": "_Z1fIJiiiiiiiiEEvDp1AIDp1BIT_DpT_EE" + repeat("Dp1CIT_DpT_E", 60),
		"rebound":         rebound + "1b",
		"references":      references + "Evv",
		"conversion":      "_ZN1Acv" + repeat("T_", 60) + "IiEEv",
		"conversions":     "_ZN1A" + repeat("cvT_I", 60) + "iEv",
		"self":            "_ZN1AcvT_IXcvT_T_EEEv",
		"old scopes":      "_Z1fIX" + repeat("sr1A1x", 60) + "EEvv",
		"operators":       "_Z1fIX" + repeat("cv1AIXL", 60) + "EEvv",
		"tags":            "_Z1f" + repeat("B1a", 20) + "v",
		"declarations":    "_Z1fI" + repeat("TtTyE", 60) + "Evv",
		"longest number":  "_Z" + repeat("9", 8) + "f",
		"digits":          "_Z1fILi" + repeat("9", 40) + "EEvv",
		"suffixes":        "_Z1fv" + repeat(".a", 8),
	}
}

func TestHostileNamesAreBounded(t *testing.T) {
	for _, length := range []int{1 << 10, 1 << 13} {
		for what, name := range hostileNames(length) {
			for _, r := range readings {
				start := time.Now()
				text, ok := r.of(name)
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("%s, %s of %d bytes: %v", r.name, what, len(name), took)
				}
				if len(text) > 2*maxText || ok != (text != "") && ok {
					t.Errorf("%s, %s: %d bytes, %v", r.name, what, len(text), ok)
				}
			}
		}
	}
}

// Names that are cut at any place, or have another byte anywhere, are read or not.
func TestDamagedNamesDoNotPanic(t *testing.T) {
	for _, c := range cases {
		for i := 2; i < len(c.name); i++ {
			for _, r := range readings {
				r.of(c.name[:i])
				for _, with := range []string{"E", "I", "T_", "S_", "J", "9", "\x00"} {
					r.of(c.name[:i] + with + c.name[i+1:])
				}
			}
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, c := range cases {
		f.Add(c.name)
	}
	for _, name := range hostileNames(200) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 1<<13 {
			return
		}
		for _, r := range readings {
			start := time.Now()
			if text, ok := r.of(name); len(text) > 2*maxText || ok && text == "" {
				t.Errorf("%s: %d bytes, %v", r.name, len(text), ok)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("%s: %v", r.name, took)
			}
		}
	})
}

func BenchmarkNames(b *testing.B) {
	for _, r := range readings {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, name := range benchmarked {
					r.of(name)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(benchmarked)), "ns/name")
		})
	}
}

var benchmarked = []string{
	"_ZNSt6vectorIiSaIiEE9push_backEOi",
	"_ZN4llvm11PassBuilder15addVectorPassesENS_17OptimizationLevelERNS_11PassManagerINS_8FunctionENS_15AnalysisManagerIS3_JEEEJEEENS_18ThinOrFullLTOPhaseE",
	"_ZSt10__invoke_rIbRNSt8__detail11_AnyMatcherINSt7__cxx1112regex_traitsIcEELb0ELb1ELb0EEEJcEENSt9enable_ifIX16is_invocable_r_vIT_T0_DpT1_EES8_E4typeEOS9_DpOSA_",
	fmt.Sprintf("_ZN1A%dbE", 1),
}
