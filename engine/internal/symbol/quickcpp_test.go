// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"math/rand/v2"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

// quickNamesOf are names of C++ with what quickCpp reads.
var quickNamesOf = []string{
	"_Z1fv", "_Z1fiPKcRVlOe", "_ZN2ns1AC2ERKS0_", "_ZN2ns1AD0Ev", "_ZNKSt6vectorIiSaIiEE4sizeEv", "_ZNSaIcEC2Ev", "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
	"_ZN12_GLOBAL__N_11fEv", "_ZN1AplERKS_", "_ZN1AltIiEEbT_", "_ZNVK1A1fEvR", "_ZNKR1A1fEv", "_ZNO1A1fEv", "_ZN1A1fB5cxx11Ev", "_ZL1fv", "_ZN1AdlEPv", "_ZN1AixEm", "_ZdlPvm",
	"_Z1fPFivE", "_Z1fPPFivE", "_Z1fRFiPKcE", "_Z1fRKPFivE", "_Z1fSt8functionIFvRKS_IFviEEEE", "_Z1fIFviEEvPT_", "_Z1fIPFivEEvRT_",
	"_Z1fIJiRcOlEEvDpOT_", "_Z1fIJEEvDpRKT_", "_Z1fIiJcEEvT_DpT0_", "_Z1fIRiEvOT_", "_Z1fIOiEvRT_", "_Z1fIJRSt4pairIicEEEvDpS_IT_E", "_Z1gIJEEvS_IJDpT_EE", "_Z1fILi3ELb1ELin4ELmx5EEvv",
	"_Z1fILm5ELb0ELc65ELN2ns4kindE1EEvv", "_ZZ1fvE1x", "_ZZN1A1fEvENKUlRKiE_clES1_", "_ZZ1fIiET_S0_ENUlvE0_clEv", "_ZZ1fvEN1B1gEv", "_ZZ1fvENUt_C2Ev", "_ZZ1fvE1x_0", "_ZZ1fvE1x__12_",
	"_Z1fDnDsDiDu", "_Z1fv.isra.0.cold", "_Z1fv.part.0.constprop.1", "_ZN1AIiE1BIcEC1IlEET_", "_ZNSt8__detail9__variantL1fEv", "_ZN1A1BIS_E1gES1_PS1_", "_Z1fIKcEvPKT_", "_Z1fSsSiSoSd", "_Z1fRiS_IcE",
}

// TestQuickCpp: what quickCpp reads is what the library reads, in names, and in ones with bytes that
// were changed, left out or repeated.
func TestQuickCpp(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // names
	compare := func(name string) bool {
		t.Helper()
		quick, ok := quickCpp(name)
		if !ok {
			return false
		}
		want, err := demangle.ToString(name, demangle.LLVMStyle, demangle.NoRust, demangle.MaxLength(maxDemangled))
		if err != nil || quick != want {
			t.Errorf("%s\nis       %q\nexpected %q, %v", name, quick, want, err)
		}
		return true
	}
	count, changed := 0, 0
	for _, name := range quickNamesOf {
		if compare(name) {
			count++
		} else {
			t.Logf("%s is left to the library", name)
		}
		for range 2_000 {
			if compare(mutated(source, name)) {
				changed++
			}
			if t.Failed() {
				return
			}
		}
	}
	if count < len(quickNamesOf)-10 || changed < 1_000 {
		t.Errorf("%d names of %d, and %d that were changed, are read quickly", count, len(quickNamesOf), changed)
	}
}

// mutated changes some bytes of a name.
func mutated(source *rand.Rand, name string) string {
	const letters = "EISTKPRONJLDFUZCvicbm_0123456789s."
	b := []byte(name)
	for range 1 + source.IntN(3) {
		i := source.IntN(len(b))
		switch c := letters[source.IntN(len(letters))]; source.IntN(4) {
		case 0:
			b[i] = c
		case 1:
			b = append(b[:i], append([]byte{c}, b[i:]...)...)
		case 2:
			b = append(b[:i], b[min(i+1, len(b)-1):]...)
		case 3: // a part again
			end := min(i+1+source.IntN(6), len(b))
			b = append(b[:end], append([]byte(name[min(i, len(name)):min(end, len(name))]), b[end:]...)...)
		}
	}
	return string(b)
}
