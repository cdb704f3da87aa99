// SPDX-License-Identifier: Apache-2.0

package signature

import "strings"

// dFile ends the names of D's source files. It stands for the source file of a function whose
// linkage name is D's.
const dFile = ".d"

// dLambdas begin the names that compilers of D give to functions without one.
var dLambdas = []string{"__lambda", "__funcliteral", "__dgliteral", "__foreachbody"}

// dName returns a name of D without parameters, template arguments, the text after them, and
// the numbers of functions without a name.
func dName(function string) string {
	var g groupEnder
	var out []byte
	for i := 0; i < len(function); i++ {
		switch c := function[i]; {
		case c == '(':
			i = g.end(function, i) - 1
		case c == '!' && i+1 < len(function) && function[i+1] == '(':
		case c == ' ' && len(out) > 0 && strings.IndexByte(function[:i], '(') >= 0: // const
			i = len(function)
		default:
			out = append(out, c)
		}
	}
	parts := strings.Split(string(out), ".")
	for i, p := range parts {
		for _, l := range dLambdas {
			if strings.HasPrefix(p, l) {
				parts[i] = lambda
			}
		}
	}
	return strings.Join(parts, ".")
}
