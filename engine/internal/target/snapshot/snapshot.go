// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads and writes snapshots: ZIP files with the threads, registers,
// modules and some of the memory of a process, its waves on accelerators
// included. docs/snapshot.md describes the format, docs/snapshot.schema.json
// its JSON.
//
// A snapshot is mapped. Stored members are read in place, and deflated members
// are decompressed when they are first needed. Read-only memory that a snapshot
// leaves out because a code object has it is read from the code object; all
// other memory is unknown, and never guessed.
package snapshot

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// ErrNotSnapshot means that a file is not a snapshot. An error that wraps it names the file's
// format if it is known.
var ErrNotSnapshot = errors.New("not a snapshot")

// documentName is the member that makes a ZIP file a snapshot.
const documentName = "snapshot.json"

// maxValue bounds the size of one value of snapshot.json: all registers of a thread.
const maxValue = 256 << 20

// maxProblems bounds the problems that a snapshot lists.
const maxProblems = 100

// Options sets where a snapshot's files and architectures are found.
type Options struct {
	// Finder opens the files of modules that are not in the snapshot.
	Finder object.Finder
	// Describe returns the description of an architecture by its name, which defines
	// registers and address spaces. Its error is the reason why threads have no registers.
	Describe func(arch string) (*sdk.Description, error)
}

// Snapshot is an opened snapshot. It implements target.ScopedMemory. Except for Close it may be
// used concurrently.
type Snapshot struct {
	path    string
	mapping *object.Mapping // nil for bytes in memory
	archive *archive
	finder  object.Finder
	archs   archs

	threads  *target.ThreadList
	repeated map[uint64]bool // handles of threads whose IDs others have, too
	modules  []*target.Module
	objects  []*object.Object // to be closed
	opened   opened
	memory   memory
	placed   []trace.Segment // of all modules, by start, without overlap
	files    target.FileBytes
	mappings []target.Mapping // by address, without overlap

	signal   int
	fault    uint64 // address of the fault of the thread with the signal, where hasFault
	hasFault bool
	machine  uint16
	facts    *trace.Facts
	problems []string
	silenced int // number of problems beyond maxProblems
}

var (
	_ target.ScopedMemory = (*Snapshot)(nil)
	_ target.FileMemory   = (*Snapshot)(nil)
	_ target.Mapper       = (*Snapshot)(nil)
	_ target.Sized        = (*Snapshot)(nil)
	_ target.Numerous     = (*Snapshot)(nil)
)

// OpenMapped reads the snapshot.json of a mapped snapshot, and opens the code objects of its modules.
// The error for a file that is no snapshot wraps ErrNotSnapshot and names the file's format.
// Info().Problems lists the defects of single threads, modules and pieces of memory. Close closes the
// mapping, and so does an error.
func OpenMapped(m *object.Mapping, options Options) (*Snapshot, error) {
	s := &Snapshot{path: m.Path(), mapping: m}
	if err := s.open(m.Data(), options); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open reads all except the memory.
func (s *Snapshot) open(data []byte, options Options) error {
	s.finder = options.Finder
	s.archs = archs{describe: options.Describe, byName: map[string]*arch{}}
	if err := object.Guard(func() error { return s.read(data) }); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if s.silenced > 0 {
		s.problems = append(s.problems, fmt.Sprintf("%s: %d more problems", s.path, s.silenced))
	}
	return nil
}

func (s *Snapshot) read(data []byte) (err error) {
	if !bytes.HasPrefix(data, []byte(localMagic)) {
		return notSnapshot(data)
	}
	if s.archive, err = openArchive(data); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSnapshot, err)
	}
	if s.archive.members[documentName] == nil {
		return fmt.Errorf("%w: the file is a ZIP file without a member %s", ErrNotSnapshot, documentName)
	}
	m, err := s.archive.document()
	if err != nil {
		return err
	}
	pool := newMemoryPool(s.archive.limit())
	d, err := readDocument(m, func(t *threadEntry) error { return s.addThread(t, pool) }, pool)
	if err != nil {
		return err
	}
	s.threads = pool.threads.List()
	s.findRepeated()
	s.addModules(d)
	s.addCrash(d)
	s.addMappings(d.mappings)
	s.addMemory(d.pieces)
	return nil
}

