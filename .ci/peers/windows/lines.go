// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/pe"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lineBlock is a part of a line table: the lines of a file in some code.
type lineBlock struct {
	span
	file string
	rows []lineRow
}

type lineRow struct {
	address uint64
	line    string
}

var (
	blockLine = regexp.MustCompile(`^\s+(\d{4}):([0-9A-F]{8})-([0-9A-F]{8}), line/`)
	rowText   = regexp.MustCompile(`(\d+) ([0-9A-F]{8})`)
	fileLine  = regexp.MustCompile(`^(\S.*) \((?:no checksum|[A-Z0-9-]+: [0-9A-F]+)\)$`)
)

// sectionStarts are the addresses of the sections of an image.
type sectionStarts []uint64

// sectionsOf reads the addresses of sections.
func sectionsOf(image string) (sectionStarts, error) {
	f, err := pe.Open(image)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	base := uint64(0)
	switch h := f.OptionalHeader.(type) {
	case *pe.OptionalHeader32:
		base = uint64(h.ImageBase)
	case *pe.OptionalHeader64:
		base = h.ImageBase
	}
	var starts sectionStarts
	for _, s := range f.Sections {
		starts = append(starts, base+uint64(s.VirtualAddress))
	}
	return starts, nil
}

// address returns the address of SECTION:OFFSET, in decimal digits.
func (s sectionStarts) address(section, offset string) (address uint64, ok bool) {
	n, _ := strconv.Atoi(section)
	o, err := strconv.ParseUint(offset, 10, 64)
	if err != nil || n < 1 || n > len(s) {
		return 0, false
	}
	return s[n-1] + o, true
}

// linesOf reads line tables as llvm-pdbutil writes them. llvm-symbolizer is no judge of
// code whose lines are of several files: before the first row of a later part it takes that row.
func linesOf(text string, sections sectionStarts) []lineBlock {
	var blocks []lineBlock
	file, section := "", uint64(0)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := fileLine.FindStringSubmatch(line); m != nil {
			file = m[1]
			continue
		}
		if m := blockLine.FindStringSubmatch(line); m != nil {
			var ok bool
			if section, ok = sections.address(m[1], "0"); !ok {
				continue
			}
			start, _ := strconv.ParseUint(m[2], 16, 64)
			end, _ := strconv.ParseUint(m[3], 16, 64)
			blocks = append(blocks, lineBlock{span: span{section + start, section + end}, file: file})
			continue
		}
		if len(blocks) > 0 && strings.HasPrefix(line, " ") {
			b := &blocks[len(blocks)-1]
			for _, m := range rowText.FindAllStringSubmatch(line, -1) {
				address, _ := strconv.ParseUint(m[2], 16, 64)
				b.rows = append(b.rows, lineRow{section + address, m[1]})
			}
		}
	}
	return blocks
}

// hasLine reports whether a position FILE:LINE:COLUMN is of a row that is in force at an address: of
// those that begin last before it.
func hasLine(blocks []lineBlock, address uint64, position string) bool {
	last, found := uint64(0), []string(nil)
	for i := range blocks {
		b := &blocks[i]
		if address < b.start || address >= b.end {
			continue
		}
		for _, r := range b.rows {
			switch {
			case r.address > address || r.address < last:
			case r.address > last:
				last, found = r.address, []string{b.file + ":" + r.line}
			default:
				found = append(found, b.file+":"+r.line)
			}
		}
	}
	for _, text := range found {
		if strings.HasPrefix(position, text+":") {
			return true
		}
	}
	return false
}

// isOtherFile reports whether two positions differ in the file alone.
func isOtherFile(a, b string) bool {
	return lineOf(a) == lineOf(b)
}

// lineOf returns LINE:COLUMN of a position.
func lineOf(position string) string {
	parts := strings.Split(position, ":")
	return strings.Join(parts[max(0, len(parts)-2):], ":")
}

// procedure is a function by its record in a PDB file.
type procedure struct {
	span
	name string
}

// isNamed reports whether a function with a name has an address by its record. llvm-symbolizer takes a
// public symbol of the same address for one of them, and a leading underscore of 32-bit x86 from all names.
func (e *evidence) isNamed(address uint64, name string) bool {
	return slices.ContainsFunc(e.functions, func(f withSites) bool {
		return address >= f.start && address < f.end && bare(f.name) == bare(name)
	})
}
