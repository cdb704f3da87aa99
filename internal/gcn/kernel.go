// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Processor is a processor whose code is executed.
type Processor struct {
	Name  string
	Gen   int
	Lanes int
	Flat  bool // private memory is reached by scratch instructions, and stack pointers count the bytes of a lane
	// Packed is set where the work-item's three numbers come in one register.
	Packed bool
	Acc    bool // it has accumulation registers
}

// Processors are the processors of the corpus, for which programs are compiled.
var Processors = []Processor{
	{"gfx90a", 9, 64, false, true, true},
	{"gfx942", 9, 64, true, true, true},
	{"gfx1030", 10, 32, false, false, false},
	{"gfx1100", 11, 32, true, true, false},
	{"gfx1200", 12, 32, true, true, false},
}

// OtherProcessors are processors for which the corpus has no objects.
var OtherProcessors = []Processor{
	{"gfx900", 9, 64, false, false, false},
	{"gfx906", 9, 64, false, false, false},
	{"gfx908", 9, 64, false, false, true},
	{"gfx950", 9, 64, true, true, true},
	{"gfx1010", 10, 32, false, false, false},
	{"gfx1150", 11, 32, true, true, false},
	{"gfx1201", 12, 32, true, true, false},
}

// librarySource has the functions that the sources call and no available
// library has.
const librarySource = `
unsigned long __attribute__((overloadable)) get_global_id(unsigned int d) {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}
unsigned long __attribute__((overloadable)) get_local_id(unsigned int d) { return __builtin_amdgcn_workitem_id_x(); }
void __attribute__((overloadable)) barrier(unsigned flags) { __builtin_amdgcn_s_barrier(); }
`

// Compile compiles a source to a code object, or with -S among the options to
// assembly. OpenCL sources are linked with librarySource.
func Compile(t testing.TB, p Processor, out string, sources []string, options ...string) {
	t.Helper()
	if err := tryCompile(p, out, sources, options...); err != nil {
		t.Fatal(err)
	}
}

// tryCompile does the same where the compiler may refuse.
func tryCompile(p Processor, out string, sources []string, options ...string) error {
	return CompileBy("clang-22", p, out, sources, options...)
}

// CompileBy compiles with one of the compilers.
func CompileBy(clang string, p Processor, out string, sources []string, options ...string) error {
	var args []string
	if strings.HasSuffix(sources[0], ".hip") {
		args = append(args, "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch="+p.Name, "-nogpuinc")
	} else {
		args = append(args, "-target", "amdgcn-amd-amdhsa", "-mcpu="+p.Name)
		if strings.HasSuffix(sources[0], ".cl") {
			args = append(args, "-x", "cl", "-cl-std=CL2.0")
		}
	}
	args = append(args, "-nogpulib", "-w", "-o", out)
	args = append(args, options...)
	cmd := exec.Command(clang, append(args, sources...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, text)
	}
	return nil
}

