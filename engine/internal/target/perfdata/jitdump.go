// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
)

// ErrNotJITDump is the error for a file that is no jitdump.
var ErrNotJITDump = errors.New("not a jitdump file")

// JITDump is a runtime's description of its JIT code: jit-PID.dump (Linux,
// tools/perf/Documentation/jitdump-specification.txt, version 1 of the file). Its byte
// slices point into the mapped file: read them inside object.Guard. It may be used
// concurrently, except for Close.
type JITDump struct {
	Machine uint16 // ELF machine
	PID     int
	Created uint64 // time of the runtime's clock
	// HasArchTimestamps is true where times are of a clock of the processor, not of one
	// that perf records with.
	HasArchTimestamps bool
	// Functions are in the order of the file. A function that was moved is there once
	// for each address.
	Functions []JITFunction

	mapping  *object.Mapping
	order    endian
	starts   []int          // indexes of Functions, by address, then time
	longest  []uint64       // the highest end of starts up to each
	latest   map[uint64]int // by code index
	isClosed bool
	problems sentences
}

// JITFunction is a function that a runtime generated, valid from Time on until
// another one is at its address. It ends where its code in the file does.
type JITFunction struct {
	Time    uint64
	PID     int
	TID     int
	Address uint64 // of the code when it runs
	Size    uint64
	Index   uint64 // the runtime's number
	Name    string
	Code    []byte // nil where the file has none; shorter than Size where the file is truncated
	// Lines are the positions of its addresses, as the file has them.
	Lines []JITLine
	// EHFrameHdr and EHFrame are its unwind information. Mapped is the number of bytes
	// of both that were mapped behind the code.
	EHFrameHdr, EHFrame []byte
	Mapped              uint64
}

// JITLine is the source line of the code from Address on.
type JITLine struct {
	Address uint64
	Line    uint32
	Column  uint32 // the file calls it discriminator
	File    string
}

const (
	jitMagic  = uint32(0x4A695444)
	jitHeader = 40

	jitCodeLoad      = 0
	jitCodeMove      = 1
	jitCodeDebugInfo = 2
	jitCodeClose     = 3
	jitCodeUnwinding = 4

	maxJITFunctions = 1 << 20
	maxJITLines     = 1 << 22
	// maxJITOverlap bounds the functions that are searched for an address.
	maxJITOverlap = 1 << 12
)

// OpenJITDump maps a file and reads its records. The error for a file that is no
// jitdump wraps ErrNotJITDump. A truncated file is read up to its end, and Problems
// says where that is.
func OpenJITDump(path string) (*JITDump, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, ErrNotJITDump)
	}
	if err != nil {
		return nil, err
	}
	j := &JITDump{mapping: m}
	if err := object.Guard(func() error { return j.read(m.Data()) }); err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// Close unmaps the file.
func (j *JITDump) Close() error { return j.mapping.Close() }

// Path is the path of the file.
func (j *JITDump) Path() string { return j.mapping.Path() }

// Problems returns the parts of the file that could not be read, each as a sentence.
func (j *JITDump) Problems() []string {
	path := "jitdump"
	if j.mapping != nil {
		path = j.mapping.Path()
	}
	return j.problems.all(path)
}

// Find returns the newest function that covered an address at a time, and the range around the
// address that no newer function covered by then. It is nil where there is none, or where so
// many overlap that it is not found in reasonable time.
func (j *JITDump) Find(time, address uint64) (best *JITFunction, start, end uint64) {
	next := sort.Search(len(j.starts), func(i int) bool { return j.Functions[j.starts[i]].Address > address })
	newest := -1
	for i := next - 1; i >= 0 && j.longest[i] > address; i-- {
		if next-i > maxJITOverlap {
			return nil, 0, 0
		}
		if f := &j.Functions[j.starts[i]]; address-f.Address < f.Size && f.Time <= time && (newest < 0 || j.isNewer(j.starts[i], newest)) {
			newest = j.starts[i]
		}
	}
	if newest < 0 {
		return nil, 0, 0
	}
	best = &j.Functions[newest]
	start, end = best.Address, best.Address+best.Size
	hides := func(i int) bool { return j.Functions[i].Time <= time && j.isNewer(i, newest) }
	for i := next - 1; i >= 0 && j.longest[i] > start; i-- {
		if next-i > maxJITOverlap {
			return best, address, address + 1
		}
		if f := &j.Functions[j.starts[i]]; hides(j.starts[i]) {
			start = max(start, f.Address+f.Size)
		}
	}
	for i := next; i < len(j.starts) && j.Functions[j.starts[i]].Address < end; i++ {
		if f := &j.Functions[j.starts[i]]; hides(j.starts[i]) || i-next > maxJITOverlap {
			end = f.Address
		}
	}
	return best, start, end
}

