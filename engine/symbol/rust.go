// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rust's v0 mangling (RFC 2603) and its legacy one. The library that demangles
// C++ reads a number after a zero as one with it, so that it loses or misreads
// the v0 names of closures, whose identifiers are empty, and of legacy names it
// drops leading underscores.

// errRust says that a name is not of the v0 mangling, or too deep or long.
var errRust = errors.New("not a v0 name")

// maxRustDepth bounds how deep paths and types nest.
const maxRustDepth = 400

// rustTypes are the basic types, by their letters.
var rustTypes = map[byte]string{
	'a': "i8", 'b': "bool", 'c': "char", 'd': "f64", 'e': "str", 'f': "f32", 'h': "u8", 'i': "isize", 'j': "usize",
	'l': "i32", 'm': "u32", 'n': "i128", 'o': "u128", 's': "i16", 't': "u16", 'u': "()", 'v': "...", 'x': "i64",
	'y': "u64", 'z': "!", 'p': "_",
}

// A rustName is a name that is being read. Once something cannot be read, failed
// is set, and all that follows does nothing.
type rustName struct {
	text   string // after _R
	at     int
	out    strings.Builder
	silent int // not 0: what is read is not written
	depth  int
	bound  uint64 // lifetimes that binders around here bind
	failed bool
}

// demangleRust gives the readable form of a name that begins with _R, in LLVM's
// style: without the hashes of crates.
func demangleRust(name string) (string, error) {
	text, suffix := strings.TrimPrefix(name, "_R"), ""
	if i := strings.IndexAny(text, ".$"); i >= 0 {
		text, suffix = text[:i], text[i:]
	}
	r := rustName{text: text}
	if c := r.peek(); c >= '0' && c <= '9' {
		return "", errRust // a version of the mangling that is not known
	}
	r.path(false, false)
	if r.at < len(r.text) { // the crate that instantiated it
		r.silent++
		r.path(false, false)
	}
	if r.failed || r.at < len(r.text) {
		return "", errRust
	}
	if suffix != "" {
		return r.out.String() + " (" + suffix + ")", nil
	}
	return r.out.String(), nil
}

func (r *rustName) fail() { r.failed = true }

func (r *rustName) write(s string) {
	if r.failed || r.silent > 0 {
		return
	}
	if r.out.Len()+len(s) >= 1<<maxDemangled {
		r.fail()
		return
	}
	r.out.WriteString(s)
}

func (r *rustName) peek() byte {
	if r.failed || r.at >= len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *rustName) next() byte {
	c := r.peek()
	if c == 0 {
		r.fail()
		return 0
	}
	r.at++
	return c
}

// take passes over a byte if it is there.
func (r *rustName) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

// enter goes one level down; leave must follow where it is true.
func (r *rustName) enter() bool {
	if r.depth == maxRustDepth {
		r.fail()
	}
	if r.failed {
		return false
	}
	r.depth++
	return true
}

func (r *rustName) leave() { r.depth-- }

// base62 reads a number: "_" is 0, and digits before it are one less.
func (r *rustName) base62() uint64 {
	if r.take('_') {
		return 0
	}
	var v uint64
	for {
		c := r.next()
		var digit uint64
		switch {
		case c == '_':
			if v == math.MaxUint64 {
				r.fail()
			}
			return v + 1
		case c >= '0' && c <= '9':
			digit = uint64(c - '0')
		case c >= 'a' && c <= 'z':
			digit = uint64(c-'a') + 10
		case c >= 'A' && c <= 'Z':
			digit = uint64(c-'A') + 36
		default:
			r.fail()
			return 0
		}
		if v > (math.MaxUint64-digit)/62 {
			r.fail()
			return 0
		}
		v = v*62 + digit
	}
}

// optional reads a number after a tag; without the tag it is 0, else 1 or more.
func (r *rustName) optional(tag byte) uint64 {
	if !r.take(tag) {
		return 0
	}
	v := r.base62()
	if v == math.MaxUint64 {
		r.fail()
		return 0
	}
	return v + 1
}

// identifier reads one without its disambiguator.
func (r *rustName) identifier() string {
	punycode := r.take('u')
	if c := r.peek(); c < '0' || c > '9' {
		r.fail()
		return ""
	}
	n := 0
	if !r.take('0') {
		for c := r.peek(); c >= '0' && c <= '9'; c = r.peek() {
			n = n*10 + int(c-'0')
			if n > len(r.text) {
				r.fail()
				return ""
			}
			r.at++
		}
	}
	r.take('_')
	if r.failed || n > len(r.text)-r.at {
		r.fail()
		return ""
	}
	s := r.text[r.at : r.at+n]
	r.at += n
	if punycode {
		decoded, ok := decodePunycode(s)
		if !ok {
			r.fail()
		}
		return decoded
	}
	return s
}

