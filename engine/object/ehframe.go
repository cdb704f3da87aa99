// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// EHFrameHeader returns .eh_frame_hdr and its virtual address, by the section
// of that name, or else by PT_GNU_EH_FRAME. The bytes are read inside Guard.
func (o *Object) EHFrameHeader() (data []byte, address uint64, ok bool) {
	if data, address, ok = o.sectionData(".eh_frame_hdr"); ok {
		return data, address, true
	}
	if o.DebugOnly() {
		return nil, 0, false
	}
	for i := range o.programs {
		p := &o.programs[i]
		if p.Type != elf.PT_GNU_EH_FRAME || p.FileSize == 0 {
			continue
		}
		data, err := o.ProgramData(*p)
		return data, p.Address, err == nil
	}
	return nil, 0, false
}

// A FrameSection is an .eh_frame that the run-time system would use.
type FrameSection struct {
	Name    string
	Section *Section // nil where there are no section headers
	Address uint64   // virtual
	Data    []byte   // read inside Guard
	// Open: Data goes on behind the section, which ends at its terminator or at
	// bytes that are no entry: without section headers its size is not known.
	Open bool
	Err  error // why there is no Data
}

// EHFrames returns the live .eh_frame sections, which have that name and are loaded. The rest of
// the old one has another name behind a rewriter (.bolt.org.eh_frame). Of several the one that
// .eh_frame_hdr points to is the first; a relocatable object may have one in each section group.
// Without a section it is the bytes that .eh_frame_hdr points to, up to the end of the file's
// bytes of that segment.
func (o *Object) EHFrames() (list []FrameSection) {
	if o.DebugOnly() {
		return nil // the other file has their bytes
	}
	loaded := false
	sections, left := o.SectionsNamed(".eh_frame")
	for _, s := range sections {
		alloc := s.Flags&elf.SHF_ALLOC != 0
		if loaded && !alloc {
			continue
		}
		if alloc && !loaded {
			loaded, list = true, list[:0]
		}
		list = append(list, FrameSection{Name: s.Name, Section: s, Address: s.Address})
	}
	if left != nil {
		defer func() { list = append(list, FrameSection{Name: ".eh_frame", Err: left}) }()
	}
	if len(list) == 1 {
		list[0].read()
		return list
	}
	header, headerAddress, ok := o.EHFrameHeader()
	if !ok && len(list) == 0 {
		return nil
	}
	var address uint64
	err := errors.New("no .eh_frame_hdr")
	if ok {
		err = Guard(func() (err error) {
			address, err = o.ehFramePointer(header, headerAddress)
			return err
		})
	}
	if len(list) == 0 {
		if err != nil {
			return nil
		}
		data := o.fileFrom(address)
		if len(data) == 0 {
			return nil
		}
		return []FrameSection{{Name: ".eh_frame", Address: address, Data: data, Open: true}}
	}
	for i := range list {
		list[i].read()
		if err == nil && list[i].Address == address {
			list[0], list[i] = list[i], list[0]
		}
	}
	return list
}

func (f *FrameSection) read() { f.Data, f.Err = f.Section.Data() }

func (o *Object) sectionData(name string) (data []byte, address uint64, ok bool) {
	s := o.Section(name)
	if s == nil {
		return nil, 0, false
	}
	data, err := s.Data()
	return data, s.Address, err == nil && len(data) > 0
}

// ehFramePointer reads eh_frame_ptr out of .eh_frame_hdr at an address: a
// version (1), the encodings of the three fields, and the pointer (Linux
// Standard Base, 10.6.2).
func (o *Object) ehFramePointer(header []byte, address uint64) (uint64, error) {
	if len(header) < 4 {
		return 0, errors.New("header cut")
	}
	if header[0] != 1 {
		return 0, fmt.Errorf("version %d, expected 1", header[0])
	}
	encoding := header[1]
	var size uint8
	switch encoding & ehpe.FormatMask {
	case ehpe.AbsPtr:
		size = uint8(o.AddressSize())
	case ehpe.UData2, ehpe.SData2:
		size = 2
	case ehpe.UData4, ehpe.SData4:
		size = 4
	case ehpe.UData8, ehpe.SData8:
		size = 8
	default:
		return 0, fmt.Errorf("eh_frame_ptr has encoding %#x", encoding)
	}
	b, ok := slice(header, 4, uint64(size))
	if !ok {
		return 0, errors.New("header cut")
	}
	value, err := fields{b, o.header.order, o.header.wide}.signed(size)
	if err != nil {
		return 0, err
	}
	switch encoding & ehpe.FormatMask {
	case ehpe.UData2:
		value &= 0xffff
	case ehpe.UData4:
		value &= 0xffffffff
	case ehpe.AbsPtr:
		if size == 4 {
			value &= 0xffffffff
		}
	}
	switch {
	case encoding&ehpe.Indirect != 0:
		return 0, fmt.Errorf("eh_frame_ptr has encoding %#x", encoding)
	case encoding&ehpe.ApplicationMask == ehpe.Absolute:
	case encoding&ehpe.ApplicationMask == ehpe.PCRel:
		value += address + 4
	case encoding&ehpe.ApplicationMask == ehpe.DataRel:
		value += address
	default:
		return 0, fmt.Errorf("eh_frame_ptr has encoding %#x", encoding)
	}
	if !o.header.wide {
		value &= 0xffffffff
	}
	return value, nil
}
