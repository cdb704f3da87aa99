// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
)

// A codeFile is an ELF file, as a check without a peer needs it: read by
// debug/elf, and by nothing that walks.
type codeFile struct {
	path      string
	sections  []codeSection  // executable ones
	functions []codeFunction // of the symbol tables and the call frame information, by start
	slots     map[uint64]codeSlot
	named     map[string][]uint64 // addresses of functions
	resolvers map[string]bool     // names of functions that choose another one
	listings  map[uint64][]string // what objdump says of the function at an address
}

type codeSection struct {
	name    string
	address uint64
	data    []byte
}

type codeFunction struct {
	start, end uint64
	name       string // "" of call frame information
}

// A codeSlot is a word of the global offset table.
type codeSlot struct {
	symbol string // "" of a function of the file itself
	local  uint64 // its address
	chosen bool   // a resolver of the file decides
}

func openCodeFile(tb testing.TB, path string) *codeFile {
	tb.Helper()
	f := &codeFile{
		path: path, slots: map[uint64]codeSlot{}, named: map[string][]uint64{}, resolvers: map[string]bool{},
		listings: map[uint64][]string{},
	}
	var in *elf.File
	var err error
	if path == "[vdso]" {
		in, err = elf.NewFile(bytes.NewReader(loadedVDSO(tb)))
	} else {
		in, err = elf.Open(path)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	for _, s := range in.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type == elf.SHT_PROGBITS {
			data, err := s.Data()
			if err != nil {
				tb.Fatal(err)
			}
			f.sections = append(f.sections, codeSection{s.Name, s.Addr, data})
		}
	}
	f.readSymbols(in)
	if s := in.Section(".note.gnu.build-id"); s != nil {
		if note, err := s.Data(); err == nil && len(note) > 17 {
			id := hex.EncodeToString(note[16:])
			if debug, err := elf.Open(filepath.Join("/usr/lib/debug/.build-id", id[:2], id[2:]+".debug")); err == nil {
				f.readSymbols(debug)
				debug.Close()
			}
		}
	}
	f.readFrames(tb, in)
	f.readSlots(tb, in)
	slices.SortFunc(f.functions, func(a, b codeFunction) int { return cmp.Compare(a.start, b.start) })
	return f
}

// loadedVDSO is the one of this process: all processes have the same.
func loadedVDSO(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var start, end uint64
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			tb.Fatal(err)
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			tb.Fatal(err)
		}
		defer mem.Close()
		data := make([]byte, end-start)
		if _, err := mem.ReadAt(data, int64(start)); err != nil {
			tb.Fatal(err)
		}
		return data
	}
	tb.Fatal("this process has no vDSO")
	return nil
}

func (f *codeFile) readSymbols(source *elf.File) {
	// A file may have only one of the tables.
	static, _ := source.Symbols()
	dynamic, _ := source.DynamicSymbols()
	for _, s := range append(static, dynamic...) {
		typ := elf.ST_TYPE(s.Info)
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || f.section(s.Value) == nil ||
			typ != elf.STT_FUNC && typ != elf.STT_NOTYPE && typ != elf.STT_GNU_IFUNC {
			continue
		}
		name, _, _ := strings.Cut(s.Name, "@")
		if typ == elf.STT_GNU_IFUNC {
			f.resolvers[name] = true
		}
		f.functions = append(f.functions, codeFunction{s.Value, s.Value + s.Size, name})
		f.named[name] = append(f.named[name], s.Value)
	}
}

func (f *codeFile) readFrames(tb testing.TB, source *elf.File) {
	tb.Helper()
	s := source.Section(".eh_frame")
	if s == nil || s.Type == elf.SHT_NOBITS {
		return
	}
	data, err := s.Data()
	if err != nil {
		tb.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: s.Name, Data: data, Address: s.Addr, EH: true, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		tb.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			tb.Fatal(err)
		}
		f.functions = append(f.functions, codeFunction{start: fde.Start, end: fde.End})
	}
}