// isNewer reports whether function a was generated after function b (indexes): with equal times,
// whether it is later in the file.
func (j *JITDump) isNewer(a, b int) bool {
	return cmp.Or(cmp.Compare(j.Functions[a].Time, j.Functions[b].Time), cmp.Compare(a, b)) > 0
}

func (j *JITDump) read(data []byte) error {
	if len(data) < jitHeader {
		return fmt.Errorf("%w: %d bytes, expected %d at least", ErrNotJITDump, len(data), jitHeader)
	}
	switch jitMagic {
	case endian(false).u32(data):
	case endian(true).u32(data):
		j.order = true
	default:
		return fmt.Errorf("%w: it begins with % x, expected %#x", ErrNotJITDump, data[:4], jitMagic)
	}
	d := fields{b: data[4:jitHeader], order: j.order}
	version, size := d.u32(), uint64(d.u32())
	if version != 1 {
		return fmt.Errorf("%w of version 1: it has version %d", ErrNotJITDump, version)
	}
	if size < jitHeader || size > uint64(len(data)) {
		return fmt.Errorf("%w: offset 8: a header of %d bytes, expected %d to %d", ErrNotJITDump, size, jitHeader, len(data))
	}
	j.Machine = uint16(d.u32())
	d.u32() // padding
	j.PID = int(int32(d.u32()))
	j.Created = d.u64()
	j.HasArchTimestamps = d.u64()&1 != 0
	j.latest = map[uint64]int{}
	j.records(data, size)
	j.index()
	return nil
}

// records reads the records. Lines and unwind information come before their function.
func (j *JITDump) records(data []byte, offset uint64) {
	p := jitParser{dump: j, files: map[string]string{}}
	for offset < uint64(len(data)) && !j.isClosed {
		rest := data[offset:]
		if len(rest) < 16 {
			j.problems.add("offset %#x: the file ends in the header of a record", offset)
			return
		}
		id, size, time := j.order.u32(rest), uint64(j.order.u32(rest[4:])), j.order.u64(rest[8:])
		if size < 16 {
			j.problems.add("offset %#x: a record of %d bytes, expected 16 at least: what comes after it cannot be read", offset, size)
			return
		}
		if size > uint64(len(rest)) {
			j.problems.add("offset %#x: the file ends %d bytes into a record of %d bytes", offset, len(rest), size)
			if id != jitCodeLoad {
				return
			}
			// Runtimes write through buffers: a function has a name though its code is truncated.
			p.missing = size - uint64(len(rest))
			_ = p.record(id, time, rest[16:])
			return
		}
		if err := p.record(id, time, rest[16:size]); err != nil {
			j.problems.add("offset %#x: %v", offset, err)
		}
		offset += size
	}
}

// index sorts the functions by address.
func (j *JITDump) index() {
	for i, f := range j.Functions {
		if f.Size > 0 {
			j.starts = append(j.starts, i)
		}
	}
	slices.SortStableFunc(j.starts, func(a, b int) int {
		x, y := &j.Functions[a], &j.Functions[b]
		return cmp.Or(cmp.Compare(x.Address, y.Address), cmp.Compare(x.Time, y.Time))
	})
	var longest uint64
	for _, i := range j.starts {
		longest = max(longest, j.Functions[i].Address+j.Functions[i].Size)
		j.longest = append(j.longest, longest)
	}
}

// jitParser has the lines and the unwind information of the next function.
type jitParser struct {
	dump   *JITDump
	files  map[string]string // each name once
	lines  map[uint64][]JITLine
	total  int
	unwind JITFunction // its unwind information
	// missing is the number of bytes of its record that are not in the file.
	missing uint64
}

func (p *jitParser) record(id uint32, time uint64, body []byte) error {
	d := fields{b: body, order: p.dump.order}
	switch id {
	case jitCodeLoad:
		return p.load(&d, time)
	case jitCodeMove:
		return p.move(&d, time)
	case jitCodeDebugInfo:
		return p.debugInfo(&d)
	case jitCodeClose:
		p.dump.isClosed = true
	case jitCodeUnwinding:
		size, header, mapped := d.u64(), d.u64(), d.u64()
		table := d.bytes(size)
		if d.isShort || header > size {
			return fmt.Errorf("%d bytes of unwind information with a header of %d, in a record of %d", size, header, 16+len(body))
		}
		p.unwind = JITFunction{EHFrameHdr: table[:header:header], EHFrame: table[header:], Mapped: mapped}
	}
	return nil
}

