// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// comparePublic holds public PDB files against LLVM's tools: every function that llvm-pdbutil lists, and
// what llvm-symbolizer says of their code. An image that only has the sections and names the file is
// made for it: most public ones have none.
func (r *rig) comparePublic() error {
	files := r.publicFiles(".pdb")
	if len(files) == 0 {
		fmt.Println("no public PDB files are named")
		return nil
	}
	dir := filepath.Join(r.dir, "public")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(data, []byte("Microsoft C/C++ MSF 7.00")) || seen[string(data)] {
			continue
		}
		seen[string(data)] = true
		name, _ := filepath.Rel(r.public, path)
		if err := r.compareOnePublic(dir, name, path, data); err != nil {
			fmt.Printf("%s: left out: %v\n", name, err)
		}
	}
	return nil
}

func (r *rig) compareOnePublic(dir, name, path string, data []byte) error {
	out, err := exec.Command("llvm-pdbutil-22", "dump", "-summary", "-section-headers", "-symbols", path).Output()
	if err != nil {
		return fmt.Errorf("llvm-pdbutil cannot read it: %w", err)
	}
	header, err := exec.Command("llvm-pdbutil-22", "pdb2yaml", "-dbi-stream", path).Output()
	if err != nil {
		return fmt.Errorf("llvm-pdbutil cannot read it: %w", err)
	}
	d, err := readDump(string(out), string(header))
	if err != nil {
		return err
	}
	if err := r.compareFunctions(name, path, d); err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(path), "omap_") {
		return nil // llvm-symbolizer does not translate addresses
	}
	pdb, image := filepath.Join(dir, "a.pdb"), filepath.Join(dir, "a.exe")
	if err := os.WriteFile(pdb, data, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(image, d.image(), 0o600); err != nil {
		return err
	}
	_, code, err := codeOf(image)
	if err != nil {
		return err
	}
	most := uint64(30_000)
	if r.isQuick {
		most = 2000
	}
	return r.compareAnswers(name, image, image, addressesOf(code, most), 0)
}

// dump is a PDB file as llvm-pdbutil writes it.
type dump struct {
	guid      [16]byte
	age       uint32
	machine   uint16
	sections  []section
	functions map[uint64]function // by their RVAs
	publics   map[uint64][]string // decorated names by their RVAs; nil: they were not needed
}

type section struct {
	name          string
	address, size uint64
	flags         uint64
}

// function is a function, with all names of those that were folded into one.
type function struct {
	names []string
	size  uint64
}

var (
	guidLine    = regexp.MustCompile(`GUID: \{([0-9A-F-]+)\}`)
	ageLine     = regexp.MustCompile(`DbiStream:\s*\n(?:.*\n)*?\s*Age: +(\d+)`)
	machineLine = regexp.MustCompile(`MachineType: +(\w+)`)
	sectionLine = regexp.MustCompile(`SECTION HEADER #\d+\n +(\S*) name\n +([0-9A-F]+) virtual size\n +([0-9A-F]+) virtual address\n(?:.*\n){6} +([0-9A-F]+) flags`)
	procLine    = regexp.MustCompile("S_[GL]PROC32(?:_ID)? \\[size = \\d+\\] `(.*)`\n.*addr = (\\d+):(\\d+), code size = (\\d+)")
)

// machines are the machines of images by llvm-pdbutil's names for them.
var machines = map[string]uint16{"Amd64": 0x8664, "x86": 0x14c, "Arm64": 0xaa64, "Unknown": 0x8664}

