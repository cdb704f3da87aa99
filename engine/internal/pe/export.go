// SPDX-License-Identifier: Apache-2.0

package pe

// An Export is a symbol that a file offers to others ("PE Format", The .edata Section).
type Export struct {
	Name    string // "" where it has a number only
	Ordinal uint32
	Address uint64 // virtual; 0 of a forwarder
	// Forwarder names the symbol of another library that it stands for, as
	// "NTDLL.RtlAllocateHeap"; "" otherwise.
	Forwarder string
}

const (
	exportSize = 40
	// maxExports is the most that there can be: an ordinal has 16 bits.
	maxExports = 1 << 16
	// maxExportText bounds the text of names, of which any number may be the same bytes.
	maxExportText = 64 << 20
)

// Exports lists the exports of the file: names in the order of the file, then exports with a number
// only. Where the table breaks off it returns an error, and the exports before.
func (f *File) Exports() ([]Export, error) {
	rva, size := f.header.directory(directoryExport)
	if rva == 0 || size == 0 {
		return nil, nil
	}
	b, err := f.at(rva, exportSize, "export directory")
	if err != nil {
		return nil, err
	}
	base, functions, names := u32(b, 16), u32(b, 20), u32(b, 24)
	if functions > maxExports || names > maxExports {
		return nil, f.errorf(rva, "export directory: %d functions and %d names, expected at most %d", functions, names, maxExports)
	}
	addresses, err := f.at(u32(b, 28), 4*uint64(functions), "export address table")
	if err != nil {
		return nil, err
	}
	pointers, err := f.at(u32(b, 32), 4*uint64(names), "export name pointer table")
	if err != nil {
		return nil, err
	}
	numbers, err := f.at(u32(b, 36), 2*uint64(names), "export ordinal table")
	if err != nil {
		return nil, err
	}
	r := exportReader{file: f, start: rva, size: size, base: base, addresses: addresses, isNamed: make([]bool, functions)}
	return r.all(pointers, numbers)
}

// IsImportSlot reports whether a virtual address is in the table in which the loader writes
// where imported functions are ("PE Format", Import Address Table).
func (f *File) IsImportSlot(address uint64) bool {
	rva, size := f.header.directory(directoryIAT)
	return address-(f.base+uint64(rva)) < uint64(size)
}

// An exportReader reads the tables that the directory names.
type exportReader struct {
	file        *File
	start, size uint32 // of the directory; an address inside it is a forwarder's name
	base        uint32 // the first ordinal
	addresses   []byte
	isNamed     []bool
	list        []Export
	text        int
}

func (r *exportReader) all(pointers, numbers []byte) ([]Export, error) {
	for i := 0; 4*i < len(pointers); i++ {
		offset := u32(pointers, 4*i)
		name, err := r.file.text(offset, "name of an export")
		if err != nil {
			return r.list, err
		}
		n := int(u16(numbers, 2*i))
		if n >= len(r.isNamed) {
			return r.list, r.file.errorf(offset, "export %q has index %d, the table has %d", name, n, len(r.isNamed))
		}
		r.isNamed[n] = true
		if err := r.add(name, n); err != nil {
			return r.list, err
		}
	}
	for n, isNamed := range r.isNamed {
		if isNamed {
			continue
		}
		if err := r.add("", n); err != nil {
			return r.list, err
		}
	}
	return r.list, nil
}

// add adds the entry n of the address table.
func (r *exportReader) add(name string, n int) (err error) {
	rva := u32(r.addresses, 4*n)
	if rva == 0 {
		return nil // a gap between ordinals
	}
	e := Export{Name: name, Ordinal: r.base + uint32(n)}
	if rva >= r.start && rva-r.start < r.size {
		if e.Forwarder, err = r.file.text(rva, "forwarder"); err != nil {
			return err
		}
	} else {
		e.Address = r.file.address(rva)
	}
	if r.text += len(e.Name) + len(e.Forwarder); r.text > maxExportText {
		return r.file.errorf(r.start, "names of exports have more than %d bytes", maxExportText)
	}
	r.list = append(r.list, e)
	return nil
}