// readSlots reads the relocations of the global offset table.
func (f *codeFile) readSlots(tb testing.TB, source *elf.File) {
	tb.Helper()
	symbols, _ := source.DynamicSymbols()
	for _, s := range source.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			tb.Fatal(err)
		}
		for ; len(data) >= 24; data = data[24:] {
			offset, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
			switch elf.R_X86_64(uint32(info)) {
			case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT:
				if i := int(info >> 32); i > 0 && i <= len(symbols) {
					f.slots[offset] = codeSlot{symbol: symbols[i-1].Name}
				}
			case elf.R_X86_64_RELATIVE:
				f.slots[offset] = codeSlot{local: binary.LittleEndian.Uint64(data[16:])}
			case elf.R_X86_64_IRELATIVE:
				f.slots[offset] = codeSlot{chosen: true}
			}
		}
	}
}

func (f *codeFile) section(address uint64) *codeSection {
	for i := range f.sections {
		if s := &f.sections[i]; address-s.address < uint64(len(s.data)) {
			return s
		}
	}
	return nil
}

// before is code that ends at an address.
func (f *codeFile) before(address uint64) []byte {
	if s := f.section(address - 1); s != nil {
		at := address - s.address
		return s.data[at-min(at, 16) : at]
	}
	return nil
}

// from is code that begins at an address.
func (f *codeFile) from(address uint64) []byte {
	if s := f.section(address); s != nil {
		return s.data[address-s.address:]
	}
	return nil
}

// holding are the functions that hold an address; one without a size ends where
// another begins.
func (f *codeFile) holding(address uint64) (list []codeFunction) {
	n, _ := slices.BinarySearchFunc(f.functions, address+1, func(x codeFunction, a uint64) int { return cmp.Compare(x.start, a) })
	nearest := true
	for i := n - 1; i >= 0 && address-f.functions[i].start < 1<<22; i-- {
		x := f.functions[i]
		if i < n-1 && x.start != f.functions[n-1].start {
			nearest = false
		}
		if address < x.end || nearest && x.end == x.start {
			list = append(list, x)
		}
	}
	return list
}

// A codeChecker checks that stacks are chains of calls.
type codeChecker struct {
	tb      testing.TB
	profile *trace.Profile
	files   map[string]*codeFile
	edges   map[[2]uint32]string // what was said of a frame and its caller
}

// Causes that are no exceptions.
const (
	callDirect   = "a direct call of the function"
	callPLT      = "a direct call of a linkage table's entry for the function"
	callIndirect = "an indirect call"
)

func newCodeChecker(tb testing.TB, p *trace.Profile) *codeChecker {
	return &codeChecker{tb: tb, profile: p, files: map[string]*codeFile{}, edges: map[[2]uint32]string{}}
}

func (c *codeChecker) file(path string) *codeFile {
	f := c.files[path]
	if f == nil {
		f = openCodeFile(c.tb, path)
		c.files[path] = f
	}
	return f
}

// edge says how a frame was called by another; what is not explained begins with
// "unexplained".
func (c *codeChecker) edge(callee, caller uint32) string {
	key := [2]uint32{callee, caller}
	cause, ok := c.edges[key]
	if !ok {
		cause = c.classify(&c.profile.Frames[callee], &c.profile.Frames[caller])
		c.edges[key] = cause
	}
	return cause
}

func (c *codeChecker) classify(callee, caller *trace.ProfileFrame) string {
	switch {
	case callee.Kernel && caller.Kernel:
		return "both are of the kernel, whose code is not here"
	case callee.Kernel:
		if !caller.Exact {
			return "unexplained: the kernel interrupts a frame that is not exact"
		}
		return "the kernel was entered"
	case callee.Module < 0 || caller.Module < 0:
		return "unexplained: a frame is in no module"
	}
	in, of := c.file(c.profile.Modules[callee.Module].Path), c.file(c.profile.Modules[caller.Module].Path)
	calleeLookup := callee.ModuleOffset
	if !callee.Exact {
		calleeLookup--
	}
	functions := in.holding(calleeLookup)
	if caller.Exact {
		switch {
		case isTrampoline(of.from(caller.ModuleOffset)):
			return "a handler of a signal returns to the C library or to Go's runtime"
		case in.inTrampoline(callee.ModuleOffset):
			return "a signal interrupted it"
		case anyNamed(functions, "runtime.asyncPreempt", "runtime.asyncPreempt.abi0", "runtime.sigpanic", "runtime.sigpanic0"):
			return "Go's handler of a signal made it look called"
		}
		return "unexplained: an exact frame that no signal interrupted"
	}
	target, direct, call := callBefore(of.before(caller.ModuleOffset), caller.ModuleOffset)
	switch {
	case !call:
		return c.notCalled(functions, of.holding(caller.ModuleOffset))
	case !direct:
		return callIndirect
	}
	return c.called(in, functions, of, target)
}

