// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// VISA is the output of `dump visa`: a vISA debug stream.
type VISA struct {
	Stream *stream.Stream
	Color  bool
}

// OpenVISA opens a vISA debug stream. The caller closes the file.
func OpenVISA(path string) (*VISA, io.Closer, error) {
	m, err := object.Map(path)
	if err != nil {
		return nil, nil, err
	}
	var s *stream.Stream
	err = object.Guard(func() error {
		s, err = stream.Decode(m.Data())
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s: %w%s", path, err, insteadOfStream(m))
		_ = m.Close()
		return nil, nil, err
	}
	return &VISA{Stream: s}, m, nil
}

// insteadOfStream describes another file of the same compiler, which users pass by mistake:
// such files do not have the stream.
func insteadOfStream(m *object.Mapping) string {
	for magic, kind := range map[string]string{"\x7fELF": "an ELF file", "CTNI": "a container of ELF files"} {
		var is bool
		if err := object.Guard(func() error { is = bytes.HasPrefix(m.Data(), []byte(magic)); return nil }); err == nil && is {
			return ": this is " + kind + "; the compiler writes the stream to a file of its own, KERNEL.dbg"
		}
	}
	return ""
}

// jsonVISA is a stream, with the stream's own numbers. Pointers are null where the stream has
// no such part.
type jsonVISA struct {
	Layout   string           `json:"layout"`
	Objects  []jsonVISAObject `json:"objects"`
	Problems []string         `json:"problems"`
}

type jsonVISAObject struct {
	Name        string           `json:"name"`
	RelocOffset uint32           `json:"reloc_offset"`
	OffsetMap   [][2]uint32      `json:"offset_map"` // vISA, Gen
	IndexMap    [][2]uint32      `json:"index_map"`
	Variables   []jsonVariable   `json:"variables"`
	Subroutines []jsonSubroutine `json:"subroutines"`
	Frame       jsonVISAFrame    `json:"frame"`
}

type jsonVariable struct {
	Name      string         `json:"name"`
	Intervals []jsonInterval `json:"intervals"`
}

type jsonSubroutine struct {
	Name        string         `json:"name"`
	Start       uint32         `json:"start"`
	End         uint32         `json:"end"`
	ReturnValue []jsonInterval `json:"return_value"`
}

type jsonVISAFrame struct {
	Size          uint16         `json:"size"`
	CEOffset      *uint16        `json:"ce_offset"`
	CEStoreIP     *uint16        `json:"ce_store_ip"`
	BEFP          []jsonInterval `json:"be_fp"`
	CallerBEFP    []jsonInterval `json:"caller_be_fp"`
	ReturnAddress []jsonInterval `json:"return_address"`
	CalleeSaves   []jsonSave     `json:"callee_saves"`
	CallerSaves   []jsonSave     `json:"caller_saves"`
}

type jsonInterval struct {
	Start    uint32 `json:"start"`
	End      uint32 `json:"end"`
	Virtual  string `json:"virtual"`
	Physical string `json:"physical"`
	jsonLocation
}

type jsonSave struct {
	GenOffset uint32           `json:"gen_offset"`
	Entries   []jsonSavedEntry `json:"entries"`
}

type jsonSavedEntry struct {
	RegisterOffset uint16 `json:"register_offset"`
	Bytes          uint16 `json:"bytes"`
	Physical       string `json:"physical"`
	jsonLocation
}

// jsonLocation has the members of a register or of memory.
type jsonLocation struct {
	Register    *uint16 `json:"register"`
	Subregister *uint16 `json:"subregister"`
	Base        *string `json:"base"`
	Offset      *int32  `json:"offset"`
}

// WriteJSON writes the stream as one JSON value, uncorrected.
func (v *VISA) WriteJSON(w io.Writer) error {
	_, corrections := v.Stream.Corrected()
	doc := jsonVISA{
		Layout: v.Stream.Layout.String(), Objects: make([]jsonVISAObject, len(v.Stream.Objects)),
		Problems: append(append([]string{}, v.Stream.Problems...), corrections...),
	}
	for i := range doc.Objects {
		o := &v.Stream.Objects[i]
		f := &o.Frame
		j := &doc.Objects[i]
		*j = jsonVISAObject{
			Name: o.Name, RelocOffset: o.RelocOffset, OffsetMap: mappingsOf(o.OffsetMap), IndexMap: mappingsOf(o.IndexMap),
			Variables: make([]jsonVariable, len(o.Variables)), Subroutines: make([]jsonSubroutine, len(o.Subroutines)),
			Frame: jsonVISAFrame{
				Size: f.Size, BEFP: intervalsOf(f.BEFP), CallerBEFP: intervalsOf(f.CallerBEFP), ReturnAddress: intervalsOf(f.ReturnAddress),
				CalleeSaves: savesOf(f.CalleeSaves), CallerSaves: savesOf(f.CallerSaves),
			},
		}
		if f.CE != nil {
			j.Frame.CEOffset, j.Frame.CEStoreIP = &f.CE.Offset, &f.CE.StoreIP
		}
		for k, x := range o.Variables {
			j.Variables[k] = jsonVariable{x.Name, intervalsOf(x.Intervals)}
		}
		for k, x := range o.Subroutines {
			j.Subroutines[k] = jsonSubroutine{x.Name, x.Start, x.End, intervalsOf(x.ReturnValue)}
		}
	}
	return WriteJSON(w, doc)
}

func mappingsOf(list []stream.Mapping) [][2]uint32 {
	out := make([][2]uint32, len(list))
	for i, m := range list {
		out[i] = [2]uint32{m.VISA, m.Gen}
	}
	return out
}

// intervalsOf keeps nil, which is no list.
func intervalsOf(list []stream.Interval) []jsonInterval {
	if list == nil {
		return nil
	}
	out := make([]jsonInterval, len(list))
	for i := range list {
		x := &list[i]
		out[i] = jsonInterval{x.Start, x.End, x.Virtual.String(), x.Location.Storage.String(), locationOf(&x.Location)}
	}
	return out
}

func savesOf(list []stream.Save) []jsonSave {
	out := make([]jsonSave, len(list))
	for i, s := range list {
		out[i] = jsonSave{s.GenOffset, make([]jsonSavedEntry, len(s.Registers))}
		for k := range s.Registers {
			g := &s.Registers[k]
			out[i].Entries[k] = jsonSavedEntry{g.Offset, g.Bytes, g.Location.Storage.String(), locationOf(&g.Location)}
		}
	}
	return out
}

// The bases of a memory offset.
var beFP, absolute = "be_fp", "absolute"

func locationOf(l *stream.Location) (j jsonLocation) {
	switch {
	case l.Storage != stream.Memory:
		j.Register, j.Subregister = &l.Register, &l.Subregister
	case l.IsAbsolute:
		j.Base, j.Offset = &absolute, &l.Offset
	default:
		j.Base, j.Offset = &beFP, &l.Offset
	}
	return j
}

// WriteText writes the stream as text. Where a save is corrected, the stream's own comes
// first.
func (v *VISA) WriteText(w io.Writer) error {
	frames, _ := v.Stream.Corrected()
	t := visaText{NewPrinter(w), newPaint(v.Color)}
	t.line("vISA debug stream, layout %s", v.Stream.Layout)
	for _, p := range v.Stream.Problems {
		t.line("%s %s", t.warn("problem:"), p)
	}
	for i := range v.Stream.Objects {
		t.printf("\n")
		t.object(&v.Stream.Objects[i], &frames[i])
		if err := t.check(); err != nil {
			return err
		}
	}
	return t.Flush()
}

// visaText writes objects of a stream as text.
type visaText struct {
	*Printer
	paint
}

func (t visaText) line(format layout, args ...any) { t.printf(format+"\n", args...) }

func (t visaText) object(o *stream.Object, corrected *stream.Frame) {
	if o.RelocOffset == 0 {
		t.line("kernel %s", t.header(printable(o.Name)))
	} else {
		t.line("function %s at 0x%x", t.header(printable(o.Name)), o.RelocOffset)
	}
	t.mappings("vISA offset", o.OffsetMap)
	t.mappings("vISA index", o.IndexMap)
	if len(o.Variables) > 0 {
		t.line("  variables, by vISA index")
	}
	for i := range o.Variables {
		t.intervals(8, printable(o.Variables[i].Name), "%d-%d", o.Variables[i].Intervals)
	}
	for i := range o.Subroutines {
		s := &o.Subroutines[i]
		t.line("  subroutine %s, vISA index %d to %d", t.function(printable(s.Name)), s.Start, s.End)
		t.intervals(14, "return address", "%d-%d", s.ReturnValue)
	}
	f := &o.Frame
	t.line("  frame of %d bytes, by Gen offset", f.Size)
	t.intervals(14, "BE_FP", "0x%x-0x%x", f.BEFP)
	t.intervals(14, "caller's BE_FP", "0x%x-0x%x", f.CallerBEFP)
	t.intervals(14, "return address", "0x%x-0x%x", f.ReturnAddress)
	if f.CE != nil && *f.CE != (stream.CE{}) {
		t.line("    channel mask    %-16s  %-7s  be_fp+%d", fmt.Sprintf("from 0x%x", f.CE.StoreIP), "", f.CE.Offset)
	}
	t.saves("callee saves", f.CalleeSaves, corrected.CalleeSaves)
	t.saves("caller saves", f.CallerSaves, corrected.CallerSaves)
}

func (t visaText) mappings(name string, list []stream.Mapping) {
	if len(list) > 0 {
		t.line("  %s  Gen offset", name)
	}
	for _, m := range list {
		t.line("  %*d  0x%x", len(name), m.VISA, m.Gen)
	}
}

// intervals writes the locations of a thing, nothing where there is no such thing.
func (t visaText) intervals(width int, name, format string, list []stream.Interval) {
	if list != nil && len(list) == 0 {
		t.line("    %-*s  nowhere", width, name)
	}
	for i := range list {
		x := &list[i]
		t.line("    %-*s  %-16s  %-7s  %s", width, name, fmt.Sprintf(format, x.Start, x.End), x.Virtual, visaLocation(&x.Location))
		name = ""
	}
}

// saves writes the saved registers, by the offset from which they are saved. The lists
// written and corrected differ only in their locations.
func (t visaText) saves(name string, written, corrected []stream.Save) {
	for i := range written {
		line := fmt.Sprintf("%s from 0x%x", name, written[i].GenOffset)
		if len(written[i].Registers) == 0 {
			t.line("    %s: none", line)
			continue
		}
		t.line("    %s", line)
		for k := range written[i].Registers {
			g, right := &written[i].Registers[k], &corrected[i].Registers[k]
			correction := painted{}
			if g.Location != right.Location {
				correction = t.warn(", corrected: " + visaLocation(&right.Location))
			}
			t.line("      %-8s  %3d bytes  %s%s", grfBytes(g), g.Bytes, visaLocation(&g.Location), correction)
		}
	}
}

// grfBytes names the saved register. A save is of a whole register, or it is named by its
// bytes.
func grfBytes(g *stream.SavedRegister) string {
	if (g.Bytes == 32 || g.Bytes == 64) && g.Offset%g.Bytes == 0 {
		return fmt.Sprintf("r%d", g.Offset/g.Bytes)
	}
	return fmt.Sprintf("GRF+%d", g.Offset)
}

// visaLocation is a location as text: r125.12, f0.1, be_fp+64, absolute+64.
func visaLocation(l *stream.Location) string {
	names := map[stream.Storage]string{stream.Address: "a", stream.Flag: "f", stream.General: "r"}
	switch {
	case l.Storage == stream.Memory && l.IsAbsolute:
		return fmt.Sprintf("absolute%+d", l.Offset)
	case l.Storage == stream.Memory:
		return fmt.Sprintf("be_fp%+d", l.Offset)
	case l.Storage == stream.Unknown:
		return "unknown"
	case l.Register == stream.NotAllocated:
		return "no register"
	}
	return fmt.Sprintf("%s%d.%d", names[l.Storage], l.Register, l.Subregister)
}