// back reads what stands earlier in the name, with f.
func (r *rustName) back(f func()) {
	from := r.at - 1
	to := r.base62()
	if r.failed || to >= uint64(from) {
		r.fail()
		return
	}
	if r.silent > 0 {
		return // it was read already
	}
	at := r.at
	r.at = int(to)
	f()
	r.at = at
}

// path reads a path. In types generic arguments follow at once, else after "::".
// Where open is set, they are left open, and it says whether they are.
func (r *rustName) path(inType, open bool) (isOpen bool) {
	if !r.enter() {
		return false
	}
	defer r.leave()
	switch r.next() {
	case 'C':
		r.optional('s')
		r.write(r.identifier())
	case 'M':
		r.implementation()
		r.write("<")
		r.typ()
		r.write(">")
	case 'X':
		r.implementation()
		r.write("<")
		r.typ()
		r.write(" as ")
		r.path(true, false)
		r.write(">")
	case 'Y':
		r.write("<")
		r.typ()
		r.write(" as ")
		r.path(true, false)
		r.write(">")
	case 'N':
		r.nested(inType)
	case 'I':
		r.path(inType, false)
		if !inType {
			r.write("::")
		}
		r.write("<")
		for n := 0; !r.failed && !r.take('E'); n++ {
			if n > 0 {
				r.write(", ")
			}
			r.argument()
		}
		if open {
			return true
		}
		r.write(">")
	case 'B':
		r.back(func() { isOpen = r.path(inType, open) })
	default:
		r.fail()
	}
	return isOpen
}

// implementation passes over where an implementation stands.
func (r *rustName) implementation() {
	r.optional('s')
	r.silent++
	r.path(false, false)
	r.silent--
}

func (r *rustName) nested(inType bool) {
	space := r.next()
	upper := space >= 'A' && space <= 'Z'
	if !upper && (space < 'a' || space > 'z') {
		r.fail()
		return
	}
	r.path(inType, false)
	number := r.optional('s')
	name := r.identifier()
	switch {
	case !upper && name != "":
		r.write("::" + name)
	case !upper:
	default:
		kind := map[byte]string{'C': "closure", 'S': "shim"}[space]
		if kind == "" {
			kind = string(rune(space))
		}
		if name != "" {
			kind += ":" + name
		}
		r.write("::{" + kind + "#" + strconv.FormatUint(number, 10) + "}")
	}
}

func (r *rustName) argument() {
	switch {
	case r.take('L'):
		r.lifetime(r.base62())
	case r.take('K'):
		r.constant()
	default:
		r.typ()
	}
}

// lifetime writes the lifetime of an index: 0 is one without a name, others
// count from the innermost binder outwards.
func (r *rustName) lifetime(index uint64) {
	if index == 0 {
		r.write("'_")
		return
	}
	if index > r.bound {
		r.fail()
		return
	}
	r.write("'" + letters(r.bound-index))
}

func letters(n uint64) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return "z" + strconv.FormatUint(n-25, 10)
}

// binder reads the lifetimes that a type binds, for which the caller then
// restores bound.
func (r *rustName) binder() {
	n := r.optional('G')
	if n == 0 {
		return
	}
	// Each is referred to, or it would not be there.
	if n >= uint64(len(r.text)) || r.failed {
		r.fail()
		return
	}
	r.write("for<")
	for i := range n {
		r.bound++
		if i > 0 {
			r.write(", ")
		}
		r.lifetime(1)
	}
	r.write("> ")
}

func (r *rustName) typ() {
	if !r.enter() {
		return
	}
	defer r.leave()
	c := r.next()
	if basic, ok := rustTypes[c]; ok {
		r.write(basic)
		return
	}
	switch c {
	case 'A':
		r.write("[")
		r.typ()
		r.write("; ")
		r.constant()
		r.write("]")
	case 'S':
		r.write("[")
		r.typ()
		r.write("]")
	case 'T':
		r.tuple()
	case 'R':
		r.reference("")
	case 'Q':
		r.reference("mut ")
	case 'P':
		r.write("*const ")
		r.typ()
	case 'O':
		r.write("*mut ")
		r.typ()
	case 'F':
		r.function()
	case 'D':
		r.dynamic()
	case 'B':
		r.back(r.typ)
	default:
		r.at--
		r.path(true, false)
	}
}