// LibraryFile writes librarySource to a file.
func LibraryFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "library.cl")
	if err := os.WriteFile(path, []byte(librarySource), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Argument is an argument of a kernel, by its metadata.
type Argument struct {
	offset, size uint64
	kind         string
	typeName     string
}

// Kernel is a kernel of a code object.
type Kernel struct {
	Name       string
	Descriptor uint64 // the address of its descriptor
	entry      uint64
	Group      uint32 // bytes of local memory
	kernarg    uint32
	properties uint16
	rsrc2      uint32
	arguments  []Argument
}

// Object is a code object and its kernels.
type Object struct {
	Path            string
	Processor       Processor
	Code            *Code
	Kernels         []*Kernel
	segments        []objectSegment
	Symbols         map[string]uint64
	VectorRegisters int // how many vector registers the code names
	AccRegisters    int
}

type objectSegment struct {
	address uint64
	data    []byte
}

var (
	noteArgument = regexp.MustCompile(`^(\s*)- \.(?:address_space|actual_access|offset|name|access|is_const):`)
	noteMember   = regexp.MustCompile(`^\s*(?:- )?\.(\w+):\s*'?([^']*)'?$`)
)

// Open reads a code object: its code, its kernels' descriptors and arguments,
// and its image in memory.
func Open(t testing.TB, p Processor, path string) *Object {
	t.Helper()
	code, err := disassemble(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &Object{Path: path, Processor: p, Code: code, Symbols: map[string]uint64{}}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ph := range f.Progs {
		if ph.Type != elf.PT_LOAD || ph.Filesz == 0 {
			continue
		}
		data := make([]byte, ph.Memsz)
		if _, err := ph.ReadAt(data[:ph.Filesz], 0); err != nil {
			t.Fatal(err)
		}
		o.segments = append(o.segments, objectSegment{ph.Vaddr, data})
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		o.Symbols[s.Name] = s.Value
	}
	o.relocate(t, f)
	o.metadata(t)
	for _, ins := range code.instructions {
		for i := range ins.operands {
			o.widen(&ins.operands[i])
		}
		if ins.dual != nil {
			for i := range ins.dual.operands {
				o.widen(&ins.dual.operands[i])
			}
		}
	}
	return o
}

// widen counts the registers that the code names.
func (o *Object) widen(op *Operand) {
	switch op.file {
	case Vector:
		o.VectorRegisters = max(o.VectorRegisters, op.reg+op.count)
	case Acc:
		o.AccRegisters = max(o.AccRegisters, op.reg+op.count)
	}
}

// read returns memory of the object before it is loaded.
func (o *Object) read(address uint64, n int) []byte {
	for _, s := range o.segments {
		if address >= s.address && address+uint64(n) <= s.address+uint64(len(s.data)) {
			return s.data[address-s.address:][:n]
		}
	}
	return nil
}

// relocate applies the dynamic relocations: addresses of 64 bits.
func (o *Object) relocate(t testing.TB, f *elf.File) {
	t.Helper()
	section := f.Section(".rela.dyn")
	if section == nil {
		return
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	dynamic, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) >= 24; data = data[24:] {
		place, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		v := binary.LittleEndian.Uint64(data[16:])
		switch kind, sym := uint32(info), info>>32; kind { //nolint:gosec // the lower half
		case 13: // R_AMDGPU_RELATIVE64
			v += CodeBase
		case 3: // R_AMDGPU_ABS64
			v += CodeBase + dynamic[sym-1].Value
		default:
			t.Fatalf("%s: relocation %d at %#x", o.Path, kind, place)
		}
		binary.LittleEndian.PutUint64(o.read(place, 8), v)
	}
}

// metadata reads the kernels and their arguments as llvm-readelf prints them, and
// the kernels' descriptors.
func (o *Object) metadata(t testing.TB) {
	t.Helper()
	cmd := exec.Command("llvm-readelf-22", "--notes", o.Path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	if o.Kernels, err = kernelNotes(string(out)); err != nil {
		t.Fatalf("%s: %v", o.Path, err)
	}
	for _, k := range o.Kernels {
		if err := o.readDescriptor(k); err != nil {
			t.Fatalf("%s: %v", o.Path, err)
		}
	}
}

// kernelNotes reads the names and arguments of kernels in the text of llvm-readelf.
func kernelNotes(text string) (kernels []*Kernel, err error) {
	var k *Kernel
	inArguments := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  - .") {
			k = &Kernel{}
			kernels = append(kernels, k)
		}
		if k == nil {
			continue
		}
		if indent := len(line) - len(strings.TrimLeft(line, " ")); indent <= 4 {
			inArguments = strings.HasPrefix(line, "    .args:") || strings.HasPrefix(line, "  - .args:")
		}
		if inArguments && noteArgument.MatchString(line) {
			k.arguments = append(k.arguments, Argument{})
		}
		m := noteMember.FindStringSubmatch(line)
		switch {
		case m == nil:
		case inArguments && len(k.arguments) > 0:
			if err := k.arguments[len(k.arguments)-1].set(m[1], m[2]); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		case m[1] == "symbol":
			k.Name = strings.TrimSuffix(m[2], ".kd")
		}
	}
	return kernels, nil
}

// set sets a member of an argument; others than these are of no use.
func (a *Argument) set(member, value string) (err error) {
	switch member {
	case "offset":
		a.offset, err = strconv.ParseUint(value, 10, 64)
	case "size":
		a.size, err = strconv.ParseUint(value, 10, 64)
	case "value_kind":
		a.kind = value
	case "type_name":
		a.typeName = value
	}
	return err
}

// readDescriptor reads the descriptor of a kernel.
func (o *Object) readDescriptor(k *Kernel) error {
	k.Descriptor = o.Symbols[k.Name+".kd"]
	d := o.read(k.Descriptor, 64)
	if d == nil {
		return fmt.Errorf("no descriptor of %s", k.Name)
	}
	k.Group = binary.LittleEndian.Uint32(d)
	k.kernarg = binary.LittleEndian.Uint32(d[8:])
	k.entry = k.Descriptor + binary.LittleEndian.Uint64(d[16:])
	k.rsrc2 = binary.LittleEndian.Uint32(d[52:])
	k.properties = binary.LittleEndian.Uint16(d[56:])
	if preload := binary.LittleEndian.Uint16(d[58:]); preload != 0 {
		return fmt.Errorf("%s preloads arguments: %#x", k.Name, preload)
	}
	if wave32 := k.properties>>10&1 != 0; wave32 != (o.Processor.Lanes == 32) {
		return fmt.Errorf("%s is of waves of another size", k.Name)
	}
	return nil
}

// The addresses of a launch's memory.
const (
	ArgumentsAddress = 0x7d00_0000_0000
	dispatchAddress  = 0x7d00_0010_0000
	queueAddress     = 0x7d00_0020_0000
	buffersAddress   = 0x7c00_0000_0000
	bufferSize       = 1 << 18 // bytes of a buffer
)

// Launch returns a wave at the entry of a kernel: its registers follow the ABI, and are random
// where it has no rule. items of its lanes are work-items.
func (o *Object) Launch(k *Kernel, random *rand.Rand, items int) (*State, error) {
	s := o.randomState(k, random)
	for _, segment := range o.segments {
		s.put(CodeBase+segment.address, segment.data)
	}
	s.put(queueAddress, make([]byte, Page))
	s.put(dispatchAddress, dispatchPacket(items))
	s.putArguments(k, random, items)
	next, err := s.setUserRegisters(k)
	if err != nil {
		return nil, err
	}
	o.setSystemRegisters(s, k, next)
	o.setWorkItems(s, k, items)
	return s, s.setMask(&Operand{reg: Exec, count: 2}, ^uint64(0)>>(64-items))
}

// randomState returns a wave at the entry of a kernel with random registers and private memory.
func (o *Object) randomState(k *Kernel, random *rand.Rand) *State {
	p := o.Processor
	s := &State{
		code: o.Code, gen: p.Gen, flat: p.Flat, Lanes: p.Lanes, PC: CodeBase + k.entry,
		Vector: make([]uint32, 512*p.Lanes), Scratch: make([]byte, 1<<20), Local: make([]byte, int(k.Group)+4096),
		Memory: map[uint64]*[Page]byte{},
	}
	for i := range s.Scalar {
		s.Scalar[i] = random.Uint32()
	}
	for i := range s.Vector {
		s.Vector[i] = random.Uint32()
	}
	for i := 0; i < len(s.Scratch); i += 8 {
		binary.LittleEndian.PutUint64(s.Scratch[i:], random.Uint64())
	}
	return s
}

// dispatchPacket returns the packet of a dispatch of one work-group.
func dispatchPacket(items int) []byte {
	packet := make([]byte, 64)
	binary.LittleEndian.PutUint16(packet[4:], uint16(items)) //nolint:gosec // at most 64
	binary.LittleEndian.PutUint16(packet[6:], 1)
	binary.LittleEndian.PutUint16(packet[8:], 1)
	binary.LittleEndian.PutUint32(packet[12:], uint32(items)) //nolint:gosec // at most 64
	binary.LittleEndian.PutUint32(packet[16:], 1)
	binary.LittleEndian.PutUint32(packet[20:], 1)
	return packet
}

// waveOffset is where the private memory of a wave begins in the memory of all waves.
const waveOffset = 0x8000

// setUserRegisters sets the user registers, in the order of the bits that enable them. next is
// the register behind them.
func (s *State) setUserRegisters(k *Kernel) (next int, err error) {
	for bit, value := range [][]uint64{
		{scratchBase - waveOffset, descriptor2 | descriptor3<<32},
		{dispatchAddress},
		{queueAddress},
		{ArgumentsAddress},
		{1},
		{scratchBase - waveOffset},
	} {
		if k.properties>>bit&1 == 0 {
			continue
		}
		for _, v := range value {
			s.Scalar[next], s.Scalar[next+1] = uint32(v), uint32(v>>32) //nolint:gosec // halves
			next += 2
		}
	}
	if k.properties>>6&1 != 0 { // the size of the private segment
		s.Scalar[next] = 1 << 14
		next++
	}
	users := int(k.rsrc2 >> 1 & 31)
	if next > users {
		return 0, fmt.Errorf("%s: %d user registers, expected at most %d", k.Name, next, users)
	}
	return users, nil
}

// setSystemRegisters sets the work-group and the private memory of a wave. next is the register
// behind the user registers.
func (o *Object) setSystemRegisters(s *State, k *Kernel, next int) {
	p := o.Processor
	if p.Gen >= 12 { // the work-group is in the trap temporaries
		s.Scalar[ttmp+7], s.Scalar[ttmp+9] = 0, 0
	}
	for _, n := range []int{7, 8, 9} { // the work-group
		if k.rsrc2>>n&1 != 0 && p.Gen < 12 {
			s.Scalar[next] = 0
			next++
		}
	}
	if k.rsrc2>>10&1 != 0 {
		next++
	}
	private := k.rsrc2&1 != 0
	if private && !p.Flat {
		s.Scalar[next] = waveOffset
	}
	if private && p.Flat {
		s.flatScratch = scratchBase
	}
}

// setWorkItems sets the numbers of the work-items.
func (o *Object) setWorkItems(s *State, k *Kernel, items int) {
	p := o.Processor
	for lane := range p.Lanes {
		if lane < items || p.Packed {
			s.Vector[lane] = uint32(lane) //nolint:gosec // at most 64
		}
		if !p.Packed {
			for i := range int(k.rsrc2 >> 11 & 3) {
				s.Vector[(1+i)*p.Lanes+lane] = 0
			}
		}
	}
}

// putArguments writes the arguments: buffers of small numbers, and small numbers.
func (s *State) putArguments(k *Kernel, random *rand.Rand, items int) {
	kernarg := make([]byte, max(k.kernarg, 8)+256)
	buffer := uint64(buffersAddress)
	put := func(a *Argument, v uint64) {
		for i := range a.size {
			kernarg[a.offset+i] = byte(v >> (8 * i))
		}
	}
	for i := range k.arguments {
		a := &k.arguments[i]
		switch a.kind {
		case "global_buffer":
			data := make([]byte, bufferSize)
			for i := 0; i < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], random.Uint32N(100))
			}
			s.put(buffer, data)
			put(a, buffer)
			buffer += 2 * bufferSize
		case "dynamic_shared_pointer":
			put(a, uint64(k.Group))
		case "by_value":
			put(a, 2+random.Uint64N(3))
		case "hidden_block_count_x", "hidden_block_count_y", "hidden_block_count_z", "hidden_group_size_y", "hidden_group_size_z":
			put(a, 1)
		case "hidden_group_size_x":
			put(a, uint64(items)) //nolint:gosec // positive
		case "hidden_grid_dims":
			put(a, 1)
		case "hidden_queue_ptr":
			put(a, queueAddress)
		}
	}
	s.put(ArgumentsAddress, kernarg)
}