// magics has the first bytes of files that users take for snapshots.
var magics = []struct{ magic, what string }{
	{"PK\x05\x06", "a ZIP file without a member " + documentName},
	{"{", "JSON by itself: a snapshot is a ZIP file that has it as its member " + documentName},
}

// notSnapshot returns the error for data that is no snapshot.
func notSnapshot(data []byte) error {
	for _, m := range magics {
		if bytes.HasPrefix(data, []byte(m.magic)) {
			return fmt.Errorf("%w: the file is %s", ErrNotSnapshot, m.what)
		}
	}
	if kind := filekind.Of(data); kind.What != "" {
		return fmt.Errorf("%w: the file is %s", ErrNotSnapshot, kind.What)
	}
	return fmt.Errorf("%w: offset 0x0: the file begins with %q, expected %q", ErrNotSnapshot, data[:min(len(data), 4)], localMagic)
}

// problem adds a sentence to the problems.
func (s *Snapshot) problem(format string, args ...any) {
	if s.silence() {
		return
	}
	s.problems = append(s.problems, s.path+": "+fmt.Sprintf(format, args...))
}

// silence reports whether there are too many problems already, and counts one more if so.
func (s *Snapshot) silence() bool {
	full := len(s.problems) >= maxProblems
	if full {
		s.silenced++
	}
	return full
}

// Info describes the process as a whole. Machine is the ELF machine of the first module whose
// code object is known.
func (s *Snapshot) Info() trace.Target {
	return trace.Target{
		Kind:            trace.Snapshot,
		Path:            s.path,
		Signal:          s.signal,
		FaultAddress:    s.fault,
		HasFaultAddress: s.hasFault,
		Machine:         s.machine,
		Problems:        s.problems,
		Facts:           s.facts,
	}
}

// Modules returns the code objects that were loaded, by address.
func (s *Snapshot) Modules() []*target.Module { return s.modules }

// Threads returns the threads in the snapshot's order.
func (s *Snapshot) Threads() []*trace.Thread { return s.threads.Threads() }

// ThreadList returns the threads, of which many are packed.
func (s *Snapshot) ThreadList() *target.ThreadList { return s.threads }

// ReadMemory reads the default address space. Other spaces have instances for threads: see
// ReadScoped.
func (s *Snapshot) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d, address %#x, of no thread: %w", space, address, target.ErrNoMemory)
	}
	return s.readGlobal(address, buf)
}

// FromFile returns the module whose file has memory that no piece has. Code objects in the
// snapshot are not files.
func (s *Snapshot) FromFile(address uint64) (m *target.Module, n uint64) {
	err := object.Guard(func() error {
		b, module, err := s.global(address)
		if module != nil && module.Object.Path() != "" {
			m = module
		}
		n = uint64(len(b))
		return err
	})
	if err != nil {
		return nil, 1 // reading it returns the error
	}
	return m, max(n, 1)
}

// MemorySize returns the size of the members that pieces of memory refer to, each counted once.
func (s *Snapshot) MemorySize() uint64 {
	size, seen := uint64(0), map[*member]bool{}
	for i := range s.memory.pieces {
		if m := s.memory.pieces[i].member; m != nil && !seen[m] {
			seen[m] = true
			size += m.size()
		}
	}
	return min(size, inflatedFloor+inflatedRatio*uint64(len(s.archive.data)))
}

// Close unmaps the snapshot and closes the code objects. Nothing that the snapshot returned may
// be used afterwards.
func (s *Snapshot) Close() error {
	var errs []error
	for _, o := range s.objects {
		errs = append(errs, o.Close())
	}
	s.objects = nil
	return errors.Join(append(errs, s.mapping.Close())...)
}
