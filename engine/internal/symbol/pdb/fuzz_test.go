// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"testing"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// FuzzFile reads everything of a file.
func FuzzFile(f *testing.F) {
	f.Add(odd().bytes(), uint32(0x1205))
	f.Add(moved().bytes(), uint32(0x2105))
	f.Fuzz(func(t *testing.T, data []byte, rva uint32) {
		file, err := New("a.pdb", data, testBase)
		if err != nil {
			return
		}
		address := testBase + uint64(rva)
		if _, err := file.Frames(nil, address); err != nil {
			t.Error(err)
		}
		file.Function(address)
		file.FrameData(address)
		file.Covers(address)
		file.Lines(nil, symbol.CodeRange{Start: address, End: address + 0x1000})
		file.Start()
		file.Functions()
		left := 1000
		_ = file.EachFunction(func(fn *symbol.FunctionCode) bool {
			for i, r := range fn.Ranges {
				if r.Start >= r.End || i > 0 && r.Start < fn.Ranges[i-1].End {
					t.Errorf("ranges %x of %s", fn.Ranges, fn.Function)
				}
			}
			left--
			return left > 0
		})
		_ = file.EachLine(func(*symbol.LineRow) bool { left--; return left > 0 })
		_ = file.Data(func(string, uint64, uint64) {})
		if len(file.Problems()) > maxProblems {
			t.Error("too many problems")
		}
	})
}

// FuzzAnnotations reads binary annotations, whose rows have code.
func FuzzAnnotations(f *testing.F) {
	f.Add([]byte{opOffsetAndLine, 0x24, opOffsetAndLine, 0x28, opCodeLength, 4, opPart, 1, opChangeOffset, 2, opCodeLength, 6, 0})
	f.Add([]byte{opLengthAndOffset, 2, 5, opFile, 8, opLine, 4, opLengthAndOffset, 0xc3, 0x80, 7, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		rows := appendRows(nil, data, inlinee{line: 10})
		if len(rows) > len(data) {
			t.Errorf("%d rows of %d bytes", len(rows), len(data))
		}
		for _, r := range rows {
			if r.start >= r.end {
				t.Errorf("a row without code: %+v", r)
			}
		}
		code := []piece{{section{100, 10000}, -1, position{}}, {section{20000, 20010}, -1, position{}}}
		last := uint32(0)
		for _, p := range clip(pieces(rows, code, 0), code) {
			if p.start < last || p.start >= p.end {
				t.Errorf("a piece from %d to %d behind %d", p.start, p.end, last)
			}
			last = p.end
		}
	})
}

// FuzzLines reads a line table.
func FuzzLines(f *testing.F) {
	f.Add(lineRows(0, 0x20, 0, 0, 10, 8, 0x80000000|12, 16, alwaysStepInto)[8+linesHeader:], false)
	f.Add(bytesOf(0, 1, 24, 4, 5, uint16(1), uint16(2), 8, 0xffffffff, 12), true)
	f.Fuzz(func(t *testing.T, data []byte, hasColumns bool) {
		file := &testFile{machine: pe.MachineX86, sections: code, modules: []testModule{{contributions: []contribution{{section{0, 0x100}, 0}},
			c13: subsection(partLines, 0, uint16(1), map[bool]uint16{true: 1}[hasColumns], 0x100, data)}}}
		opened := file.open(t)
		last := uint64(0)
		_ = opened.EachLine(func(r *symbol.LineRow) bool {
			if r.Start < last || r.Start >= r.End {
				t.Errorf("a row from %#x to %#x behind %#x", r.Start, r.End, last)
			}
			last = r.End
			return true
		})
		for a := range uint64(0x100) {
			if _, err := opened.Frames(nil, testBase+0x1000+a); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzSymbols reads the symbols of a module.
func FuzzSymbols(f *testing.F) {
	f.Add(odd().modules[0].symbols)
	f.Add(odd().modules[1].symbols)
	f.Fuzz(func(t *testing.T, data []byte) {
		file := odd()
		file.modules[0].symbols = data[:len(data)&^3]
		opened := file.open(t)
		var addresses []uint64
		for a := range uint64(0x900) {
			addresses = append(addresses, testBase+0x1000+a)
		}
		for _, a := range addresses {
			if _, err := opened.Frames(nil, a); err != nil {
				t.Fatal(err)
			}
		}
		_ = opened.EachFunction(func(*symbol.FunctionCode) bool { return true })
		_ = opened.EachLine(func(*symbol.LineRow) bool { return true })
	})
}