// isTrampoline reports whether code is the call of rt_sigreturn.
func isTrampoline(code []byte) bool {
	return bytes.HasPrefix(code, []byte("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"))
}

// inTrampoline reports whether an address is before, in or after such a call: a
// sample may be at each of its two instructions, and in the kernel for it.
func (f *codeFile) inTrampoline(address uint64) bool {
	return isTrampoline(f.from(address)) || isTrampoline(f.from(address-7)) || isTrampoline(f.from(address-9))
}

// callBefore reports whether a call ends where code does, which is at an address.
func callBefore(code []byte, address uint64) (target uint64, direct, call bool) {
	for length := 2; length <= min(len(code), 15); length++ {
		at := code[len(code)-length:]
		inst, err := x86asm.Decode(at, 64)
		if err != nil || inst.Len != length || inst.Op != x86asm.CALL {
			continue
		}
		if rel, ok := inst.Args[0].(x86asm.Rel); ok {
			target, direct, call = address+uint64(int64(rel)), true, true
			continue
		}
		return 0, false, true
	}
	return target, direct, call
}

// notCalled explains a return address that no call pushed.
func (c *codeChecker) notCalled(callee, caller []codeFunction) string {
	if anyNamed(caller, "runtime.goexit", "runtime.goexit.abi0") {
		return "Go put runtime.goexit below a goroutine"
	}
	return fmt.Sprintf("unexplained: no call before it in %v, called %v", caller, callee)
}

func anyNamed(list []codeFunction, names ...string) bool {
	return slices.ContainsFunc(list, func(f codeFunction) bool { return slices.Contains(names, f.name) })
}

func begins(list []codeFunction, address uint64) bool {
	return slices.ContainsFunc(list, func(f codeFunction) bool { return f.start == address })
}

// called explains a direct call of a target, an address of a file.
func (c *codeChecker) called(caller *codeFile, functions []codeFunction, callee *codeFile, target uint64) string {
	if caller == callee && begins(functions, target) {
		return callDirect
	}
	from := []codePlace{{callee, target}}
	cause := "a jump from the function that was called"
	if slot, ok := callee.linkage(target); ok {
		switch {
		case slot.chosen:
			return "a linkage table's entry for a function that is chosen when the program starts"
		case slot.symbol == "":
			return fmt.Sprintf("unexplained: the linkage table's entry at %#x of %s has no symbol", target, callee.path)
		case caller == callee && c.inLinkage(caller, functions):
			return "a linkage table's entry"
		case anyNamed(functions, slot.symbol):
			return callPLT
		case slices.ContainsFunc(functions, func(f codeFunction) bool { return strings.HasPrefix(f.name, "_dl_runtime_resolve") }):
			return "the dynamic linker binds a function at its first call"
		}
		cause = "a jump from the function that the linkage table's entry is for"
		for _, f := range c.files {
			if f.resolvers[slot.symbol] {
				return "a linkage table's entry for a function that is chosen when the program starts"
			}
		}
		from = c.definitions(slot.symbol)
	}
	if caller == callee && anyNamed(functions, "runtime.duffzero", "runtime.duffcopy", "runtime.duffzero.abi0", "runtime.duffcopy.abi0") && slices.ContainsFunc(functions, func(f codeFunction) bool { return target > f.start && target < f.end }) {
		return "Go calls into the middle of runtime.duffzero and runtime.duffcopy"
	}
	if said := c.jumps(from, caller, functions); said != "" {
		return cause + said
	}
	return fmt.Sprintf("unexplained: the call is of %#x in %s, %v, the callee is %v of %s", target, callee.path, callee.holding(target), functions, caller.path)
}

// inLinkage reports whether functions are none: the frame is in a linkage table.
func (c *codeChecker) inLinkage(file *codeFile, functions []codeFunction) bool {
	for _, f := range functions {
		if s := file.section(f.start); s == nil || !strings.HasPrefix(s.name, ".plt") {
			return false
		}
	}
	return true
}