// readDump reads what llvm-pdbutil says of a file, and of the header of its debug information.
func readDump(text, header string) (*dump, error) {
	d := &dump{functions: map[uint64]function{}}
	id, age := guidLine.FindStringSubmatch(text), ageLine.FindStringSubmatch(header)
	if id == nil || age == nil {
		return nil, fmt.Errorf("llvm-pdbutil says no GUID and age")
	}
	bytes, err := hex.DecodeString(strings.ReplaceAll(id[1], "-", ""))
	if err != nil || len(bytes) != 16 {
		return nil, fmt.Errorf("a GUID %q", id[1])
	}
	copy(d.guid[:], bytes)
	slices.Reverse(d.guid[:4])
	slices.Reverse(d.guid[4:6])
	slices.Reverse(d.guid[6:8])
	n, _ := strconv.ParseUint(age[1], 10, 32)
	d.age = uint32(n) //nolint:gosec // of 32 bits
	machine := machineLine.FindStringSubmatch(header)
	if machine == nil || machines[machine[1]] == 0 {
		return nil, fmt.Errorf("a machine that is not known: %q", machine)
	}
	d.machine = machines[machine[1]]
	for _, m := range sectionLine.FindAllStringSubmatch(text, -1) {
		s := section{name: m[1]}
		s.size, _ = strconv.ParseUint(m[2], 16, 32)
		s.address, _ = strconv.ParseUint(m[3], 16, 32)
		s.flags, _ = strconv.ParseUint(m[4], 16, 32)
		d.sections = append(d.sections, s)
	}
	for _, m := range procLine.FindAllStringSubmatch(text, -1) {
		segment, _ := strconv.Atoi(m[2])
		offset, _ := strconv.ParseUint(m[3], 10, 64)
		size, _ := strconv.ParseUint(m[4], 10, 64)
		if segment >= 1 && segment <= len(d.sections) && size > 0 {
			rva := d.sections[segment-1].address + offset
			f := d.functions[rva]
			d.functions[rva] = function{append(f.names, m[1]), max(f.size, size)}
		}
	}
	return d, nil
}

// image makes an image that has the sections, without their contents, and names the file a.pdb as its
// own.
func (d *dump) image() []byte {
	const header, alignment = 0x1000, 0x1000
	end := uint64(header)
	for _, s := range d.sections {
		end = max(end, s.address+s.size)
	}
	end = (end + alignment - 1) / alignment * alignment
	put := func(b []byte, values ...any) []byte {
		var w bytes.Buffer
		for _, v := range values {
			_ = binary.Write(&w, binary.LittleEndian, v) // into memory
		}
		return append(b, w.Bytes()...)
	}
	record := put(nil, []byte("RSDS"), d.guid, d.age, []byte("a.pdb\x00"))
	directory := put(nil, uint32(0), uint32(0), uint32(0), uint32(2), uint32(len(record)), uint32(end+28), uint32(header+28)) //nolint:gosec // of 32 bits
	is32 := d.machine == 0x14c
	optional, size, magic := []any{uint64(0x140000000)}, uint16(240), uint16(0x20b)
	reserve := []any{uint64(1 << 20), uint64(1 << 12), uint64(1 << 20), uint64(1 << 12)}
	if is32 {
		optional, size, magic = []any{uint32(0), uint32(0x400000)}, 224, 0x10b
		reserve = []any{uint32(1 << 20), uint32(1 << 12), uint32(1 << 20), uint32(1 << 12)}
	}
	b := make([]byte, 0x40)
	copy(b, "MZ")
	b[0x3c] = 0x40
	b = put(b, []byte("PE\x00\x00"), d.machine, uint16(len(d.sections)+1), uint32(0), uint32(0), uint32(0), size, uint16(0x22)) //nolint:gosec // a few
	b = put(b, magic, uint16(0), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0))
	b = put(b, optional...)
	b = put(b, uint32(alignment), uint32(0x200), uint16(6), uint16(0), uint16(0), uint16(0), uint16(6), uint16(0), uint32(0), uint32(end+alignment), uint32(header), uint32(0), uint16(3), uint16(0)) //nolint:gosec // of 32 bits
	b = put(put(b, reserve...), uint32(0), uint32(16))
	for i := range 16 {
		if i == 6 { // debug data
			b = put(b, uint32(end), uint32(28)) //nolint:gosec // of 32 bits
		} else {
			b = put(b, uint64(0))
		}
	}
	for _, s := range append(slices.Clone(d.sections), section{".debugid", end, uint64(28 + len(record)), 0x40000040}) {
		var name [8]byte
		copy(name[:], s.name)
		raw, place := uint32(0), uint32(0)
		if s.address == end {
			raw, place = 0x200, header
		}
		b = put(b, name, uint32(s.size), uint32(s.address), raw, place, uint32(0), uint32(0), uint32(0), uint32(s.flags)) //nolint:gosec // of 32 bits
	}
	b = append(b, make([]byte, header-len(b))...)
	b = append(append(b, directory...), record...)
	return append(b, make([]byte, header+0x200-len(b))...)
}

// funcLine is a record of a function in a symbol file.
var funcLine = regexp.MustCompile(`(?m)^FUNC (?:m )?([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ (.*)$`)

