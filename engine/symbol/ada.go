// SPDX-License-Identifier: Apache-2.0

package symbol

import "strings"

// adaOperators are the operators of Ada by how GNAT writes them.
//
//nolint:misspell // as GNAT spells them
var adaOperators = map[string]string{
	"Oabs": "abs", "Oand": "and", "Omod": "mod", "Onot": "not", "Oor": "or", "Orem": "rem", "Oxor": "xor", "Oeq": "=", "One": "/=", "Olt": "<", "Ole": "<=",
	"Ogt": ">", "Oge": ">=", "Oadd": "+", "Osubtract": "-", "Oconcat": "&", "Omultiply": "*", "Odivide": "/", "Oexpon": "**",
}

// adaBodies end the names of bodies of tasks and of packages.
var adaBodies = []string{"TKB", "TB", "B"}

// DecodeAda is the name of a function of Ada as gdb writes it, by that of GNAT's compiler:
// pkg.outer.inner of pkg__outer__inner.5. A name that is not one of these is itself.
func DecodeAda(name string) string {
	rest := strings.TrimPrefix(name, "_ada_")
	if rest == "" || rest[0] < 'a' || rest[0] > 'z' {
		return name
	}
	rest = cutAdaNumber(rest)
	if index := strings.Index(rest, "___"); index > 0 {
		if index+3 >= len(rest) || rest[index+3] != 'X' {
			return name // what the compiler made
		}
		rest = rest[:index]
	}
	for _, b := range adaBodies {
		if body, ok := strings.CutSuffix(rest, b); ok {
			rest = body
			break
		}
	}
	parts := strings.Split(rest, "__")
	out := parts[:0]
	for i, p := range parts {
		switch {
		case i > 0 && adaOperators[p] != "":
			p = `"` + adaOperators[p] + `"`
		case strings.HasPrefix(p, "B_") && strings.Trim(p[2:], "0123456789") == "":
			continue // a block without a name
		default:
			p = cutAdaCase(p)
			if p == "" || strings.ToLower(p) != p {
				return name
			}
		}
		out = append(out, p)
	}
	return strings.Join(out, ".")
}

// cutAdaNumber takes from a name the numbers of functions that are in others, and of those
// that have the same name as others: .5, $5, __2, ___2.
func cutAdaNumber(name string) string {
	digits := strings.TrimRight(name, "0123456789")
	if digits == name {
		return name
	}
	for _, before := range []string{".", "$", "___", "__"} {
		if base, ok := strings.CutSuffix(digits, before); ok && base != "" {
			return base
		}
	}
	return name
}

// cutAdaCase takes from a part what GNAT says of it: that it is in a body (Xb, Xn), a task
// (TK), or a protected operation (N, P).
func cutAdaCase(p string) string {
	if index := strings.LastIndexByte(p, 'X'); index > 0 && strings.Trim(p[index+1:], "bn") == "" {
		p = p[:index]
	}
	p = strings.TrimSuffix(p, "TK")
	if base, ok := strings.CutSuffix(p, "N"); ok {
		return base
	}
	return strings.TrimSuffix(p, "P")
}
