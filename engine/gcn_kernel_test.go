// SPDX-License-Identifier: Apache-2.0

package engine

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

// gcnProcessor is a processor whose code is executed.
type gcnProcessor struct {
	name  string
	gen   int
	lanes int
	flat  bool // private memory is reached by scratch instructions, and stack pointers count the bytes of a lane
	// packed says that the work-item's three numbers come in one register.
	packed bool
	acc    bool // it has accumulation registers
}

var gcnProcessors = []gcnProcessor{
	{"gfx90a", 9, 64, false, true, true},
	{"gfx942", 9, 64, true, true, true},
	{"gfx1030", 10, 32, false, false, false},
	{"gfx1100", 11, 32, true, true, false},
	{"gfx1200", 12, 32, true, true, false},
}

// gcnLibrary is what the sources call and no library at hand has.
const gcnLibrary = `
unsigned long __attribute__((overloadable)) get_global_id(unsigned int d) {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}
unsigned long __attribute__((overloadable)) get_local_id(unsigned int d) { return __builtin_amdgcn_workitem_id_x(); }
void __attribute__((overloadable)) barrier(unsigned flags) { __builtin_amdgcn_s_barrier(); }
`

// gcnCompile compiles a source to a code object, or with -S among the options to
// assembly. OpenCL sources are linked with gcnLibrary.
func gcnCompile(t testing.TB, p gcnProcessor, out string, sources []string, options ...string) {
	t.Helper()
	if err := tryGCNCompile(p, out, sources, options...); err != nil {
		t.Fatal(err)
	}
}

// tryGCNCompile does the same where the compiler may refuse.
func tryGCNCompile(p gcnProcessor, out string, sources []string, options ...string) error {
	return gcnCompileBy("clang-22", p, out, sources, options...)
}

