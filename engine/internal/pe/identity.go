// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// An Identity tells one build of a file from all others.
type Identity struct {
	TimeDateStamp uint32 // of the file header; a hash where builds are reproducible
	SizeOfImage   uint32
	// HasCodeView: the file names its debug information, by the GUID, Age and PDB of its
	// CodeView record in the format PDB 7.0. MinGW's linker writes one for --build-id.
	HasCodeView bool
	GUID        [16]byte // as the file has it, the first three fields in little-endian order
	Age         uint32
	PDB         string // a path on the machine that built the file; may be ""
}

// CodeID returns the name of the file itself on symbol servers: time stamp and size of the image.
func (id *Identity) CodeID() string { return fmt.Sprintf("%08X%x", id.TimeDateStamp, id.SizeOfImage) }

// DebugID returns the name of the debug information on symbol servers, Breakpad's debug identifier:
// GUID and age. It is "" without a CodeView record.
func (id *Identity) DebugID() string {
	if !id.HasCodeView {
		return ""
	}
	g := id.GUID[:]
	return fmt.Sprintf("%08X%04X%04X%X%x", u32(g, 0), u16(g, 4), u16(g, 6), g[8:], id.Age)
}

const (
	debugEntrySize   = 28
	debugIsCodeView  = 2 // IMAGE_DEBUG_TYPE_CODEVIEW
	maxDebugEntries  = 256
	codeViewSize     = 24 // before the path
	maxCodeViewBytes = codeViewSize + maxText
)

// Identity reads the build identity: the headers, and the CodeView record that the debug
// directory has ("PE Format", Debug Directory). With an error it has the data of the headers.
func (f *File) Identity() (Identity, error) {
	id := Identity{TimeDateStamp: f.header.timeDateStamp, SizeOfImage: f.header.sizeOfImage}
	rva, size := f.header.directory(directoryDebug)
	if rva == 0 {
		return id, nil
	}
	count := min(size/debugEntrySize, maxDebugEntries)
	table, err := f.at(rva, uint64(count)*debugEntrySize, "debug directory")
	if err != nil {
		return id, err
	}
	for ; len(table) != 0; table = table[debugEntrySize:] {
		if u32(table, 12) != debugIsCodeView {
			continue
		}
		record, offset := f.debugData(table)
		if len(record) < codeViewSize || !bytes.HasPrefix(record, []byte("RSDS")) {
			return id, f.errorf(offset, "CodeView record of %d bytes begins with %q, expected at least %d and \"RSDS\"",
				u32(table, 16), prefix(record, 0, 4), codeViewSize)
		}
		id.HasCodeView = true
		copy(id.GUID[:], record[4:20])
		id.Age = binary.LittleEndian.Uint32(record[20:])
		path, _, _ := bytes.Cut(record[codeViewSize:], []byte{0})
		id.PDB = string(path)
		return id, nil
	}
	return id, nil
}

// debugData returns the bytes of an entry of the debug directory, by its RVA, or where it has none, as
// it need not be part of the image, by its offset in the file.
func (f *File) debugData(entry []byte) (data []byte, rva uint32) {
	size := min(uint64(u32(entry, 16)), maxCodeViewBytes)
	if rva = u32(entry, 20); rva != 0 {
		return f.source.upTo(rva, size), rva
	}
	if f.isImage {
		return nil, 0
	}
	return prefix(f.source.data, uint64(u32(entry, 24)), size), 0
}
