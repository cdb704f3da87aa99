// SPDX-License-Identifier: Apache-2.0

package signature

// This file finds the ends of what stands in brackets within names.

// closers are the brackets that end groups.
var closers = map[byte]byte{'<': '>', '(': ')', '[': ']', '{': '}'}

// A groupEnder finds the ends of groups. Its memory is used again.
type groupEnder struct{ open []byte }

// end is the index behind the group that begins with the bracket at an index; the end of
// the text where the group has none. Angle brackets of operators, arrows and comparisons
// are none.
func (g *groupEnder) end(s string, at int) int {
	g.open = g.open[:0]
	for i := at; i < len(s); i++ {
		switch c := s[i]; c {
		case '<', '(', '[', '{':
			g.open = append(g.open, closers[c])
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

// close ends the group that a bracket ends, and those within it that have no end.
func (g *groupEnder) close(c byte) {
	for i := len(g.open) - 1; i >= 0; i-- {
		if g.open[i] == c {
			g.open = g.open[:i]
			return
		}
	}
}

// operatorLength is how many more bytes "operator<" and its like have whose angle
// brackets begin and end nothing; 0 where there is none at an index.
func operatorLength(s string, at int) int {
	const word = "operator"
	if !hasPrefixAt(s, at, word) || at > 0 && isIdentifier(s[at-1]) {
		return 0
	}
	if op := operatorAt(s, at+len(word)); len(op) > 0 && (op[0] == '<' || op[0] == '>' || op[0] == '-') {
		return len(word) + len(op) - 1
	}
	return 0
}

// operators of C++ that are written with signs, the longer ones first.
var operators = []string{
	"<=>", "<<=", ">>=", "->*", "()", "[]", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
	"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<", ">", "=", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", ",",
}

// operatorAt is the operator at an index: the longest one behind which template
// arguments, parameters or the end follow.
func operatorAt(s string, at int) string {
	for _, op := range operators {
		if !hasPrefixAt(s, at, op) {
			continue
		}
		if next := at + len(op); next == len(s) || s[next] == '(' || s[next] == '<' || s[next] == ' ' || s[next] == '[' || s[next] == ':' || s[next] == '>' && op != "<" || s[next] == ',' {
			return op
		}
	}
	return ""
}

func hasPrefixAt(s string, at int, prefix string) bool {
	return len(s)-at >= len(prefix) && s[at:at+len(prefix)] == prefix
}

func isIdentifier(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
