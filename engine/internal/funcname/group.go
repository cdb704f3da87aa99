// SPDX-License-Identifier: Apache-2.0

package funcname

// This file finds the ends of bracketed text within names.

// closer returns the bracket that ends a group; 0 where a character begins none.
func closer(c byte) byte {
	switch c {
	case '<':
		return '>'
	case '(':
		return ')'
	case '[':
		return ']'
	case '{':
		return '}'
	}
	return 0
}

// Groups finds the ends of groups. Its memory is used again.
type Groups struct{ open []byte }

// End returns the index after the group that begins with the bracket at an index; the end of
// the text where the group is not closed. Angle brackets of operators, arrows and comparisons
// do not count.
func (g *Groups) End(s string, start int) int {
	g.open = g.open[:0]
	for i := start; i < len(s); i++ {
		switch c := s[i]; c {
		case '<', '(', '[', '{':
			g.open = append(g.open, closer(c))
		case '>':
			if i > 0 && s[i-1] == '-' || g.open[len(g.open)-1] != '>' {
				continue // an arrow, or a comparison in round brackets
			}
			g.open = g.open[:len(g.open)-1]
		case ')', ']', '}':
			g.close(c)
		case 'o':
			i += operatorLength(s, i)
		}
		if len(g.open) == 0 {
			return i + 1
		}
	}
	return len(s)
}

// close ends the group that a bracket closes, and the groups within it that are not closed.
func (g *Groups) close(c byte) {
	for i := len(g.open) - 1; i >= 0; i-- {
		if g.open[i] == c {
			g.open = g.open[:i]
			return
		}
	}
}

// operatorLength returns the length, less one, of an operator's name such as "operator<" at an
// index, whose angle brackets do not count; 0 where there is none.
func operatorLength(s string, index int) int {
	const word = "operator"
	if !hasPrefixAt(s, index, word) || index > 0 && isIdentifier(s[index-1]) {
		return 0
	}
	if op := operatorAt(s, index+len(word)); len(op) > 0 && (op[0] == '<' || op[0] == '>' || op[0] == '-') {
		return len(word) + len(op) - 1
	}
	return 0
}

// operators are the operators of C++ that are written with signs, the longer ones first.
var operators = []string{
	"<=>", "<<=", ">>=", "->*", "()", "[]", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
	"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<", ">", "=", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", ",",
}

// operatorAt returns the operator at an index: the longest one that is followed by template
// arguments, parameters or the end.
func operatorAt(s string, index int) string {
	for _, op := range operators {
		if !hasPrefixAt(s, index, op) {
			continue
		}
		if next := index + len(op); next == len(s) || s[next] == '(' || s[next] == '<' || s[next] == ' ' || s[next] == '[' || s[next] == ':' || s[next] == '>' && op != "<" || s[next] == ',' {
			return op
		}
	}
	return ""
}

func hasPrefixAt(s string, index int, prefix string) bool {
	return len(s)-index >= len(prefix) && s[index:index+len(prefix)] == prefix
}

func isIdentifier(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
