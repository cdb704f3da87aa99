// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file finds thread-local storage. A thread has a block of it for each module that has a
// segment PT_TLS. The blocks of modules that were loaded at the start lie at a fixed distance
// from the thread pointer, others are allocated when the thread first uses them.

// errNotAllocated is the error where a thread has no block of a module yet.
var errNotAllocated = errors.New("it is not allocated in this thread yet")

// tlsField is the place of a member in a structure of glibc: the size of an element in bits,
// and the offset in bytes. The variables that it exports for debuggers have the count of
// elements between the two, 4 bytes each.
type tlsField struct{ bits, offset uint32 }

// tlsLayout are the members that lead to a block. Each is in a variable whose name has the
// prefix _thread_db_.
type tlsLayout struct {
	threadDTV    tlsField // of a thread: its vector of blocks
	vector       tlsField // of a vector: its entries, by module ID; entry 0 is its generation
	generation   tlsField // of entry 0
	block        tlsField // of another entry
	firstList    tlsField // of _rtld_global: the first list of modules
	listLength   tlsField // of a list
	listNext     tlsField
	listModules  tlsField // of a list: its modules, by ID
	moduleSince  tlsField // of a module in a list: the generation that it came with
	moduleMap    tlsField // of a module in a list: its link_map
	mapID        tlsField // of a link_map: the module ID
	mapDistance  tlsField // of a link_map: the distance from the thread pointer
	loaderGlobal uint64   // the address of _rtld_global
}

// fields returns the members by the names of their variables.
func (l *tlsLayout) fields() map[string]*tlsField {
	return map[string]*tlsField{
		"pthread_dtvp":                          &l.threadDTV,
		"dtv_dtv":                               &l.vector,
		"dtv_t_counter":                         &l.generation,
		"dtv_t_pointer_val":                     &l.block,
		"rtld_global__dl_tls_dtv_slotinfo_list": &l.firstList,
		"dtv_slotinfo_list_len":                 &l.listLength,
		"dtv_slotinfo_list_next":                &l.listNext,
		"dtv_slotinfo_list_slotinfo":            &l.listModules,
		"dtv_slotinfo_gen":                      &l.moduleSince,
		"dtv_slotinfo_map":                      &l.moduleMap,
		"link_map_l_tls_modid":                  &l.mapID,
		"link_map_l_tls_offset":                 &l.mapDistance,
	}
}

const (
	tlsFieldPrefix  = "_thread_db_"
	tlsLoaderGlobal = "_rtld_global"
	// maxTLSModules bounds the modules with thread-local storage.
	maxTLSModules = 1 << 16
	// maxTLSElement bounds the bytes of an element, and offsets of members.
	maxTLSElement = 1 << 16
)

// fixedBlock returns the block at the distance from the thread pointer in a link_map. Two
// distances stand for no block: nothing has been decided, or the blocks are allocated on
// demand. They are 0 and -1; where no thread control block keeps 0 from being a distance, they
// are -1 and -2 (glibc's NO_TLS_OFFSET).
func fixedBlock(abi *sdk.ThreadLocal, pointer, distance uint64) (uint64, error) {
	none := uint64(0)
	if abi.Variant == sdk.ThreadLocalVariantI && abi.TCBAbove == 0 {
		none = ^uint64(0)
	}
	switch {
	case distance == none || distance == none-1:
		return 0, errNotAllocated
	case abi.Variant == sdk.ThreadLocalVariantI:
		return pointer + distance, nil
	}
	return pointer - distance, nil
}

// linkMapDynamic is the index of l_ld among the words of a link_map (link.h).
const linkMapDynamic = 2

// tlsModule is a module of glibc's list.
type tlsModule struct {
	id       uint64
	since    uint64 // the generation that it came with
	distance uint64
	dynamic  uint64 // the address of its PT_DYNAMIC
}

