// SPDX-License-Identifier: Apache-2.0

// Package kallsyms reads the symbols of a running Linux kernel from /proc/kallsyms, which
// has a line for each: ADDRESS TYPE NAME, and [MODULE] for a symbol of a module.
//
//	t, err := kallsyms.Open("/proc/kallsyms")
//	s, ok := t.Find(0xffffffff81000010)
package kallsyms

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrHidden is returned where the kernel hides its addresses (kptr_restrict): all of them
// are 0.
var ErrHidden = errors.New("all addresses are 0: only root may see them (kernel.kptr_restrict)")

// maxFile bounds the file; a kernel with many modules has 15 MB.
const maxFile = 256 << 20

// Symbol is a function of the kernel. End is the start of the next one.
type Symbol struct {
	Name       string
	Module     string // "" for the kernel itself
	Start, End uint64
}

// Table has the functions by address. It does not change.
type Table struct {
	path    string
	symbols []Symbol
	others  []namedAddress // other symbols of the kernel itself
}

type namedAddress struct {
	name    string
	address uint64
}

// Open reads a file, which need not be a regular one: /proc/kallsyms has a size of 0 bytes.
func Open(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(path, f)
}

const (
	maxLine = 1 << 20
	// usualSize is the room for a file whose size is not known, and usualLine for a line.
	usualSize, usualLine = 8 << 20, 40
)

// Read reads the text of such a file; path is its name in messages.
func Read(path string, r io.Reader) (*Table, error) { return read(path, r) }

func read(path string, r io.Reader) (*Table, error) {
	var all strings.Builder // names are parts of it
	all.Grow(usualSize)
	size, err := io.CopyBuffer(struct{ io.Writer }{&all}, io.LimitReader(r, maxFile+1), make([]byte, 256<<10))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case size > maxFile:
		return nil, fmt.Errorf("%s: more than %d bytes", path, maxFile)
	}
	t := &Table{path: path, symbols: make([]Symbol, 0, size/usualLine), others: make([]namedAddress, 0, size/usualLine)}
	number, isHidden := 0, true
	for line := range strings.Lines(all.String()) {
		number++
		s, isFunction, err := parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, number, err)
		}
		isHidden = isHidden && s.Start == 0
		switch {
		case isFunction:
			t.symbols = append(t.symbols, s)
		case s.Module == "":
			t.others = append(t.others, namedAddress{s.Name, s.Start})
		}
	}
	if number == 0 {
		return nil, fmt.Errorf("%s: it has no symbols", path)
	}
	if isHidden {
		return nil, fmt.Errorf("%s: %w", path, ErrHidden)
	}
	t.sort()
	return t, nil
}

// parse reads a line. Weak and local functions are functions too.
func parse(line string) (s Symbol, isFunction bool, err error) {
	address, rest := cutField(line)
	kind, rest := cutField(rest)
	name, rest := cutField(rest)
	module, _ := cutField(rest)
	if len(line) > maxLine || name == "" || len(kind) != 1 {
		return s, false, fmt.Errorf("%.80q, expected ADDRESS TYPE NAME [MODULE]", line)
	}
	if s.Start, err = strconv.ParseUint(address, 16, 64); err != nil {
		return s, false, fmt.Errorf("address %.80q, expected a hexadecimal number", address)
	}
	s.Name, s.Module = name, strings.Trim(module, "[]")
	return s, kind[0]|0x20 == 't' || kind[0]|0x20 == 'w', nil
}

// cutField returns the text up to the next blank, and the text behind it.
func cutField(text string) (field, rest string) {
	start := 0
	for start < len(text) && isBlank(text[start]) {
		start++
	}
	end := start
	for end < len(text) && !isBlank(text[end]) {
		end++
	}
	return text[start:end], text[end:]
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' }

// sort sorts the functions by address. Of several at one address it keeps the first of the
// file, which is the kernel's name for it.
func (t *Table) sort() {
	if byStart := func(a, b Symbol) int { return cmp.Compare(a.Start, b.Start) }; !slices.IsSortedFunc(t.symbols, byStart) {
		slices.SortStableFunc(t.symbols, byStart)
	}
	t.symbols = slices.CompactFunc(t.symbols, func(s, kept Symbol) bool {
		if kept.Start != s.Start {
			return false
		}
		if s.Module == "" {
			t.others = append(t.others, namedAddress{s.Name, s.Start})
		}
		return true
	})
	for i := range t.symbols {
		t.symbols[i].End = ^uint64(0)
		if i+1 < len(t.symbols) {
			t.symbols[i].End = t.symbols[i+1].Start
		}
	}
}

// Path is the path of the file.
func (t *Table) Path() string { return t.path }

// Find returns the function that contains an address.
func (t *Table) Find(address uint64) (Symbol, bool) {
	i, found := slices.BinarySearchFunc(t.symbols, address, func(s Symbol, a uint64) int { return cmp.Compare(s.Start, a) })
	if !found {
		i--
	}
	if i < 0 || address >= t.symbols[i].End {
		return Symbol{}, false
	}
	return t.symbols[i], true
}

// ModuleStart returns the lowest address of a function of a module.
func (t *Table) ModuleStart(module string) (uint64, bool) {
	for i := range t.symbols {
		if t.symbols[i].Module == module {
			return t.symbols[i].Start, true
		}
	}
	return 0, false
}

// Address returns the address of a symbol of the kernel itself.
func (t *Table) Address(name string) (uint64, bool) {
	for i := range t.symbols {
		if s := &t.symbols[i]; s.Name == name && s.Module == "" {
			return s.Start, true
		}
	}
	for i := range t.others {
		if t.others[i].name == name {
			return t.others[i].address, true
		}
	}
	return 0, false
}