// tuple reads the types of a tuple.
func (r *rustName) tuple() {
	r.write("(")
	n := 0
	for ; !r.failed && !r.take('E'); n++ {
		if n > 0 {
			r.write(", ")
		}
		r.typ()
	}
	if n == 1 {
		r.write(",")
	}
	r.write(")")
}

// reference reads the type of a reference, which may have a lifetime.
func (r *rustName) reference(mutable string) {
	r.write("&")
	if r.take('L') {
		if index := r.base62(); index != 0 {
			r.lifetime(index)
			r.write(" ")
		}
	}
	r.write(mutable)
	r.typ()
}

func (r *rustName) function() {
	bound := r.bound
	defer func() { r.bound = bound }()
	r.binder()
	if r.take('U') {
		r.write("unsafe ")
	}
	if r.take('K') {
		abi := "C"
		if !r.take('C') {
			abi = strings.ReplaceAll(r.identifier(), "_", "-")
		}
		r.write(`extern "` + abi + `" `)
	}
	r.write("fn(")
	for n := 0; !r.failed && !r.take('E'); n++ {
		if n > 0 {
			r.write(", ")
		}
		r.typ()
	}
	r.write(")")
	if r.take('u') {
		return
	}
	r.write(" -> ")
	r.typ()
}

func (r *rustName) dynamic() {
	bound := r.bound
	r.write("dyn ")
	r.binder()
	for n := 0; !r.failed && !r.take('E'); n++ {
		if n > 0 {
			r.write(" + ")
		}
		open := r.path(true, true)
		for r.take('p') {
			if open {
				r.write(", ")
			} else {
				r.write("<")
			}
			open = true
			r.write(r.identifier() + " = ")
			r.typ()
		}
		if open {
			r.write(">")
		}
	}
	r.bound = bound
	if !r.take('L') {
		r.fail()
		return
	}
	if index := r.base62(); index != 0 {
		r.write(" + ")
		r.lifetime(index)
	}
}

// constant reads a number, a truth value or a character.
func (r *rustName) constant() {
	if !r.enter() {
		return
	}
	defer r.leave()
	switch c := r.next(); c {
	case 'p':
		r.write("_")
	case 'B':
		r.back(r.constant)
	case 'a', 's', 'l', 'x', 'n', 'i', 'h', 't', 'm', 'y', 'o', 'j':
		sign := ""
		if strings.IndexByte("aslxni", c) >= 0 && r.take('n') {
			sign = "-"
		}
		digits, v, ok := r.hexadecimal()
		if ok {
			r.write(sign + strconv.FormatUint(v, 10))
		} else {
			r.write(sign + "0x" + digits)
		}
	case 'b':
		switch digits, _, _ := r.hexadecimal(); digits {
		case "0":
			r.write("false")
		case "1":
			r.write("true")
		default:
			r.fail()
		}
	case 'c':
		_, v, ok := r.hexadecimal()
		if !ok || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
			r.fail()
			return
		}
		r.write("'" + character(rune(v)) + "'")
	default:
		r.fail()
	}
}

// character is one as Rust writes it, the visible ones of ASCII as they are.
func character(c rune) string {
	switch c {
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	case '\n':
		return `\n`
	case '\\':
		return `\\`
	case '"':
		return `"`
	case '\'':
		return `\'`
	}
	if c >= ' ' && c < 0x7f {
		return string(c)
	}
	return fmt.Sprintf(`\u{%x}`, c)
}

// hexadecimal reads digits up to "_"; ok says that they fit 64 bits.
func (r *rustName) hexadecimal() (digits string, v uint64, ok bool) {
	from := r.at
	for {
		switch c := r.next(); {
		case c == '_':
			digits = r.text[from : r.at-1]
			if digits == "" || len(digits) > 1 && digits[0] == '0' {
				r.fail()
				return "", 0, false
			}
			v, err := strconv.ParseUint(digits, 16, 64)
			return digits, v, err == nil
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		default:
			r.fail()
			return "", 0, false
		}
	}
}

// The parameters of Punycode (RFC 3492, 5).
const (
	punycodeBase = 36
	punycodeTMin = 1
	punycodeTMax = 26
	punycodeSkew = 38
	punycodeDamp = 700
)

