// SPDX-License-Identifier: Apache-2.0

// Package kallsyms reads the symbols of a running Linux kernel from /proc/kallsyms, which
// has a line for each: ADDRESS TYPE NAME, and [MODULE] for a symbol of a module.
//
//	t, err := kallsyms.Open("/proc/kallsyms")
//	s, ok := t.Find(0xffffffff81000010)
package kallsyms

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
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
	others  map[string]uint64 // other symbols of the kernel itself
}

// Open reads a file, which need not be a regular one: /proc/kallsyms has a size of 0 bytes.
func Open(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(path, io.LimitReader(f, maxFile+1))
}

// Read reads the text of such a file; path is its name in messages.
func Read(path string, r io.Reader) (*Table, error) {
	return read(path, io.LimitReader(r, maxFile+1))
}

func read(path string, r io.Reader) (*Table, error) {
	t := &Table{path: path, others: map[string]uint64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	number, hidden := 0, true
	size := 0
	for lines.Scan() {
		number++
		if size += len(lines.Bytes()) + 1; size > maxFile {
			return nil, fmt.Errorf("%s: more than %d bytes", path, maxFile)
		}
		s, function, err := parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, number, err)
		}
		hidden = hidden && s.Start == 0
		switch {
		case function:
			t.symbols = append(t.symbols, s)
		case s.Module == "":
			t.others[s.Name] = s.Start
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", path, number+1, err)
	}
	if number == 0 {
		return nil, fmt.Errorf("%s: it has no symbols", path)
	}
	if hidden {
		return nil, fmt.Errorf("%s: %w", path, ErrHidden)
	}
	t.sort()
	return t, nil
}

// parse reads a line. Weak and local functions are functions too.
func parse(line []byte) (s Symbol, function bool, err error) {
	fields := bytes.Fields(line)
	if len(fields) < 3 || len(fields[1]) != 1 {
		return s, false, fmt.Errorf("%.80q, expected ADDRESS TYPE NAME [MODULE]", line)
	}
	if s.Start, err = strconv.ParseUint(string(fields[0]), 16, 64); err != nil {
		return s, false, fmt.Errorf("address %.80q, expected a hexadecimal number", fields[0])
	}
	s.Name = string(fields[2])
	if len(fields) > 3 {
		s.Module = string(bytes.Trim(fields[3], "[]"))
	}
	return s, bytes.ContainsAny(fields[1], "tTwW"), nil
}

// sort sorts the functions by address. Of several at one address it keeps the first of the
// file, which is the kernel's name for it.
func (t *Table) sort() {
	slices.SortStableFunc(t.symbols, func(a, b Symbol) int { return cmp.Compare(a.Start, b.Start) })
	t.symbols = slices.CompactFunc(t.symbols, func(s, kept Symbol) bool {
		if kept.Start != s.Start {
			return false
		}
		if s.Module == "" {
			t.others[s.Name] = s.Start
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

// Address returns the address of a symbol of the kernel itself.
func (t *Table) Address(name string) (uint64, bool) {
	for i := range t.symbols {
		if s := &t.symbols[i]; s.Name == name && s.Module == "" {
			return s.Start, true
		}
	}
	a, ok := t.others[name]
	return a, ok
}
