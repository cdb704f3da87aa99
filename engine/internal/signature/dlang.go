// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
)

// dFile ends the names of D's source files. It stands for the source file of a function whose
// linkage name is D's.
const dFile = ".d"

// dName returns a name of D without parameters, template arguments, the text after them, and
// the numbers of functions without a name.
func dName(function string) string {
	var g funcname.Groups
	var out []byte
	for i := 0; i < len(function); i++ {
		switch c := function[i]; {
		case c == '(':
			i = g.End(function, i) - 1
		case c == '!' && i+1 < len(function) && function[i+1] == '(':
		case c == ' ' && len(out) > 0 && strings.IndexByte(function[:i], '(') >= 0: // const
			i = len(function)
		default:
			out = append(out, c)
		}
	}
	parts := strings.Split(string(out), ".")
	for i, p := range parts {
		for _, l := range funcname.DLambdas {
			if strings.HasPrefix(p, l) {
				parts[i] = funcname.Lambda
			}
		}
	}
	return strings.Join(parts, ".")
}
