// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// Target is a target of another machine. It implements target.ScopedMemory, target.Mapper
// and target.Sized, and says where its files are as engine.Attach asks for it.
type Target struct {
	host    *Host
	head    *Head
	threads []*target.Thread
	modules []*target.Module
	objects []*object.Object // to be closed
	finder  object.Finder
	memory  memory
	files   target.FileBytes // of modules whose files are on this machine alone

	mu       sync.Mutex
	mappings map[mappingKey]*pb.MappingAnswer
}

type mappingKey struct {
	address  uint64
	isAround bool
}

var (
	_ target.ScopedMemory = (*Target)(nil)
	_ target.Mapper       = (*Target)(nil)
	_ target.Sized        = (*Target)(nil)
)

// maxAsked is how many files are asked for at a time.
const maxAsked = 16

// Open opens a target, whose files it asks for. finder finds those of this machine, and has
// the objects that are open.
func (h *Host) Open(head *Head, ask Ask, finder object.Finder) (*Target, error) {
	h.begin(ask, finder)
	t := &Target{host: h, head: head, finder: finder, mappings: map[mappingKey]*pb.MappingAnswer{}}
	t.finder.Owner = h
	t.memory.ask = h.question
	for i := range head.Threads {
		t.threads = append(t.threads, &head.Threads[i])
	}
	t.modules = make([]*target.Module, len(head.Modules))
	var opening errgroup.Group
	opening.SetLimit(maxAsked)
	for i := range head.Modules {
		m := &head.Modules[i]
		t.modules[i] = &target.Module{
			ID: i, Path: m.Path, BuildID: m.BuildID, Symbols: m.Symbols, Version: m.Version, Base: m.Base, Size: m.Size, Arch: m.Arch, Processor: m.Processor,
			File: m.File, Problem: m.Problem, Tried: m.Tried, Segments: m.Segments,
		}
		opening.Go(func() error { return t.openModule(uint32(i), m, t.modules[i]) }) //nolint:gosec // bounded
	}
	if err := opening.Wait(); err != nil {
		_ = t.Close()
		return nil, err
	}
	var here []*target.Module
	for i, m := range t.modules {
		if m.Object != nil && head.Modules[i].Object == nil {
			here = append(here, m)
		}
	}
	t.files = target.NewFileBytes(here)
	return t, nil
}

// openModule opens what a module has.
func (t *Target) openModule(index uint32, said *Module, m *target.Module) (err error) {
	if said.HasSource {
		m.SourceModule = sync.OnceValues(func() ([]byte, error) {
			b, _, err := t.host.contents(&pb.FileQuestion{Kind: pb.FileQuestion_SOURCE_MODULE, Module: index})
			return b, err
		})
	}
	if len(said.Companions) > 0 {
		m.Companion = t.companion(index, said.Companions)
	}
	if said.Object == nil {
		t.findHere(said, m)
		return nil
	}
	o, err := t.openObject(index, said.Object)
	if err != nil {
		return fmt.Errorf("module %q: %w", said.Path, err)
	}
	m.Object = o
	t.host.own(o, index, said.Object)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.objects = append(t.objects, o)
	return nil
}

func (t *Target) openObject(index uint32, said *Object) (o *object.Object, err error) {
	q := &pb.FileQuestion{Kind: pb.FileQuestion_OBJECT, Module: index, Size: said.Size}
	if said.InFile { // an image of memory is no file that others have
		q.BuildId = said.BuildID
	}
	formats := t.finder.Formats
	if !said.IsForeign {
		formats = nil
	}
	if said.InFile {
		path, _, err := t.host.file(q)
		if err != nil {
			return nil, err
		}
		o, err = t.finder.Store.OpenAs(path, said.Name, formats)
		if err != nil {
			return nil, err
		}
	} else {
		b, _, err := t.host.contents(q)
		if err != nil {
			return nil, err
		}
		if o, err = t.finder.Store.Image(said.Name, b, formats); err != nil {
			return nil, err
		}
	}
	if string(o.BuildID()) != string(said.BuildID) {
		id := o.BuildID()
		_ = o.Close()
		return nil, fmt.Errorf("its code object has build ID %x, expected %x", id, said.BuildID)
	}
	return o, nil
}

