// SPDX-License-Identifier: Apache-2.0

// Package swiftname reads the simple names out of mangled names of Swift: the module, the types around a function
// and the function, without its labels and types (docs/ABI/Mangling.rst of Swift).
package swiftname

import "strings"

// prefixes begin mangled names: of Swift 5, 4.2, 4.0, and of Embedded Swift. Symbol tables of macOS have an
// underscore before them.
var prefixes = []string{"$s", "$S", "_T0", "$e"}

// Mark ends names that Read returns: they are not whole.
const Mark = " (Swift, in part)"

// maxNames bounds the names in a name, and maxWords those that later ones may refer to.
const (
	maxNames = 32
	maxWords = 26
	maxName  = 1 << 12 // bytes
)

// IsMangled reports whether a name begins as a mangled name of Swift.
func IsMangled(name string) bool {
	rest, ok := cutPrefix(name)
	return ok && rest != "" && (isDigit(rest[0]) || rest[0] == 's' || rest[0] == 'S')
}

func cutPrefix(name string) (rest string, ok bool) {
	if strings.HasPrefix(name, "_$") {
		name = name[1:]
	}
	for _, prefix := range prefixes {
		if rest, ok = strings.CutPrefix(name, prefix); ok {
			return rest, true
		}
	}
	return "", false
}

// Read returns the simple names in a mangled name, with Mark behind them; false where it has none.
func Read(name string) (string, bool) {
	rest, ok := cutPrefix(name)
	if !ok || len(name) > maxName {
		return "", false
	}
	r := reader{text: rest}
	names := r.names()
	if len(names) < 2 { // the module alone names nothing
		return "", false
	}
	return role(r.text) + strings.Join(names, ".") + ending(r.text) + Mark, true
}

// roles say what the code of a name is, where the function that has the simple names is around it. The first that
// a name's rest matches counts.
var roles = []struct {
	matches func(rest string) bool
	text    string
}{
	{func(rest string) bool { return hasAny(rest, "U_", "U0_", "U1_", "U2_", "U3_", "U4_") }, "closure in "},
	{func(rest string) bool { return inner(rest) }, "function in "},
	{func(rest string) bool {
		return hasEnd(rest, "TA", "TR", "Tm", "Tj", "TW", "To", "TO", "TI", "Tu", "TY", "TQ", "Twb", "TwB") || hasAny(rest, "TQ", "TY")
	}, "code for "},
	{func(rest string) bool {
		return hasEnd(rest, "Wl", "WL", "Wb", "wcp", "wxx", "wca", "wta", "wet", "wst", "WOb", "WOc", "WOd", "WOe", "WOf", "WOh", "WOs", "Ma", "Mr", "Mi")
	}, "code for "},
}

func role(rest string) string {
	for _, r := range roles {
		if r.matches(rest) {
			return r.text
		}
	}
	return ""
}

// endings are the last operators of names whose function has no name of its own.
var endings = []struct{ operator, text string }{
	{"fC", ".init"}, {"fc", ".init"}, {"fD", ".deinit"}, {"fd", ".deinit"}, {"vg", ".get"}, {"vs", ".set"}, {"vM", ".modify"}, {"vr", ".read"},
	{"ig", ".subscript.get"}, {"is", ".subscript.set"},
}

func ending(rest string) string {
	for _, e := range endings {
		if strings.HasSuffix(strings.TrimSuffix(rest, "Z"), e.operator) {
			return e.text
		}
	}
	return ""
}

// inner reports whether behind a function's own operator another name follows: it is of a function inside.
func inner(rest string) bool {
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == 'F' && isDigit(rest[i+1]) && strings.Contains(rest[i:], "L_") {
			return true
		}
	}
	return false
}

func hasAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func hasEnd(text string, ends ...string) bool {
	for _, end := range ends {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// A reader reads names from the beginning of a text, which it shortens.
type reader struct {
	text  string
	words []string
}

// known are the modules and types that have abbreviations.
var known = map[string]string{
	"s": "Swift", "So": "__C", "SC": "__C_Synthesized", "Sa": "Swift.Array", "Sb": "Swift.Bool", "SD": "Swift.Dictionary", "Sd": "Swift.Double",
	"Sf": "Swift.Float", "Sh": "Swift.Set", "Si": "Swift.Int", "SJ": "Swift.Character", "SN": "Swift.ClosedRange", "Sn": "Swift.Range", "SO": "Swift.ObjectIdentifier",
	"SP": "Swift.UnsafePointer", "Sp": "Swift.UnsafeMutablePointer", "Sq": "Swift.Optional", "SR": "Swift.UnsafeBufferPointer", "Sr": "Swift.UnsafeMutableBufferPointer",
	"SS": "Swift.String", "Ss": "Swift.Substring", "Su": "Swift.UInt", "SV": "Swift.UnsafeRawPointer", "Sv": "Swift.UnsafeMutableRawPointer",
}

// names returns the module, the types, and the function.
func (r *reader) names() (names []string) {
	switch {
	case strings.HasPrefix(r.text, "S") && len(r.text) > 1 && known[r.text[:2]] != "":
		names, r.text = append(names, known[r.text[:2]]), r.text[2:]
	case strings.HasPrefix(r.text, "s"):
		names, r.text = append(names, known["s"]), r.text[1:]
	default:
		name, ok := r.identifier()
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	for range maxNames {
		name, ok := r.identifier()
		if !ok {
			return names
		}
		names = append(names, name)
		r.skipPrivate()
		if strings.HasPrefix(r.text, "E") { // the module of an extension
			names, r.text = names[:len(names)-1], r.text[1:]
			continue
		}
		if r.text == "" || !strings.ContainsRune("VCOP", rune(r.text[0])) {
			return names // the function: its labels and types follow
		}
		r.text = r.text[1:]
	}
	return nil
}

// skipPrivate skips the number of the file of a private name.
func (r *reader) skipPrivate() {
	before := *r
	if name, ok := r.identifier(); ok && strings.HasPrefix(name, "_") {
		if rest, ok := strings.CutPrefix(r.text, "LL"); ok {
			r.text = rest
			return
		}
	}
	*r = before
}

// identifier reads a name: its length and itself, or words of those before it.
func (r *reader) identifier() (string, bool) {
	if r.text == "" || !isDigit(r.text[0]) {
		return "", false
	}
	hasWords := r.text[0] == '0'
	rest := r.text
	if hasWords {
		if rest = rest[1:]; strings.HasPrefix(rest, "0") {
			return "", false // Punycode
		}
	}
	var name strings.Builder
	for {
		for hasWords && rest != "" && isLetter(rest[0]) {
			c := rest[0]
			if c <= 'Z' {
				c, hasWords = c-'A'+'a', false
			}
			if int(c-'a') >= len(r.words) {
				return "", false
			}
			name.WriteString(r.words[c-'a'])
			rest = rest[1:]
		}
		if strings.HasPrefix(rest, "0") {
			rest = rest[1:]
			break
		}
		n, digits := 0, 0
		for digits < len(rest) && isDigit(rest[digits]) && n <= maxName {
			n, digits = 10*n+int(rest[digits]-'0'), digits+1
		}
		if digits == 0 || n == 0 || n > len(rest)-digits {
			return "", false
		}
		part := rest[digits : digits+n]
		name.WriteString(part)
		r.addWords(part)
		rest = rest[digits+n:]
		if !hasWords {
			break
		}
	}
	if name.Len() > maxName || !isName(name.String()) {
		return "", false
	}
	r.text = rest
	return name.String(), true
}

// addWords keeps the words of a name: they begin with capitals, or behind underscores.
func (r *reader) addWords(name string) {
	start := -1
	for i := 0; i <= len(name); i++ {
		isEnd := i == len(name) || name[i] == '_' || i > 0 && isUpper(name[i]) && !isUpper(name[i-1])
		if start >= 0 && isEnd {
			if i-start >= 2 && len(r.words) < maxWords {
				r.words = append(r.words, name[start:i])
			}
			start = -1
		}
		if start < 0 && i < len(name) && name[i] != '_' && !isDigit(name[i]) {
			start = i
		}
	}
}

// isName reports whether a text has the bytes of names only.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || c >= 'a' && c <= 'z' }
