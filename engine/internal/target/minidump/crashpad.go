// SPDX-License-Identifier: Apache-2.0

package minidump

import "fmt"

// Crashpad is MinidumpCrashpadInfo.
type Crashpad struct {
	Version            uint32
	ReportID, ClientID [16]byte // as in the dump; UUID formats one
	Annotations        []Annotation
	AddressMask        uint64 // of pointers, without their authentication; 0: unknown
}

// Annotation is a named text, or bytes in a format of the program's own.
type Annotation struct {
	Name  string
	Type  uint16 // AnnotationText, or another; types from 0x8000 on are the program's own
	Value []byte // in the mapped file for other types
	Text  string // of AnnotationText
}

// AnnotationText is the type of annotations that are UTF-8.
const AnnotationText = 1

// ModuleAnnotations are MinidumpModuleCrashpadInfo.
type ModuleAnnotations struct {
	Version uint32
	List    []string
	Simple  []Annotation // texts
	Objects []Annotation
}

const (
	crashpadSize       = 52
	crashpadMask       = 56
	moduleLinkSize     = 12
	moduleCrashpadSize = 28
	simpleEntrySize    = 8
	annotationSize     = 12
	maxAnnotations     = 1 << 14
	maxAllAnnotations  = 1 << 18
)

// UUID formats an identifier, whose first three numbers are in the dump's byte order.
func (d *Dump) UUID(id [16]byte) string {
	r := record{id[:], d.Order}
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", r.u32(0), r.u16(4), r.u16(6), id[8:10], id[10:])
}

func (d *Dump) readCrashpad(s *Stream) {
	r, ok := d.fixed(s, crashpadSize)
	if !ok {
		return
	}
	c := &Crashpad{Version: r.u32(0), AddressMask: r.u64(crashpadMask)}
	copy(c.ReportID[:], r.b[4:20])
	copy(c.ClientID[:], r.b[20:36])
	c.Annotations = d.simple(s, r.location(36))
	d.Crashpad = c
	links := d.sub(s, r.location(44), moduleLinkSize, "list of modules")
	for i := range links.count {
		link := links.entry(i)
		index := uint64(link.u32(0))
		if index >= uint64(len(d.Modules)) {
			d.problem(s, links.where(i), "annotations of module %d, of which the dump has %d", index, len(d.Modules))
			continue
		}
		if m := &d.Modules[index]; m.Crashpad == nil {
			m.Crashpad = d.moduleAnnotations(s, link.location(4))
		}
	}
}

// sub reads a list with a count of 32 bits that a record of the stream refers to. All of
// them together are bounded, as many records may refer to the same list.
func (d *Dump) sub(s *Stream, l location, size int, what string) entries {
	if l.size == 0 {
		return entries{}
	}
	list := &Stream{Type: s.Type, Size: l.size, Offset: l.offset}
	r := d.part(s, 0, l, what, 0)
	most := min(maxAnnotations, maxAllAnnotations-d.annotations)
	e := d.list(list, r, 4, uint64(size), uint64(r.u32(0)), size, most)
	d.annotations += e.count
	return e
}

// simple reads a MinidumpSimpleStringDictionary.
func (d *Dump) simple(s *Stream, l location) []Annotation {
	e := d.sub(s, l, simpleEntrySize, "annotations")
	var list []Annotation
	for i := range e.count {
		r := e.entry(i)
		list = append(list, Annotation{
			Name: d.name(s, uint64(r.u32(0)), false, "the name of annotation", i),
			Type: AnnotationText,
			Text: d.text(s, uint64(r.u32(4)), false, "annotation", i),
		})
	}
	return list
}

func (d *Dump) moduleAnnotations(s *Stream, l location) *ModuleAnnotations {
	r := d.part(s, 0, l, "annotations of a module", 0)
	if len(r.b) < moduleCrashpadSize {
		d.problem(s, l.offset, "the annotations of a module have %d bytes, expected %d", len(r.b), moduleCrashpadSize)
		return nil
	}
	a := &ModuleAnnotations{Version: r.u32(0), Simple: d.simple(s, r.location(12))}
	texts := d.sub(s, r.location(4), 4, "list of annotations")
	for i := range texts.count {
		a.List = append(a.List, d.text(s, uint64(texts.entry(i).u32(0)), false, "annotation", i))
	}
	objects := d.sub(s, r.location(20), annotationSize, "annotation objects")
	for i := range objects.count {
		a.Objects = append(a.Objects, d.annotation(s, objects.entry(i), i))
	}
	return a
}

// annotation reads a MinidumpAnnotation. Its value is a length and bytes for every type.
func (d *Dump) annotation(s *Stream, r record, index int) Annotation {
	a := Annotation{Name: d.name(s, uint64(r.u32(0)), false, "the name of annotation", index), Type: r.u16(4)}
	offset := uint64(r.u32(8))
	if a.Type == AnnotationText {
		a.Text = d.text(s, offset, false, "annotation", index)
		return a
	}
	if offset == 0 {
		return a
	}
	header := d.part(s, 0, location{4, offset}, "annotation", index)
	a.Value = d.part(s, 0, location{uint64(header.u32(0)), offset + 4}, "annotation", index).b
	return a
}
