// SPDX-License-Identifier: Apache-2.0

package symbol

import "testing"

func TestNamesOfAdaAreThoseOfGDB(t *testing.T) {
	for name, want := range map[string]string{
		"pkg__outer__inner.5": "pkg.outer.inner", "pkg__Oadd": `pkg."+"`, "pkg__over__2": "pkg.over", "_ada_main_prog": "main_prog", "pkg__outer__g__run.2": "pkg.outer.g.run",
		"pkg__workerTB": "pkg.worker", "pkg__workerTKB": "pkg.worker", "pkg___elabb": "pkg___elabb", "pkg__p__B_1__f": "pkg.p.f", "pkg__innerXnb__go": "pkg.inner.go",
		"pkg__prot__readN": "pkg.prot.read", "pkg__prot__readP": "pkg.prot.read", "__gnat_initialize": "__gnat_initialize", "main": "main", "system__soft_links__abort": "system.soft_links.abort",
		"pkg__workerVIP": "pkg__workerVIP", "": "", "_ada_": "_ada_", "X": "X", "pkg__": "pkg__", "pkg__Ofoo": "pkg__Ofoo", "pkg__f.12": "pkg.f",
	} {
		if got := DecodeAda(name); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}
}

func FuzzDecodeAda(f *testing.F) {
	f.Add("pkg__outer__innerXb__Oadd.5")
	f.Fuzz(func(t *testing.T, name string) {
		if got := DecodeAda(name); len(got) > 2*len(name)+2 {
			t.Errorf("%q", got)
		}
	})
}