// decodePunycode decodes an identifier (RFC 3492, 6.2), with "_" for the delimiter.
func decodePunycode(s string) (string, bool) {
	var out []rune
	rest := s
	if i := strings.LastIndexByte(s, '_'); i >= 0 {
		out, rest = []rune(s[:i]), s[i+1:]
	}
	if rest == "" {
		return "", false
	}
	n, bias, i := 128, 72, 0
	for at := 0; at < len(rest); {
		old, w := i, 1
		for k := punycodeBase; ; k += punycodeBase {
			if at == len(rest) {
				return "", false
			}
			digit := punycodeDigit(rest[at])
			at++
			if digit < 0 || digit > (math.MaxInt32-i)/w {
				return "", false
			}
			i += digit * w
			t := min(max(k-bias, punycodeTMin), punycodeTMax)
			if digit < t {
				break
			}
			if w > math.MaxInt32/(punycodeBase-t) {
				return "", false
			}
			w *= punycodeBase - t
		}
		size := len(out) + 1
		bias = punycodeBias(i-old, size, old == 0)
		n += i / size
		i %= size
		if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return "", false
		}
		out = append(out[:i], append([]rune{rune(n)}, out[i:]...)...)
		i++
	}
	return string(out), true
}

// punycodeDigit is the value of a digit; -1 of what is none.
func punycodeDigit(c byte) int {
	switch {
	case c >= 'a' && c <= 'z':
		return int(c - 'a')
	case c >= '0' && c <= '9':
		return int(c-'0') + 26
	}
	return -1
}

// punycodeBias is the bias that follows a delta (RFC 3492, 6.1). size is how many
// characters there are, with the one that the delta gave; isFirst says that it is the first.
func punycodeBias(delta, size int, isFirst bool) int {
	if isFirst {
		delta /= punycodeDamp
	} else {
		delta /= 2
	}
	delta += delta / size
	k := 0
	for ; delta > (punycodeBase-punycodeTMin)*punycodeTMax/2; k += punycodeBase {
		delta /= punycodeBase - punycodeTMin
	}
	return k + (punycodeBase-punycodeTMin+1)*delta/(delta+punycodeSkew)
}

// legacyEscapes are those of Rust's legacy mangling, between dollar signs.
var legacyEscapes = map[string]string{
	"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}

// demangleLegacyRust gives the readable form of a name of Rust's legacy
// mangling, which looks like a nested name of C++ whose last part is a hash;
// without that. It is false for any other name.
func demangleLegacyRust(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, "_ZN")
	if !ok {
		return "", false
	}
	var parts []string
	for !strings.HasPrefix(rest, "E") {
		n, digits := 0, 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' && n <= len(rest) {
			n = n*10 + int(rest[digits]-'0')
			digits++
		}
		if digits == 0 || n == 0 || n > len(rest)-digits {
			return "", false
		}
		parts = append(parts, rest[digits:digits+n])
		rest = rest[digits+n:]
	}
	suffix := rest[1:]
	if len(parts) < 2 || suffix != "" && suffix[0] != '.' || !isLegacyHash(parts[len(parts)-1]) {
		return "", false
	}
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		if i > 0 {
			b.WriteString("::")
		}
		unescapeLegacy(&b, part)
	}
	if suffix != "" {
		b.WriteString(" (" + suffix + ")")
	}
	return b.String(), true
}

func isLegacyHash(s string) bool {
	return len(s) == 17 && s[0] == 'h' && strings.Trim(s[1:], "0123456789abcdef") == ""
}

func unescapeLegacy(b *strings.Builder, part string) {
	if strings.HasPrefix(part, "_$") {
		part = part[1:] // an identifier cannot begin with a dollar sign
	}
	for part != "" {
		switch {
		case strings.HasPrefix(part, ".."):
			b.WriteString("::")
			part = part[2:]
			continue
		case part[0] == '$':
			if end := strings.IndexByte(part[1:], '$'); end >= 0 {
				if text, ok := legacyEscape(part[1 : 1+end]); ok {
					b.WriteString(text)
					part = part[end+2:]
					continue
				}
			}
		}
		b.WriteByte(part[0])
		part = part[1:]
	}
}

func legacyEscape(name string) (string, bool) {
	if text, ok := legacyEscapes[name]; ok {
		return text, true
	}
	digits, ok := strings.CutPrefix(name, "u")
	if !ok {
		return "", false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n < ' ' || n == 0x7f || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", false
	}
	return string(rune(n)), true
}