// tlsBlocks is a target's description of thread-local storage. It is read when it is first
// needed.
type tlsBlocks struct {
	mu      sync.Mutex
	read    bool
	layout  tlsLayout
	modules []tlsModule
	err     error // why not all modules are known
}

// threadLocal returns the address of an offset in the thread's block of a module.
func (w *walker) threadLocal(ctx context.Context, m *target.Module, offset uint64) (uint64, error) {
	base, err := w.threadBlock(ctx, m, offset)
	if err != nil {
		return 0, fmt.Errorf("thread-local storage of %s: %w", m.Path, err)
	}
	return base + offset, nil
}

func (w *walker) threadBlock(ctx context.Context, m *target.Module, offset uint64) (uint64, error) {
	if m.Object == nil {
		return 0, errors.New(m.Problem)
	}
	if m.Object.IsPE() {
		return w.windowsBlock(ctx, m)
	}
	abi := w.machine.Description.ThreadLocal
	if abi == nil || m.Arch != w.thread.Arch {
		return 0, fmt.Errorf("%s, in a thread of %s: %w", object.DescribeMachine(m.Object.Machine()), w.thread.Arch, locexpr.ErrNoContext)
	}
	segment := programOf(m.Object, elf.PT_TLS)
	if segment == nil {
		return 0, errors.New("it has no segment PT_TLS")
	}
	if offset > segment.MemSize {
		return 0, fmt.Errorf("offset %#x, its segment PT_TLS has %#x bytes", offset, segment.MemSize)
	}
	pointer, err := w.liveRegister(uint64(abi.Pointer))
	if err != nil {
		return 0, fmt.Errorf("thread pointer: %w", err)
	}
	if pointer == 0 {
		return 0, errors.New("the thread pointer is 0")
	}
	base, err := w.listedBlock(ctx, m, pointer)
	if err == nil || errors.Is(err, errNotAllocated) {
		return base, err
	}
	if !isExecutable(m.Object) {
		return 0, err
	}
	return executableBlock(abi, segment, pointer)
}

// executableBlock returns the block of the executable, whose code has the distances of its
// variables from the thread pointer in it.
func executableBlock(abi *sdk.ThreadLocal, segment *object.Program, pointer uint64) (uint64, error) {
	align := max(segment.Align, 1)
	if align&(align-1) != 0 || segment.Address&(align-1) != 0 || segment.MemSize > -align {
		return 0, fmt.Errorf("its segment PT_TLS has %#x bytes at address %#x, with alignment %#x", segment.MemSize, segment.Address, segment.Align)
	}
	if abi.Variant == sdk.ThreadLocalVariantI {
		return pointer + (uint64(abi.TCBAbove)+align-1)&-align, nil
	}
	return pointer - (segment.MemSize+align-1)&-align, nil
}

// listedBlock returns the block of a module in glibc's list.
func (w *walker) listedBlock(ctx context.Context, m *target.Module, pointer uint64) (uint64, error) {
	t := w.process
	t.tls.mu.Lock()
	defer t.tls.mu.Unlock()
	if !t.tls.read {
		if t.tls.err = t.findTLSLayout(m.Object.Machine()); t.tls.err == nil {
			t.tls.err = w.listTLSModules(ctx)
		}
		t.tls.read = ctx.Err() == nil // a walk that was not cancelled may find more
	}
	segment := programOf(m.Object, elf.PT_DYNAMIC)
	if segment == nil {
		return 0, errors.New("it has no segment PT_DYNAMIC")
	}
	dynamic := segment.Address + loadBias(m)
	i := slices.IndexFunc(t.tls.modules, func(x tlsModule) bool { return x.dynamic == dynamic })
	switch {
	case i < 0 && t.tls.err != nil:
		return 0, t.tls.err
	case i < 0:
		return 0, errors.New("it is not in the dynamic loader's list of modules that have some")
	}
	return w.blockOf(ctx, &t.tls.modules[i], pointer)
}