func (p *jitParser) add(f JITFunction) error {
	if f.Address+f.Size < f.Address {
		return fmt.Errorf("%d bytes of code from %#x on are beyond the last address", f.Size, f.Address)
	}
	if len(p.dump.Functions) >= maxJITFunctions {
		return fmt.Errorf("more than %d functions: further ones are left out", maxJITFunctions)
	}
	p.dump.latest[f.Index] = len(p.dump.Functions)
	p.dump.Functions = append(p.dump.Functions, f)
	return nil
}

// load reads JIT_CODE_LOAD. The lines are of the function that begins at
// code_addr.
func (p *jitParser) load(d *fields, time uint64) error {
	f := p.unwind
	p.unwind = JITFunction{}
	f.Time = time
	f.PID, f.TID = int(int32(d.u32())), int(int32(d.u32()))
	f.Address = d.u64()
	start := d.u64()
	f.Size, f.Index = d.u64(), d.u64()
	name := bytes.IndexByte(d.b, 0)
	if d.isShort || name < 0 {
		return errors.New("a function whose name does not end in its record")
	}
	f.Name = string(clip(d.b[:name], maxPath))
	d.b = d.b[name+1:]
	var beyond error
	if length := uint64(len(d.b)) + p.missing; length > 0 && length < f.Size {
		beyond = fmt.Errorf("function %q: its code of %d bytes goes beyond its record: it is taken to end after %d", f.Name, f.Size, length)
		f.Size = length
	}
	if len(d.b) > 0 || f.Size == 0 {
		f.Code = d.bytes(min(f.Size, uint64(len(d.b))))
	}
	f.Lines = p.lines[start]
	delete(p.lines, start)
	return cmp.Or(p.add(f), beyond)
}

// move reads JIT_CODE_MOVE: a function has a new address from now on.
func (p *jitParser) move(d *fields, time uint64) error {
	pid, tid := int(int32(d.u32())), int(int32(d.u32()))
	address, old := d.u64(), d.u64()
	d.u64() // new_code_addr
	size, index := d.u64(), d.u64()
	if d.isShort {
		return errors.New("a record of a move that is too short")
	}
	i, ok := p.dump.latest[index]
	if !ok {
		return fmt.Errorf("a move of function %d, which was not loaded", index)
	}
	f := p.dump.Functions[i]
	if size != f.Size {
		return fmt.Errorf("a move of %d bytes from %#x, where function %d has %d", size, old, index, f.Size)
	}
	lines := make([]JITLine, len(f.Lines))
	if p.total += len(lines); p.total > maxJITLines {
		return fmt.Errorf("more than %d lines", maxJITLines)
	}
	for i, l := range f.Lines {
		l.Address += address - f.Address
		lines[i] = l
	}
	f.Time, f.PID, f.TID, f.Address, f.Lines = time, pid, tid, address, lines
	return p.add(f)
}

// debugInfo reads JIT_CODE_DEBUG_INFO. A file name that begins with 0xff and NUL
// stands for the name of the entry before (as perf reads it).
func (p *jitParser) debugInfo(d *fields) error {
	start, count := d.u64(), d.u64()
	if d.isShort || count > uint64(len(d.b))/17 {
		return fmt.Errorf("%d lines in %d bytes", count, len(d.b))
	}
	if p.total += int(count); p.total > maxJITLines {
		return fmt.Errorf("more than %d lines", maxJITLines)
	}
	lines := make([]JITLine, 0, count)
	for range count {
		l := JITLine{Address: d.u64(), Line: d.u32(), Column: d.u32()}
		end := bytes.IndexByte(d.b, 0)
		if d.isShort || end < 0 {
			return fmt.Errorf("line %d of %d goes beyond its record", len(lines), count)
		}
		name := clip(d.b[:end], maxPath)
		d.b = d.b[end+1:]
		if len(name) == 1 && name[0] == 0xff && len(lines) > 0 {
			l.File = lines[len(lines)-1].File
		} else if known, ok := p.files[string(name)]; ok {
			l.File = known
		} else {
			l.File = string(name)
			p.files[l.File] = l.File
		}
		lines = append(lines, l)
	}
	if p.lines == nil {
		p.lines = map[uint64][]JITLine{}
	}
	p.lines[start] = lines
	return nil
}