// compareFunctions holds the functions of a symbol file that unwindd writes against what
// llvm-pdbutil lists: their addresses, sizes and names.
func (r *rig) compareFunctions(name, path string, d *dump) error {
	var said bytes.Buffer
	cmd := exec.Command(r.unwindd, "symbols", path)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		r.fail("%s: unwindd symbols: %v: %s", name, err, said.String())
		return nil
	}
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "there are no STACK CFI records") {
			r.fail("%s: a problem: %s", name, line)
		}
	}
	ours := map[uint64]function{}
	for _, m := range funcLine.FindAllStringSubmatch(string(out), -1) {
		rva, _ := strconv.ParseUint(m[1], 16, 64)
		size, _ := strconv.ParseUint(m[2], 16, 64)
		ours[rva] = function{[]string{m[3]}, size}
	}
	c := newCount(r.details)
	isMoved := strings.HasPrefix(filepath.Base(path), "omap_")
	addresses := make([]uint64, 0, len(d.functions))
	for rva := range d.functions {
		addresses = append(addresses, rva)
	}
	slices.SortFunc(addresses, cmp.Compare[uint64])
	for _, rva := range addresses {
		theirs := d.functions[rva]
		own, has := ours[rva]
		switch {
		case isMoved:
			c.other["moved by the linker behind the compiler"]++
		case !has:
			c.differ("? missing function", "%#x %s", rva, theirs.names)
		case own.size != theirs.size:
			c.differ("? another size", "%#x %s: %d, llvm-pdbutil %d", rva, theirs.names, own.size, theirs.size)
		case slices.ContainsFunc(theirs.names, func(name string) bool { return bare(name) == bare(own.names[0]) }):
			c.equal++
		case r.isUndecorated(path, d, rva, own.names[0]):
			c.other["named by their public symbol as llvm-undname reads it"]++
		default:
			c.differ("? another name of a function", "%#x %q, llvm-pdbutil %q", rva, own.names, theirs.names)
		}
	}
	if n := c.print(name + ": functions"); n > 0 {
		r.fail("%s: %d functions", name, n)
	}
	return nil
}

var publicLine = regexp.MustCompile("S_PUB32 \\[size = \\d+\\] `(.*)`\n.*addr = (\\d+):(\\d+)")

// isUndecorated reports whether llvm-undname reads the name of a public symbol at an address so.
func (r *rig) isUndecorated(path string, d *dump, rva uint64, name string) bool {
	if d.publics == nil {
		d.publics = map[uint64][]string{}
		out, err := exec.Command("llvm-pdbutil-22", "dump", "-publics", path).Output()
		if err != nil {
			return false
		}
		for _, m := range publicLine.FindAllStringSubmatch(string(out), -1) {
			segment, _ := strconv.Atoi(m[2])
			offset, _ := strconv.ParseUint(m[3], 10, 64)
			if segment >= 1 && segment <= len(d.sections) {
				at := d.sections[segment-1].address + offset
				d.publics[at] = append(d.publics[at], m[1])
			}
		}
	}
	for _, public := range d.publics[rva] {
		if public == name || strings.TrimPrefix(public, "_") == name || strings.HasPrefix(public, "_ZN") {
			return true // Rust's are read by their own rules
		}
		cmd := exec.Command("llvm-undname-22", "--no-access-specifier", "--no-calling-convention", "--no-member-type", "--no-return-type", public)
		if out, err := cmd.Output(); err == nil && strings.Contains(string(out), "\n"+name+"\n") {
			return true
		}
	}
	return false
}

// hashOfNamespace is how MSVC names a namespace without a name.
var hashOfNamespace = regexp.MustCompile(`\?A0x[0-9a-f]+`)

// bare returns a function's name without what one of the two leaves out: parameters, spaces.
func bare(name string) string {
	name = strings.NewReplacer("class ", "", "struct ", "", "enum ", "", "dtor'", "destructor'", " ", "").Replace(hashOfNamespace.ReplaceAllString(name, "`anonymousnamespace'"))
	depth := 0
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '<':
			depth++
		case name[i] == '>':
			depth--
		case name[i] == '(' && depth == 0 && i > 0 && !strings.HasSuffix(name[:i], "operator"):
			return name[:i]
		}
	}
	return name
}