// blockOf returns the block of a module in the list.
func (w *walker) blockOf(ctx context.Context, mod *tlsModule, pointer uint64) (uint64, error) {
	l := &w.process.tls.layout
	abi := w.machine.Description.ThreadLocal
	descriptor, field := pointer, l.threadDTV
	if abi.Variant == sdk.ThreadLocalVariantI {
		// The thread control block begins with it, and glibc's descriptor lies below.
		descriptor, field = pointer-uint64(abi.TCBBelow), tlsField{bits: w.machine.Description.AddressBits}
	}
	vector, err := w.member(ctx, descriptor, field, 0)
	if err != nil {
		return 0, err
	}
	now, err := w.member(ctx, l.vector.element(vector, 0), l.generation, 0)
	if err != nil {
		return 0, err
	}
	// A vector that is older than the module may be too short for it, or have the block of
	// another module, which had the ID before.
	if now >= mod.since {
		block, err := w.member(ctx, l.vector.element(vector, mod.id), l.block, 0)
		if err != nil {
			return 0, err
		}
		// A block that is not allocated is all ones; blocks are aligned.
		if block != 0 && block&1 == 0 {
			return block, nil
		}
	}
	return fixedBlock(abi, pointer, mod.distance)
}

// element returns the address of an element of a member.
func (f tlsField) element(base, index uint64) uint64 {
	return base + uint64(f.offset) + index*uint64(f.bits/8)
}

// member reads an element of a member, which is a number.
func (w *walker) member(ctx context.Context, base uint64, f tlsField, index uint64) (uint64, error) {
	if f.bits > 64 {
		return 0, fmt.Errorf("a number of %d bits at address %#x", f.bits, f.element(base, index))
	}
	return w.word(ctx, f.element(base, index), f.bits)
}

// listTLSModules reads the dynamic loader's list. Where it returns an error, the modules before
// it are kept.
func (w *walker) listTLSModules(ctx context.Context) error {
	t := w.process
	t.tls.modules = nil
	l := &t.tls.layout
	list, err := w.member(ctx, l.loaderGlobal, l.firstList, 0)
	if err != nil {
		return err
	}
	first := uint64(0) // the ID of the list's first entry
	for list != 0 {
		length, err := w.member(ctx, list, l.listLength, 0)
		if err != nil {
			return err
		}
		if length == 0 || length > maxTLSModules-first {
			return fmt.Errorf("the dynamic loader's list of modules at address %#x has %d entries from %d on, expected at most %d in all", list, length, first, maxTLSModules)
		}
		for i := range length {
			if first+i == 0 {
				continue // IDs begin at 1
			}
			m, err := w.tlsModule(ctx, l.listModules.element(list, i))
			if err != nil {
				return err
			}
			if m != nil {
				t.tls.modules = append(t.tls.modules, *m)
			}
		}
		first += length
		if list, err = w.member(ctx, list, l.listNext, 0); err != nil {
			return err
		}
	}
	return nil
}

// tlsModule reads an entry of the list; nil where it has no module.
func (w *walker) tlsModule(ctx context.Context, entry uint64) (*tlsModule, error) {
	l := &w.process.tls.layout
	loaded, err := w.member(ctx, entry, l.moduleMap, 0)
	if err != nil || loaded == 0 {
		return nil, err
	}
	m := &tlsModule{}
	bits := w.machine.Description.AddressBits
	for _, x := range []struct {
		dst   *uint64
		base  uint64
		field tlsField
		index uint64
	}{
		{&m.since, entry, l.moduleSince, 0},
		{&m.distance, loaded, l.mapDistance, 0},
		{&m.id, loaded, l.mapID, 0},
		{&m.dynamic, loaded, tlsField{bits: bits}, linkMapDynamic},
	} {
		if *x.dst, err = w.member(ctx, x.base, x.field, x.index); err != nil {
			return nil, err
		}
	}
	if m.id == 0 || m.id >= maxTLSModules {
		return nil, fmt.Errorf("the module of link_map at address %#x, in the dynamic loader's list of those with some, has ID %d", loaded, m.id)
	}
	return m, nil
}