// findHere finds a file on this machine that the target's does not have.
func (t *Target) findHere(said *Module, m *target.Module) {
	if len(said.BuildID) == 0 {
		return
	}
	finder := t.finder
	finder.Owner = nil
	found := finder.Find(said.Path, said.BuildID, false)
	if found.Object == nil {
		return
	}
	if !found.Checked {
		_ = found.Object.Close()
		return
	}
	m.Object, m.File, m.Problem, m.Tried = found.Object, found.Path, "", nil
	for i := range m.Segments {
		m.Segments[i].Executable = m.Segments[i].HoldsCode(m.Object)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.objects = append(t.objects, found.Object)
}

// companion reads what the target's machine has beside a code object.
func (t *Target) companion(index uint32, suffixes []string) func(suffix string) (string, []byte, error) {
	return func(suffix string) (string, []byte, error) {
		for _, s := range suffixes {
			if s == suffix {
				b, name, err := t.host.contents(&pb.FileQuestion{Kind: pb.FileQuestion_COMPANION, Module: index, Suffix: suffix})
				return name, b, err
			}
		}
		return "", nil, fmt.Errorf("%s: %w", suffix, errAbsent)
	}
}

// Info implements target.Target.
func (t *Target) Info() target.Info { return t.head.Info }

// Modules implements target.Target.
func (t *Target) Modules() []*target.Module { return t.modules }

// Threads implements target.Target.
func (t *Target) Threads() []*target.Thread { return t.threads }

// MemorySize implements target.Sized.
func (t *Target) MemorySize() uint64 { return t.head.MemorySize }

// Finder says where the files of the target are.
func (t *Target) Finder() object.Finder { return t.finder }

// ReadMemory implements target.Target.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n, err := t.memory.read(instance{space: space, thread: noThread}, address, buf)
	if err == nil || space != locexpr.DefaultSpace || len(t.files) == 0 || !errors.Is(err, target.ErrNoMemory) {
		return n, err
	}
	for n < len(buf) {
		k := 0
		if err := object.Guard(func() error {
			b, _, _ := t.files.At(address + uint64(n))
			k = copy(buf[n:], b)
			return nil
		}); err != nil {
			return n, err
		}
		if k == 0 {
			// What is behind a file's bytes may be the target's again.
			k, err = t.memory.read(instance{space: space, thread: noThread}, address+uint64(n), buf[n:])
			if k == 0 {
				return n, err
			}
		}
		n += k
	}
	return n, nil
}

// ReadScoped implements target.ScopedMemory.
func (t *Target) ReadScoped(space locexpr.AddressSpace, th *target.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace || th == nil || th.Handle >= uint64(len(t.threads)) {
		return t.ReadMemory(space, address, buf)
	}
	return t.memory.read(instance{space, int64(th.Handle)}, address, buf) //nolint:gosec // an index
}

// Mapped implements target.Target.
func (t *Target) Mapped(address uint64) (mapped, executable bool) {
	a := t.mapping(mappingKey{address, false})
	return a.GetMapped(), a.GetExecutable()
}

// Around implements target.Mapper.
func (t *Target) Around(address uint64) (below, at, above *target.Mapping) {
	a := t.mapping(mappingKey{address, true})
	return mappingOf(a.GetBelow()), mappingOf(a.GetAt()), mappingOf(a.GetAbove())
}

// maxMappings bounds the answers about mappings that are kept.
const maxMappings = 1 << 16

func (t *Target) mapping(key mappingKey) *pb.MappingAnswer {
	t.mu.Lock()
	known := t.mappings[key]
	t.mu.Unlock()
	if known != nil {
		return known
	}
	a, _, err := t.host.question(&pb.Question{About: &pb.Question_Mapping{Mapping: &pb.MappingQuestion{Address: key.address, Around: key.isAround}}})
	if err != nil {
		return nil // the host has noted it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mappings) >= maxMappings {
		clear(t.mappings)
	}
	t.mappings[key] = a.GetMapping()
	return a.GetMapping()
}

func mappingOf(m *pb.MemoryMapping) *target.Mapping {
	if m == nil {
		return nil
	}
	return &target.Mapping{
		Start: m.Start, End: m.End, IsReadable: m.Readable, IsWritable: m.Writable, IsExecutable: m.Executable, File: string(m.File), Offset: m.Offset,
	}
}

// Close implements target.Target. Nobody is asked any more.
func (t *Target) Close() error {
	t.host.end()
	var errs []error
	for _, o := range t.objects {
		errs = append(errs, o.Close())
	}
	t.objects = nil
	return errors.Join(errs...)
}
