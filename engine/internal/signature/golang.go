// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
)

// goName returns a name of Go without type arguments, the numbers of closures, and the wrappers
// that the compiler makes.
func goName(function string) string {
	function = funcname.FoldBrackets(function, "")
	slash := strings.LastIndexByte(function, '/') + 1
	parts := strings.Split(function[slash:], ".")
	out := parts[:1]
	for i, p := range parts {
		if i == 0 {
			continue
		}
		p, _, _ = strings.Cut(p, "-range") // the body of a loop over a function
		p = strings.TrimSuffix(p, "-fm")   // a method as a value
		base := strings.TrimRight(p, "0123456789")
		switch {
		case i > 1 && base == "func" && base != p:
			p = base
		case i > 1 && (p == "" || base == "" || base != p && goWrappers[base]), goSuffixes[p]:
			continue
		case p == "glob": // the text before what init called once
			p = "init"
		}
		out = append(out, p)
	}
	return strings.ReplaceAll(function[:slash]+strings.Join(out, "."), "%2e", ".")
}
