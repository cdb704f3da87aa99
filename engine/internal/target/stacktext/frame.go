// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

// scriptFrame is a line of a stack of perf script.
type scriptFrame struct {
	address    uint64
	hasAddress bool
	function   string // "": unknown
	offset     uint64 // in the function
	hasOffset  bool
	object     string // "": not there
	inObject   uint64 // the offset in the object's file (perf script -F +dsoff)
	hasInside  bool
	isInlined  bool
	file       string
	line       int
}

// addressColumns is how many columns perf gives an address.
const addressColumns = 16

// parseAddress reads the address that a frame begins with. rest follows it.
func parseAddress(text []byte) (rest []byte, ok bool) {
	trimmed := bytes.TrimLeft(text, " \t")
	word := trimmed
	if i := bytes.IndexByte(trimmed, ' '); i >= 0 {
		word = trimmed[:i]
	}
	if _, isHex := linetext.Hex(word); !isHex {
		return nil, false
	}
	// A function may be called "add": addresses are in a column, or have a digit.
	indent := len(bytes.TrimLeft(text, "\t")) - len(trimmed)
	if indent+len(word) < addressColumns && (len(word) < 4 || !bytes.ContainsAny(word, "0123456789")) {
		return nil, false
	}
	return bytes.TrimLeft(trimmed[len(word):], " "), true
}

// parseFrame reads a line of a stack.
func parseFrame(text []byte) (f scriptFrame) {
	rest, ok := parseAddress(text)
	if ok {
		word, _, _ := bytes.Cut(bytes.TrimLeft(text, " \t"), []byte(" "))
		f.address, f.hasAddress = hex(word)
	} else {
		rest = bytes.TrimLeft(text, " \t")
	}
	rest, f.isInlined = bytes.CutSuffix(bytes.TrimRight(rest, " "), []byte("(inlined)"))
	rest = bytes.TrimRight(rest, " ")
	if start := objectStart(rest); start >= 0 {
		f.setObject(string(rest[start+1 : len(rest)-1]))
		rest = bytes.TrimRight(rest[:start], " ")
	}
	f.setFunction(string(rest))
	return f
}

func hex(text []byte) (uint64, bool) { return linetext.Hex(text) }

// objectStart returns where the parenthesis opens that ends a line; -1 where none does after a
// space. Names of files may have parentheses, too: "(/memfd:x (deleted))".
func objectStart(text []byte) int {
	if len(text) == 0 || text[len(text)-1] != ')' {
		return -1
	}
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if i == 0 || text[i-1] == ' ' {
					return i
				}
				return -1
			}
		}
	}
	return -1
}

// setObject sets the code object of a frame: PATH, or PATH+0xOFFSET.
func (f *scriptFrame) setObject(text string) {
	if i := strings.LastIndex(text, "+0x"); i > 0 {
		if n, err := strconv.ParseUint(text[i+3:], 16, 64); err == nil {
			f.inObject, f.hasInside = n, true
			text = text[:i]
		}
	}
	if text != "[unknown]" {
		f.object = text
	}
}

// setFunction sets the function of a frame: NAME, or NAME+0xOFFSET.
func (f *scriptFrame) setFunction(text string) {
	if i := strings.LastIndex(text, "+0x"); i > 0 {
		if n, err := strconv.ParseUint(text[i+3:], 16, 64); err == nil {
			f.offset, f.hasOffset = n, true
			text = text[:i]
		}
	}
	if text == "[unknown]" || text == "" {
		f.hasOffset = false
		return
	}
	f.function = text
}

// setSource sets the line of source of a frame: FILE:LINE, with or without (inlined).
func (f *scriptFrame) setSource(text string) {
	text, isInlined := strings.CutSuffix(strings.TrimSpace(text), "(inlined)")
	f.isInlined = f.isInlined || isInlined
	text = strings.TrimSpace(text)
	i := strings.LastIndexByte(text, ':')
	if i <= 0 {
		return
	}
	if n, err := strconv.Atoi(text[i+1:]); err == nil && n > 0 && !strings.HasPrefix(text, "??") {
		f.file, f.line = text[:i], n
	}
}
