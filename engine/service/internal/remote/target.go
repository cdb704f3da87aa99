// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Target is a target of another machine. It implements target.ScopedMemory, target.Mapper,
// target.FileMemory and target.Sized, and has the Finder that engine.Attach asks for.
type Target struct {
	host    *Host
	head    *Head
	threads []*trace.Thread
	modules []*target.Module
	objects []*object.Object // to be closed
	finder  object.Finder
	memory  memory
	files   target.FileBytes // of modules whose files only this machine has

	mu       sync.Mutex
	mappings map[mappingKey]*pb.MappingAnswer
	fromFile []fileRange // by start, without overlap
}

type mappingKey struct {
	address  uint64
	isAround bool
}

// fileRange is a range of memory that a module's file has, or that none has.
type fileRange struct {
	start, size uint64
	module      *target.Module // nil: no file
}

var (
	_ target.ScopedMemory = (*Target)(nil)
	_ target.Mapper       = (*Target)(nil)
	_ target.FileMemory   = (*Target)(nil)
	_ target.Sized        = (*Target)(nil)
)

// maxOpening bounds the files that are requested at a time.
const maxOpening = 16

// Open opens a target, and asks for its files. finder finds files of this machine, and has
// the open objects.
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
	opening.SetLimit(maxOpening)
	for i := range head.Modules {
		m := &head.Modules[i]
		t.modules[i] = &target.Module{
			Module: trace.Module{
				ID:        i,
				Path:      m.Path,
				BuildID:   m.BuildID,
				IsAssumed: m.IsAssumed,
				Symbols:   m.Symbols,
				Version:   m.Version,
				Base:      m.Base,
				Size:      m.Size,
				Arch:      m.Arch,
				Processor: m.Processor,
				File:      m.File,
				Problem:   m.Problem,
				Segments:  m.Segments,
			},
			Tried: m.Tried,
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

// openModule opens the files of a module.
func (t *Target) openModule(index uint32, described *Module, m *target.Module) (err error) {
	if described.HasSource {
		m.SourceModule = sync.OnceValues(func() ([]byte, error) {
			b, _, err := t.host.contents(&pb.FileQuestion{Kind: pb.FileQuestion_SOURCE_MODULE, Module: index})
			return b, err
		})
	}
	if len(described.Companions) > 0 {
		m.Companion = t.companion(index, described.Companions)
	}
	if described.Object == nil {
		t.findHere(described, m)
		return nil
	}
	o, err := t.openObject(index, described.Object)
	if err != nil {
		return fmt.Errorf("module %q: %w", described.Path, err)
	}
	m.Object = o
	t.host.own(o, index, described.Object)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.objects = append(t.objects, o)
	return nil
}

func (t *Target) openObject(index uint32, described *Object) (o *object.Object, err error) {
	q := &pb.FileQuestion{Kind: pb.FileQuestion_OBJECT, Module: index, Size: described.Size}
	if described.InFile { // an image of memory is in no store of files
		q.BuildId = described.BuildID
	}
	formats := t.finder.Formats
	if !described.IsForeign {
		formats = nil
	}
	if described.InFile {
		if o, err = t.openFile(q, described.Name, formats); err != nil {
			return nil, err
		}
	} else {
		b, _, err := t.host.contents(q)
		if err != nil {
			return nil, err
		}
		if o, err = t.finder.Store.Image(described.Name, b, formats); err != nil {
			return nil, err
		}
	}
	if string(o.BuildID()) != string(described.BuildID) {
		id := o.BuildID()
		_ = o.Close()
		return nil, fmt.Errorf("its code object has build ID %x, expected %x", id, described.BuildID)
	}
	return o, nil
}

// openFile opens the file of a module. Its outline comes at once, and the rest when it is needed.
func (t *Target) openFile(q *pb.FileQuestion, name string, formats object.Formats) (*object.Object, error) {
	first := &pb.FileQuestion{Kind: q.Kind, Module: q.Module, Size: q.Size, BuildId: q.BuildId, Outline: true}
	path, came, err := t.host.fileParts(first)
	if err != nil {
		return nil, err
	}
	o, err := t.finder.Store.OpenAs(path, name, formats)
	if err != nil || len(came.GetThere()) == 0 {
		return o, err
	}
	var there []object.Extent
	for _, e := range came.GetThere() {
		there = append(there, object.Extent{Offset: e.GetOffset(), Size: e.GetSize()})
	}
	o.SetRest(there, func(list []object.Extent, isRest bool) error {
		more := &pb.FileQuestion{Kind: q.Kind, Module: q.Module, Size: q.Size, BuildId: q.BuildId}
		for _, e := range list {
			more.Extents = append(more.Extents, &pb.FileExtent{Offset: e.Offset, Size: e.Size})
		}
		now, came, err := t.host.fileParts(more)
		if err == nil && (now != path || isRest && len(came.GetThere()) > 0) {
			err = fmt.Errorf("the machine of the target: not all of %s came that was missing", name)
		}
		return err
	})
	return o, nil
}

// findHere finds a file on this machine that the machine of the target lacks.
func (t *Target) findHere(described *Module, m *target.Module) {
	if len(described.BuildID) == 0 {
		return
	}
	finder := t.finder
	finder.Owner = nil
	found := finder.Find(described.Path, described.BuildID, false)
	if found.Object == nil {
		return
	}
	if !found.Checked {
		_ = found.Object.Close()
		return
	}
	m.Object, m.File, m.Problem, m.Tried = found.Object, found.Path, "", nil
	for i := range m.Segments {
		m.Segments[i].Executable = target.HoldsCode(m.Object, &m.Segments[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.objects = append(t.objects, found.Object)
}

// companion returns a function that reads a companion file of a code object from the
// target's machine.
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
func (t *Target) Info() trace.Target { return t.head.Info }

// Modules implements target.Target.
func (t *Target) Modules() []*target.Module { return t.modules }

// Threads implements target.Target.
func (t *Target) Threads() []*trace.Thread { return t.threads }

// MemorySize implements target.Sized.
func (t *Target) MemorySize() uint64 { return t.head.MemorySize }

// Finder returns the finder of the target's files.
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
			// The bytes behind a file's may be the target's again.
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
func (t *Target) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace || th == nil || th.Handle >= uint64(len(t.threads)) {
		return t.ReadMemory(space, address, buf)
	}
	own := instance{space: space, thread: int64(th.Handle)} //nolint:gosec // an index
	if len(th.LaneStates) > 0 {
		own.lane = int64(th.Lead) + 1
	}
	return t.memory.read(own, address, buf)
}

// Mapped implements target.Target.
func (t *Target) Mapped(address uint64) (mapped, executable bool) {
	a := t.mapping(mappingKey{address, false})
	return a.GetMapped(), a.GetExecutable()
}

// Around implements target.Mapper.
func (t *Target) Around(address uint64) (below, containing, above *target.Mapping) {
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
		return nil // the host has recorded the error
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mappings) >= maxMappings {
		clear(t.mappings)
	}
	t.mappings[key] = a.GetMapping()
	return a.GetMapping()
}

// FromFile implements target.FileMemory: it tells what the machine of the target reads from files.
func (t *Target) FromFile(address uint64) (m *target.Module, n uint64) {
	t.mu.Lock()
	i := sort.Search(len(t.fromFile), func(i int) bool { return t.fromFile[i].start > address })
	if i > 0 && address-t.fromFile[i-1].start < t.fromFile[i-1].size {
		r := t.fromFile[i-1]
		t.mu.Unlock()
		return r.module, r.size - (address - r.start)
	}
	end := ^uint64(0)
	if i < len(t.fromFile) {
		end = t.fromFile[i].start
	}
	t.mu.Unlock()
	a, _, err := t.host.question(&pb.Question{About: &pb.Question_Mapping{Mapping: &pb.MappingQuestion{Address: address, File: true}}})
	if err != nil {
		return nil, 1 // the host has recorded the error
	}
	r := fileRange{start: address, size: max(1, min(a.GetMapping().GetFromFile(), end-address))}
	if index := a.GetMapping().Module; index != nil && uint64(*index) < uint64(len(t.modules)) {
		r.module = t.modules[*index]
	}
	t.addFileRange(r)
	return r.module, r.size
}

// addFileRange keeps a range, unless another goroutine has kept one that overlaps it.
func (t *Target) addFileRange(r fileRange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.fromFile) >= maxMappings {
		t.fromFile = nil
	}
	i := sort.Search(len(t.fromFile), func(i int) bool { return t.fromFile[i].start > r.start })
	if i > 0 && r.start-t.fromFile[i-1].start < t.fromFile[i-1].size || i < len(t.fromFile) && t.fromFile[i].start-r.start < r.size {
		return
	}
	t.fromFile = slices.Insert(t.fromFile, i, r)
}

func mappingOf(m *pb.MemoryMapping) *target.Mapping {
	if m == nil {
		return nil
	}
	return &target.Mapping{
		Start: m.Start, End: m.End, IsReadable: m.Readable, IsWritable: m.Writable, IsExecutable: m.Executable, File: string(m.File), Offset: m.Offset,
	}
}

// Close implements target.Target. It ends the asking.
func (t *Target) Close() error {
	t.host.end()
	var errs []error
	for _, o := range t.objects {
		errs = append(errs, o.Close())
	}
	t.objects = nil
	return errors.Join(errs...)
}