// linkage is the slot through which an entry of a linkage table jumps.
func (f *codeFile) linkage(address uint64) (slot codeSlot, ok bool) {
	s := f.section(address)
	if s == nil || !strings.HasPrefix(s.name, ".plt") {
		return slot, false
	}
	code := bytes.TrimPrefix(s.data[address-s.address:], []byte("\xf3\x0f\x1e\xfa"))
	skipped := uint64(len(s.data)) - (address - s.address) - uint64(len(code))
	inst, err := x86asm.Decode(code, 64)
	if err != nil || inst.Op != x86asm.JMP {
		return slot, true
	}
	if m, ok := inst.Args[0].(x86asm.Mem); ok && m.Base == x86asm.RIP {
		slot = f.slots[address+skipped+uint64(inst.Len)+uint64(m.Disp)]
	}
	return slot, true
}

// A codePlace is an address of a file.
type codePlace struct {
	file    *codeFile
	address uint64
}

// definitions are the functions of a name.
func (c *codeChecker) definitions(name string) (list []codePlace) {
	for _, f := range c.files {
		for _, address := range f.named[name] {
			list = append(list, codePlace{f, address})
		}
	}
	return list
}

// jumps reports whether functions are reached from others by jumps; "" if not. A
// jump through a register may lead anywhere.
func (c *codeChecker) jumps(from []codePlace, file *codeFile, functions []codeFunction) string {
	const most = 200
	seen := map[codePlace]bool{}
	anywhere := false
	for len(from) > 0 && len(seen) < most {
		at := from[0]
		from = from[1:]
		if slot, ok := at.file.linkage(at.address); ok {
			switch {
			case slot.chosen && at.file == file, file.resolvers[slot.symbol]:
				return ", to the linkage table's entry for a function that is chosen when the program starts"
			case slot.symbol != "":
				from = append(from, c.definitions(slot.symbol)...)
			}
			continue
		}
		start, end := at.file.extent(at.address)
		key := codePlace{at.file, start}
		if seen[key] {
			continue
		}
		seen[key] = true
		if at.file == file && slices.ContainsFunc(functions, func(f codeFunction) bool { return at.address >= f.start && at.address < max(f.end, f.start+1) }) {
			return ", to its entry or its other part"
		}
		for _, line := range at.file.listing(c.tb, start, end) {
			op, operand, _ := strings.Cut(line, " ")
			op = strings.TrimPrefix(op, "bnd ")
			if !strings.HasPrefix(op, "j") {
				continue
			}
			var to, word uint64
			if _, comment, ok := strings.Cut(operand, "# "); ok && strings.Contains(operand, "(%rip)") {
				if n, _ := fmt.Sscanf(comment, "%x", &word); n == 1 {
					switch slot := at.file.slots[word]; {
					case slot.local != 0:
						from = append(from, codePlace{at.file, slot.local})
						continue
					case slot.symbol != "":
						from = append(from, c.definitions(slot.symbol)...)
						continue
					}
				}
			}
			if n, _ := fmt.Sscanf(strings.TrimSpace(operand), "%x", &to); n != 1 || strings.HasPrefix(strings.TrimSpace(operand), "*") {
				anywhere = true
				continue
			}
			if to >= start && to < end {
				continue
			}
			if at.file == file && slices.ContainsFunc(functions, func(f codeFunction) bool { return to >= f.start && to < max(f.end, f.start+1) }) {
				return ", to its entry or its other part"
			}
			from = append(from, codePlace{at.file, to})
		}
	}
	if anywhere {
		return " through a register or a table"
	}
	return ""
}

// extent is the function that holds an address, from the outermost symbol or
// entry of call frame information.
func (f *codeFile) extent(address uint64) (start, end uint64) {
	start, end = address, address
	for _, x := range f.holding(address) {
		if x.end-x.start > end-start {
			start, end = x.start, x.end
		}
	}
	if start == end {
		// Nothing says where it ends: up to the next that something is said of.
		end = start + 64
		if i, _ := slices.BinarySearchFunc(f.functions, address+1, func(x codeFunction, a uint64) int { return cmp.Compare(x.start, a) }); i < len(f.functions) {
			end = min(end, f.functions[i].start)
		}
	}
	return start, end
}