// gcnCompileBy compiles with one of the compilers.
func gcnCompileBy(clang string, p gcnProcessor, out string, sources []string, options ...string) error {
	var args []string
	if strings.HasSuffix(sources[0], ".hip") {
		args = append(args, "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch="+p.name, "-nogpuinc")
	} else {
		args = append(args, "-target", "amdgcn-amd-amdhsa", "-mcpu="+p.name)
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

// gcnLibraryFile writes gcnLibrary to a file.
func gcnLibraryFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "library.cl")
	if err := os.WriteFile(path, []byte(gcnLibrary), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A gcnArgument is an argument of a kernel, as its metadata says.
type gcnArgument struct {
	offset, size uint64
	kind         string
	typeName     string
}

// A gcnKernel is a kernel of a code object.
type gcnKernel struct {
	name       string
	descriptor uint64 // the address of its descriptor
	entry      uint64
	group      uint32 // bytes of local memory
	kernarg    uint32
	properties uint16
	rsrc2      uint32
	arguments  []gcnArgument
}

// gcnObject is a code object and its kernels.
type gcnObject struct {
	path      string
	processor gcnProcessor
	code      *gcnCode
	kernels   []*gcnKernel
	segments  []gcnSegment
	symbols   map[string]uint64
	vectors   int // how many vector registers the code names
	accs      int
}

type gcnSegment struct {
	address uint64
	data    []byte
}

var (
	gcnArgStart = regexp.MustCompile(`^(\s*)- \.(?:address_space|actual_access|offset|name|access|is_const):`)
	gcnMember   = regexp.MustCompile(`^\s*(?:- )?\.(\w+):\s*'?([^']*)'?$`)
)

// openGCN reads a code object: its code, its kernels' descriptors and arguments,
// and what it is in memory.
func openGCN(t testing.TB, p gcnProcessor, path string) *gcnObject {
	t.Helper()
	code, err := disassembleGCN(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &gcnObject{path: path, processor: p, code: code, symbols: map[string]uint64{}}
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
		o.segments = append(o.segments, gcnSegment{ph.Vaddr, data})
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		o.symbols[s.Name] = s.Value
	}
	o.relocate(t, f)
	o.metadata(t)
	for _, in := range code.instructions {
		for i := range in.operands {
			o.widen(&in.operands[i])
		}
		if in.dual != nil {
			for i := range in.dual.operands {
				o.widen(&in.dual.operands[i])
			}
		}
	}
	return o
}

// widen counts the registers that the code names.
func (o *gcnObject) widen(op *gcnOperand) {
	switch op.file {
	case gcnVector:
		o.vectors = max(o.vectors, op.reg+op.count)
	case gcnAcc:
		o.accs = max(o.accs, op.reg+op.count)
	}
}

// read is memory of the object before it is loaded.
func (o *gcnObject) read(address uint64, n int) []byte {
	for _, s := range o.segments {
		if address >= s.address && address+uint64(n) <= s.address+uint64(len(s.data)) {
			return s.data[address-s.address:][:n]
		}
	}
	return nil
}

// relocate applies the dynamic relocations: addresses of 64 bits.
func (o *gcnObject) relocate(t testing.TB, f *elf.File) {
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
		at, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		v := binary.LittleEndian.Uint64(data[16:])
		switch kind, sym := uint32(info), info>>32; kind { //nolint:gosec // the lower half
		case 13: // R_AMDGPU_RELATIVE64
			v += codeBase
		case 3: // R_AMDGPU_ABS64
			v += codeBase + dynamic[sym-1].Value
		default:
			t.Fatalf("%s: relocation %d at %#x", o.path, kind, at)
		}
		binary.LittleEndian.PutUint64(o.read(at, 8), v)
	}
}

// metadata reads the kernels and their arguments as llvm-readelf prints them, and
// the kernels' descriptors.
func (o *gcnObject) metadata(t testing.TB) {
	t.Helper()
	cmd := exec.Command("llvm-readelf-22", "--notes", o.path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	var k *gcnKernel
	inArguments := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if strings.HasPrefix(line, "  - .") {
			k = &gcnKernel{}
			o.kernels = append(o.kernels, k)
		}
		if k == nil {
			continue
		}
		if indent <= 4 {
			inArguments = strings.HasPrefix(line, "    .args:") || strings.HasPrefix(line, "  - .args:")
		}
		if inArguments && gcnArgStart.MatchString(line) {
			k.arguments = append(k.arguments, gcnArgument{})
		}
		m := gcnMember.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if inArguments && len(k.arguments) > 0 {
			a := &k.arguments[len(k.arguments)-1]
			n, err := strconv.ParseUint(m[2], 10, 64)
			switch m[1] {
			case "offset":
				a.offset = n
			case "size":
				a.size = n
			default:
				err = nil
			}
			if err != nil {
				t.Fatalf("%s: %q: %v", o.path, line, err)
			}
			switch m[1] {
			case "value_kind":
				a.kind = m[2]
			case "type_name":
				a.typeName = m[2]
			}
			continue
		}
		if m[1] == "symbol" {
			k.name = strings.TrimSuffix(m[2], ".kd")
		}
	}
	for _, k := range o.kernels {
		k.descriptor = o.symbols[k.name+".kd"]
		d := o.read(k.descriptor, 64)
		if d == nil {
			t.Fatalf("%s: no descriptor of %s", o.path, k.name)
		}
		k.group = binary.LittleEndian.Uint32(d)
		k.kernarg = binary.LittleEndian.Uint32(d[8:])
		k.entry = k.descriptor + binary.LittleEndian.Uint64(d[16:])
		k.rsrc2 = binary.LittleEndian.Uint32(d[52:])
		k.properties = binary.LittleEndian.Uint16(d[56:])
		if preload := binary.LittleEndian.Uint16(d[58:]); preload != 0 {
			t.Fatalf("%s: %s preloads arguments: %#x", o.path, k.name, preload)
		}
		if wave32 := k.properties>>10&1 != 0; wave32 != (o.processor.lanes == 32) {
			t.Fatalf("%s: %s is of waves of another size", o.path, k.name)
		}
	}
}

// Where the memory of a launch is.
const (
	gcnArguments = 0x7d00_0000_0000
	gcnDispatch  = 0x7d00_0010_0000
	gcnQueue     = 0x7d00_0020_0000
	gcnBuffers   = 0x7c00_0000_0000
	gcnBuffer    = 1 << 18 // bytes of a buffer
)

// launch makes a wave at the entry of a kernel: as the ABI says what is in its
// registers, and anything in the others. items of its lanes are work-items.
func (o *gcnObject) launch(k *gcnKernel, random *rand.Rand, items int) (*gcnState, error) {
	p := o.processor
	s := &gcnState{
		code: o.code, gen: p.gen, flat: p.flat, lanes: p.lanes, pc: codeBase + k.entry,
		vector: make([]uint32, 512*p.lanes), scratch: make([]byte, 1<<20), local: make([]byte, int(k.group)+4096),
		memory: map[uint64]*[gcnPage]byte{},
	}
	for i := range s.scalar {
		s.scalar[i] = random.Uint32()
	}
	for i := range s.vector {
		s.vector[i] = random.Uint32()
	}
	for i := 0; i < len(s.scratch); i += 8 {
		binary.LittleEndian.PutUint64(s.scratch[i:], random.Uint64())
	}
	for _, segment := range o.segments {
		s.put(codeBase+segment.address, segment.data)
	}
	s.put(gcnQueue, make([]byte, gcnPage))
	packet := make([]byte, 64)
	binary.LittleEndian.PutUint16(packet[4:], uint16(items)) //nolint:gosec // at most 64
	binary.LittleEndian.PutUint16(packet[6:], 1)
	binary.LittleEndian.PutUint16(packet[8:], 1)
	binary.LittleEndian.PutUint32(packet[12:], uint32(items)) //nolint:gosec // at most 64
	binary.LittleEndian.PutUint32(packet[16:], 1)
	binary.LittleEndian.PutUint32(packet[20:], 1)
	s.put(gcnDispatch, packet)
	s.putArguments(k, random, items)

	// User registers, in the order of the bits that ask for them.
	at := 0
	two := func(v uint64) {
		s.scalar[at], s.scalar[at+1] = uint32(v), uint32(v>>32) //nolint:gosec // halves
		at += 2
	}
	const waveOffset = 0x8000
	has := func(n int) bool { return k.properties>>n&1 != 0 }
	if has(0) {
		two(gcnScratchBase - waveOffset)
		two(gcnDescriptor2 | gcnDescriptor3<<32)
	}
	if has(1) {
		two(gcnDispatch)
	}
	if has(2) {
		two(gcnQueue)
	}
	if has(3) {
		two(gcnArguments)
	}
	if has(4) {
		two(1)
	}
	if has(5) {
		two(gcnScratchBase - waveOffset)
	}
	if has(6) {
		s.scalar[at] = 1 << 14
		at++
	}
	if users := int(k.rsrc2 >> 1 & 31); at > users {
		return nil, fmt.Errorf("%s: %d user registers, expected at most %d", k.name, at, users)
	} else if at < users {
		at = users
	}
	if p.gen >= 12 { // the work-group is where traps keep things
		s.scalar[gcnTTMP+7], s.scalar[gcnTTMP+9] = 0, 0
	}
	for _, n := range []int{7, 8, 9} { // the work-group
		if k.rsrc2>>n&1 != 0 && p.gen < 12 {
			s.scalar[at] = 0
			at++
		}
	}
	if k.rsrc2>>10&1 != 0 {
		at++
	}
	private := k.rsrc2&1 != 0
	if private && !p.flat {
		s.scalar[at] = waveOffset
	}
	if private && p.flat {
		s.flatScratch = gcnScratchBase
	}
	for lane := range p.lanes {
		if lane < items || p.packed {
			s.vector[lane] = uint32(lane) //nolint:gosec // at most 64
		}
		if !p.packed {
			for i := range int(k.rsrc2 >> 11 & 3) {
				s.vector[(1+i)*p.lanes+lane] = 0
			}
		}
	}
	exec := ^uint64(0) >> (64 - items)
	return s, s.setMask(&gcnOperand{reg: gcnExec, count: 2}, exec)
}

// putArguments writes the arguments: buffers of small numbers, and small numbers.
func (s *gcnState) putArguments(k *gcnKernel, random *rand.Rand, items int) {
	kernarg := make([]byte, max(k.kernarg, 8)+256)
	buffer := uint64(gcnBuffers)
	put := func(a *gcnArgument, v uint64) {
		for i := range a.size {
			kernarg[a.offset+i] = byte(v >> (8 * i))
		}
	}
	for i := range k.arguments {
		a := &k.arguments[i]
		switch a.kind {
		case "global_buffer":
			data := make([]byte, gcnBuffer)
			for i := 0; i < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], random.Uint32N(100))
			}
			s.put(buffer, data)
			put(a, buffer)
			buffer += 2 * gcnBuffer
		case "dynamic_shared_pointer":
			put(a, uint64(k.group))
		case "by_value":
			put(a, 2+random.Uint64N(3))
		case "hidden_block_count_x", "hidden_block_count_y", "hidden_block_count_z", "hidden_group_size_y", "hidden_group_size_z":
			put(a, 1)
		case "hidden_group_size_x":
			put(a, uint64(items)) //nolint:gosec // positive
		case "hidden_grid_dims":
			put(a, 1)
		case "hidden_queue_ptr":
			put(a, gcnQueue)
		}
	}
	s.put(gcnArguments, kernarg)
}
