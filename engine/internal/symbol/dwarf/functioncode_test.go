// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// chainAt is what a function says at an address, as Frames writes it.
func chainAt(fn *symbol.FunctionCode, address uint64) []string {
	var file string
	var line int
	for i := range fn.Lines {
		if l := &fn.Lines[i]; l.Start <= address && address < l.End {
			file, line = l.File, l.Line
		}
	}
	var around []*symbol.InlinedCall
	for i := range fn.Calls {
		c := &fn.Calls[i]
		if c.Depth == len(around) && slices.ContainsFunc(c.Ranges, func(r symbol.CodeRange) bool { return r.Start <= address && address < r.End }) {
			around = append(around, c)
		}
	}
	var list []string
	for _, c := range slices.Backward(around) {
		list = append(list, fmt.Sprintf("%s %s:%d", c.Function, file, line))
		file, line = c.CallFile, c.CallLine
	}
	return append(list, fmt.Sprintf("%s %s:%d", fn.Function, file, line))
}

func framesText(list []trace.Symbol) (text []string) {
	for i := range list {
		text = append(text, fmt.Sprintf("%s %s:%d", list[i].Function, list[i].File, list[i].Line))
	}
	return text
}

// TestFunctionsSayWhatFramesDoes holds every function of a file against what is said of each
// address, twice: the second time everything is read again.
func TestFunctionsSayWhatFramesDoes(t *testing.T) {
	for _, name := range []string{"small2", "small4", "small5", "split5"} {
		path := filepath.Join("testdata", name)
		r, other := openMapped(t, path), openMapped(t, path)
		m, err := r.CodeMap()
		if err != nil {
			t.Fatal(err)
		}
		said := map[uint64]bool{}
		for range 2 {
			clear(said)
			err := m.EachFunction(func(fn *symbol.FunctionCode) bool {
				for _, code := range fn.Ranges {
					for address := code.Start; address < code.End; address++ {
						want, err := other.Frames(nil, address)
						if got := chainAt(fn, address); err != nil || !slices.Equal(got, framesText(want)) {
							t.Fatalf("%s: %#x: %v:\n got %q\nwant %q", name, address, err, got, framesText(want))
						}
						if said[address] {
							t.Errorf("%s: %#x: two functions have it", name, address)
						}
						said[address] = true
					}
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(said) == 0 {
			t.Errorf("%s: no function has code", name)
		}
		for _, address := range textAddresses(t, path, 4000) {
			frames, _ := other.Frames(nil, address)
			isNamed := len(frames) > 0 && frames[len(frames)-1].Function != ""
			covers, _ := m.Covers(address)
			if isNamed != said[address] || covers != said[address] {
				t.Errorf("%s: %#x: %q, in a function: %v, covered: %v", name, address, framesText(frames), said[address], covers)
			}
			lines := m.Lines(nil, symbol.CodeRange{Start: address, End: address + 1})
			if len(frames) > 0 != (len(lines) > 0) || len(lines) > 0 && (lines[0].File != frames[0].File || lines[0].Line != frames[0].Line) {
				t.Errorf("%s: %#x: %q, lines %v", name, address, framesText(frames), lines)
			}
		}
		t.Logf("%s: %d addresses", name, len(said))
	}
}

// TestListingCanEnd: nothing is given after yield said so, and all is given again then.
func TestListingCanEnd(t *testing.T) {
	r := openMapped(t, filepath.Join("testdata", "small5"))
	m, err := r.CodeMap()
	if err != nil {
		t.Fatal(err)
	}
	count := func(most int) (n int) {
		if err := m.EachFunction(func(*symbol.FunctionCode) bool { n++; return n < most }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := count(1 << 20)
	if all < 2 || count(1) != 1 || count(1<<20) != all {
		t.Errorf("%d functions, expected 2 or more, and as many each time", all)
	}
}