// listing is the text of code by objdump, without addresses and bytes.
func (f *codeFile) listing(tb testing.TB, start, end uint64) []string {
	tb.Helper()
	if l, ok := f.listings[start]; ok {
		return l
	}
	oracle.Tools(tb, "objdump")
	path := f.path
	if path == "[vdso]" {
		path = filepath.Join(tb.TempDir(), "vdso.so")
		if err := os.WriteFile(path, loadedVDSO(tb), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	var lines []string
	out := oracle.Run(tb, "objdump", "-d", "--no-show-raw-insn", fmt.Sprintf("--start-address=%#x", start), fmt.Sprintf("--stop-address=%#x", end), path)
	for line := range strings.Lines(out) {
		if _, instruction, ok := strings.Cut(line, ":\t"); ok {
			lines = append(lines, strings.TrimSpace(instruction))
		}
	}
	f.listings[start] = lines
	return lines
}

// stack is the stack of a sample as text.
func (c *codeChecker) stack(s *trace.ProfileSample) string {
	p := c.profile
	var out strings.Builder
	fmt.Fprintf(&out, "thread %d at %d\n", p.Threads[s.Thread].TID, s.Time)
	for i, frame := range p.StackFrames(nil, s.Stack) {
		f := &p.Frames[frame]
		where := ""
		if f.Module >= 0 {
			m := &p.Modules[f.Module]
			where = fmt.Sprintf("%#x of %s", f.ModuleOffset, m.Path)
			if !m.Kernel {
				where += fmt.Sprint(" ", c.file(m.Path).holding(f.ModuleOffset))
			}
		}
		fmt.Fprintf(&out, "%4d %#x %s exact %v %s\n", i, f.PC, f.FoundBy, f.Exact, where)
	}
	fmt.Fprintf(&out, "     %s: %s\n", p.Stops[s.Stop].Reason, p.Stops[s.Stop].Detail)
	return out.String()
}

// checkCalls checks all samples of a profile and returns how many pairs of
// frames have each cause.
func checkCalls(t *testing.T, p *trace.Profile) map[string]int {
	t.Helper()
	c := newCodeChecker(t, p)
	for i := range p.Modules {
		if !p.Modules[i].Kernel {
			c.file(p.Modules[i].Path)
		}
	}
	causes := map[string]int{}
	for i := range p.Samples {
		for at := p.Samples[i].Stack; p.Stacks[at].Caller != 0; at = p.Stacks[at].Caller {
			caller := p.Stacks[at].Caller
			cause := c.edge(p.Stacks[at].Frame, p.Stacks[caller].Frame)
			if causes[cause]++; causes[cause] == 1 && strings.HasPrefix(cause, "unexplained") {
				t.Logf("%s\n%s", cause, c.stack(&p.Samples[i]))
			}
		}
	}
	return causes
}

// TestProfilesAreChainsOfCalls checks every sample of recordings of C++, Rust and
// Go programs without a peer: before each return address stands a call, and what
// a direct call calls is the function of the next frame, or leads there.
func TestProfilesAreChainsOfCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range recorded.Programs {
		t.Run(program.Name, func(t *testing.T) {
			p := profiled(t, recorded.Recording(t, program.Name, recorded.Samples()))
			causes := checkCalls(t, p)
			total, explained := 0, 0
			for _, cause := range slices.SortedFunc(maps.Keys(causes), func(a, b string) int { return cmp.Or(cmp.Compare(causes[b], causes[a]), strings.Compare(a, b)) }) {
				t.Logf("%8d %s", causes[cause], cause)
				total += causes[cause]
				switch {
				case strings.HasPrefix(cause, "unexplained"):
					t.Errorf("%d frames %s", causes[cause], cause)
				case cause != callDirect && cause != callPLT && cause != callIndirect:
					explained += causes[cause]
				}
			}
			t.Logf("%d samples, %d pairs of frames, %d of them neither a call of the function nor an indirect one", len(p.Samples), total, explained)
			if causes[callDirect]*4 < total {
				t.Errorf("%d of %d pairs are a direct call: too few to say anything", causes[callDirect], total)
			}
		})
	}
}
