// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// The formats of a module's identity, by the signature of its CodeView record.
const (
	PDB20    = "NB10" // a program database of Visual C++ 2 to 6
	PDB70    = "RSDS" // a program database of today, and old dumps of Linux and macOS
	ELFID    = "BpEL" // the build ID of an ELF file
	CV41     = "NB09" // CodeView within the file
	CV50     = "NB11" // likewise
	NoFormat = ""     // no record, or one of another format
)

// Identity identifies the build of a loaded file: a CodeView record.
type Identity struct {
	Format string
	// GUID has the bytes of a PDB70 record. In dumps of Linux Breakpad has the first 16
	// bytes of the build ID here, and in dumps of macOS the UUID of a Mach-O file; in both
	// the first three numbers are in the byte order of the dump.
	GUID      [16]byte
	Signature uint32 // of a PDB20 record: seconds since 1970
	Age       uint32
	File      string // the file with the symbols
	BuildID   []byte // of an ELFID record
	Raw       []byte // the record, in the mapped file

	number [11]uint64 // the numbers of GUID, as DebugID prints them
}

// signatures are the formats by signature, a number in the byte order of the dump.
var signatures = map[uint32]string{
	0x3031424e: PDB20, 0x53445352: PDB70, 0x4270454c: ELFID, 0x3930424e: CV41, 0x3131424e: CV50,
}

// identity reads the CodeView record of a module.
func (d *Dump) identity(s *Stream, l location, index int) Identity {
	r := d.part(s, 0, l, "the CodeView record of module", index)
	if len(r.b) > maxCodeView {
		d.problem(s, 0, "module %d: its CodeView record has %d bytes, %d are read", index, len(r.b), maxCodeView)
		r.b = r.b[:maxCodeView]
	}
	id := Identity{Format: signatures[r.u32(0)], Raw: r.b}
	least := 4
	switch id.Format {
	case PDB70:
		least = 24
	case PDB20:
		least = 16
	case NoFormat:
		if len(r.b) > 0 {
			d.problem(s, 0, "module %d: its CodeView record at %#x begins with % x, expected RSDS, NB10 or LEpB", index, l.offset, r.b[:min(4, len(r.b))])
		}
		return id
	}
	if len(r.b) < least {
		d.problem(s, 0, "module %d: its %s record at %#x has %d bytes, expected %d at least", index, id.Format, l.offset, len(r.b), least)
		return Identity{Raw: r.b}
	}
	d.fillIdentity(&id, r, textKey{offset: l.offset})
	return id
}

// fillIdentity reads the fields of a record that is long enough.
func (d *Dump) fillIdentity(id *Identity, r record, key textKey) {
	name := 0
	switch id.Format {
	case PDB70:
		copy(id.GUID[:], r.b[4:20])
		id.Age, name = r.u32(20), 24
		id.number = [11]uint64{uint64(r.u32(4)), uint64(r.u16(8)), uint64(r.u16(10))}
		for i := range 8 {
			id.number[3+i] = uint64(r.b[12+i])
		}
	case PDB20:
		id.Signature, id.Age, name = r.u32(8), r.u32(12), 16
	case ELFID:
		id.setBuildID(r)
	}
	if name == 0 {
		return
	}
	if t, ok := d.texts[key]; ok {
		id.File = t
		return
	}
	text := r.b[name:min(len(r.b), name+maxName)]
	if d.textSize += len(text); d.textSize <= maxAllText {
		id.File = narrow(text)
		d.texts[key] = id.File
	}
}

// maxBuildID bounds build IDs; linkers write 8 to 32 bytes.
const maxBuildID = 64

func (id *Identity) setBuildID(r record) {
	id.BuildID = append([]byte(nil), r.b[4:min(len(r.b), 4+maxBuildID)]...)
	// A debug ID consists of the first 16 bytes, filled up with zeros.
	var b [16]byte
	copy(b[:], id.BuildID)
	g := record{b[:], r.order}
	id.number = [11]uint64{uint64(g.u32(0)), uint64(g.u16(4)), uint64(g.u16(6))}
	for i := range 8 {
		id.number[3+i] = uint64(b[8+i])
	}
}

// DebugID returns the name of a build in symbol stores of Breakpad: the numbers of a
// GUID and the age, in hexadecimal. It is "" where nothing, or only zeros, identifies the
// build.
func (id *Identity) DebugID() string {
	switch id.Format {
	case PDB20:
		return fmt.Sprintf("%08X%x", id.Signature, id.Age)
	case PDB70, ELFID:
		if id.number == [11]uint64{} {
			return ""
		}
		n := id.number
		var b strings.Builder
		fmt.Fprintf(&b, "%08X%04X%04X", n[0], n[1], n[2])
		for _, v := range n[3:] {
			fmt.Fprintf(&b, "%02X", v)
		}
		fmt.Fprintf(&b, "%x", id.Age)
		return b.String()
	}
	return ""
}

// CodeID returns the name of the file itself in symbol stores: the build ID of an ELF
// file; the time and the size of a PE file, as on Microsoft's symbol servers; the UUID of
// a Mach-O file. It is "" where nothing is known.
func (d *Dump) CodeID(m *Module) string {
	switch d.os() {
	case Windows:
		if m.Timestamp == 0 && m.Size == 0 {
			return ""
		}
		return fmt.Sprintf("%08X%x", m.Timestamp, m.Size)
	case MacOS, IOS:
		if id := m.Identity.DebugID(); m.Identity.Format == PDB70 && id != "" {
			return id[:32]
		}
		return ""
	}
	return hex.EncodeToString(m.Identity.BuildID)
}
