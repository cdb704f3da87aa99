// SPDX-License-Identifier: Apache-2.0

package sdk

import "testing"

func TestPartOf(t *testing.T) {
	for name, want := range map[string]string{
		"parse.cold": "parse", "_Z1fv.cold": "_Z1fv", "f.constprop.0.cold": "f.constprop.0", "f.part.0.cold": "f.part.0",
		"f.cold.12": "f", "f/1.cold.0": "f/1", "f.warm": "f", "f.__part.3": "f", "f.eh": "f", "f.cold.0.cold": "f.cold.0",
		"f": "", "f.part.0": "", "f.isra.0": "", "scold": "", "f.colder": "", "f.ehlo": "", ".cold": "",
	} {
		if got, ok := PartOf(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t, expected %q", name, got, ok, want)
		}
	}
}