// findTLSLayout finds glibc's description of itself.
func (p *Process) findTLSLayout(machine uint16) error {
	// The symbols of large programs take time, and glibc's own are in few modules.
	order := slices.Clone(p.Loaded())
	slices.SortStableFunc(order, func(a, b *code.Module) int { return cmp.Compare(rankTLS(a), rankTLS(b)) })
	described, global := false, false
	seen := map[*object.Object]bool{}
	for _, m := range order {
		if m.Object == nil || m.Object.Machine() != machine || seen[m.Object] {
			continue
		}
		seen[m.Object] = true
		// Even with an error there are the symbols that could be read.
		symbols, _ := m.Object.Symbols()
		var layout tlsLayout
		fields := layout.fields()
		for i := range symbols {
			s := &symbols[i]
			name, _, _ := strings.Cut(s.Name, "@")
			if !s.Defined() {
				continue
			}
			if name == tlsLoaderGlobal && !global {
				p.tls.layout.loaderGlobal, global = m.Start(s.Address)
				continue
			}
			name, ok := strings.CutPrefix(name, tlsFieldPrefix)
			if f := fields[name]; ok && f != nil && f.read(m.Object, s.Address) == nil {
				delete(fields, name)
			}
		}
		if len(fields) == 0 && !described {
			layout.loaderGlobal = p.tls.layout.loaderGlobal
			p.tls.layout, described = layout, true
		}
		if described && global {
			return nil
		}
	}
	return fmt.Errorf("how it is laid out is not known: no module has glibc's description of it (%s* and %s)", tlsFieldPrefix, tlsLoaderGlobal)
}

// rankTLS orders the modules of the C library, by their names, before all others.
func rankTLS(m *code.Module) int {
	for _, prefix := range []string{"libc.", "libc-", "ld-", "libpthread"} {
		if strings.HasPrefix(path.Base(m.Path), prefix) {
			return 0
		}
	}
	return 1
}

// read reads the description of a member.
func (f *tlsField) read(o *object.Object, address uint64) error {
	var b [12]byte
	if _, err := o.ReadAddress(b[:], address); err != nil {
		return err
	}
	order := o.ByteOrder()
	got := tlsField{order.Uint32(b[:]), order.Uint32(b[8:])}
	if got.bits == 0 || got.bits%8 != 0 || got.bits/8 > maxTLSElement || got.offset > maxTLSElement {
		return fmt.Errorf("member of %d bits at offset %d", got.bits, got.offset)
	}
	*f = got
	return nil
}

// programOf returns the first program header of a type; nil where there is none.
func programOf(o *object.Object, typ elf.ProgType) *object.Program {
	programs := o.Programs()
	if i := slices.IndexFunc(programs, func(p object.Program) bool { return p.Type == typ }); i >= 0 {
		return &programs[i]
	}
	return nil
}

// isExecutable reports whether an object is an executable, at fixed addresses or not, by its
// own marks.
func isExecutable(o *object.Object) bool {
	if o.Type() == elf.ET_EXEC {
		return true
	}
	dynamic := programOf(o, elf.PT_DYNAMIC)
	if dynamic == nil {
		return false
	}
	b, err := o.ProgramData(*dynamic)
	if err != nil {
		return false
	}
	size := o.AddressSize()
	word := func(b []byte) uint64 {
		if size == 8 {
			return o.ByteOrder().Uint64(b)
		}
		return uint64(o.ByteOrder().Uint32(b))
	}
	for ; len(b) >= 2*size; b = b[2*size:] {
		switch elf.DynTag(word(b)) {
		case elf.DT_NULL:
			return false
		case elf.DT_FLAGS_1:
			return word(b[size:])&uint64(elf.DF_1_PIE) != 0
		}
	}
	return false
}
