// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The generators draw what compilers may write, in all its variety.

func drawGen(t *rapid.T) uint32 { return 8 * rapid.Uint32Range(0, 1<<20).Draw(t, "gen") }

func drawName(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[VAP][0-9]{1,3}`), rapid.StringN(1, 6, -1).Filter(func(s string) bool {
		return !slices.ContainsFunc([]rune(s), func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd })
	})).Draw(t, "name")
}

func drawLocation(t *rapid.T, storages ...Storage) Location {
	l := Location{Storage: rapid.SampledFrom(storages).Draw(t, "storage")}
	switch {
	case l.Storage == Memory:
		l.IsAbsolute = rapid.Bool().Draw(t, "absolute")
		l.Offset = rapid.Int32Range(-1<<30, 1<<30-1).Draw(t, "offset")
	case rapid.IntRange(0, 9).Draw(t, "allocated") == 0:
		l.Register, l.Subregister = NotAllocated, NotAllocated
	default:
		largest := uint16(15)
		if l.Storage == General {
			largest = 511
		}
		l.Register = rapid.Uint16Range(0, largest).Draw(t, "register")
		l.Subregister = rapid.Uint16Range(0, 63).Draw(t, "subregister")
	}
	return l
}

// drawIntervals draws a list of up to three, in vISA indexes or Gen offsets.
func drawIntervals(t *rapid.T, visa bool) []Interval {
	list := make([]Interval, rapid.IntRange(0, 3).Draw(t, "intervals"))
	for i := range list {
		var a, b uint32
		if visa {
			a, b = uint32(rapid.Uint16().Draw(t, "a")), uint32(rapid.Uint16().Draw(t, "b"))
		} else {
			a, b = drawGen(t), drawGen(t)
		}
		list[i] = Interval{
			Start: min(a, b), End: max(a, b), Virtual: rapid.SampledFrom([]Storage{Address, Flag, General}).Draw(t, "virtual"),
			Location: drawLocation(t, Address, Flag, General, Memory),
		}
	}
	return list
}

func drawMappings(t *rapid.T) []Mapping {
	list := make([]Mapping, rapid.IntRange(0, 4).Draw(t, "mappings"))
	for i := range list {
		list[i] = Mapping{rapid.Uint32().Draw(t, "visa"), drawGen(t)}
	}
	slices.SortStableFunc(list, func(a, b Mapping) int { return int(a.Gen) - int(b.Gen) })
	return list
}

func drawSaves(t *rapid.T) []Save {
	list := make([]Save, rapid.IntRange(0, 3).Draw(t, "saves"))
	var at uint32
	for i := range list {
		at += 8 + drawGen(t)
		list[i].GenOffset = at
		list[i].Registers = make([]SavedRegister, rapid.IntRange(min(1, max(0, 1-i)), 3).Draw(t, "registers"))
		for k := range list[i].Registers {
			list[i].Registers[k] = SavedRegister{
				Offset: rapid.Uint16Range(1, 512*64-64).Draw(t, "offset"), Bytes: rapid.Uint16Range(1, 64).Draw(t, "bytes"),
				Location: drawLocation(t, General, Memory),
			}
		}
	}
	return list
}

func drawStream(t *rapid.T, layout Layout) *Stream {
	s := &Stream{Layout: layout, Objects: make([]Object, rapid.IntRange(0, 3).Draw(t, "objects"))}
	for i := range s.Objects {
		o := &s.Objects[i]
		o.Name = drawName(t)
		o.RelocOffset = rapid.Uint32Range(0, 1<<28).Draw(t, "reloc")<<2 | uint32(i)
		o.OffsetMap, o.IndexMap = drawMappings(t), drawMappings(t)
		o.Variables = make([]Variable, rapid.IntRange(0, 3).Draw(t, "variables"))
		for k := range o.Variables {
			o.Variables[k] = Variable{drawName(t), drawIntervals(t, true)}
		}
		o.Subroutines = make([]Subroutine, rapid.IntRange(0, 2).Draw(t, "subroutines"))
		for k := range o.Subroutines {
			o.Subroutines[k] = Subroutine{drawName(t), rapid.Uint32Range(0, 1<<16).Draw(t, "start"), rapid.Uint32Min(1<<16).Draw(t, "end"), drawIntervals(t, true)}
		}
		f := &o.Frame
		f.Size = rapid.Uint16().Draw(t, "size")
		for _, list := range []*[]Interval{&f.BEFP, &f.CallerBEFP, &f.ReturnAddress} {
			if rapid.Bool().Draw(t, "valid") {
				*list = drawIntervals(t, false)
			}
		}
		f.CalleeSaves, f.CallerSaves = drawSaves(t), drawSaves(t)
		if layout == LayoutC {
			f.CE = &CE{}
			if rapid.Bool().Draw(t, "CE") {
				*f.CE = CE{rapid.Uint16Range(1, 1<<16-1).Draw(t, "CE offset"), rapid.Uint16().Draw(t, "CE IP")}
			}
		}
	}
	return s
}

func TestNamesOfLayoutsAndStorage(t *testing.T) {
	for got, want := range map[string]string{
		LayoutA.String(): "A", LayoutB.String(): "B", LayoutC.String(): "C", Layout(0).String(): "layout 0", Layout(4).String(): "layout 4",
		Address.String(): "address", Flag.String(): "flag", General.String(): "general", Memory.String(): "memory",
		Unknown.String(): "unknown", Storage(4).String(): "storage 4",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
