// SPDX-License-Identifier: Apache-2.0

// Package pdb reads PDB files: functions, lines, inlined calls and frame data of Windows programs.
//
// Addresses are virtual: the base that the caller gives plus the RVA in the image.
//
// A file is mapped, and little of it is read before it is needed: a query finds the module (the
// object file, or what link-time optimization made of all) by the section contributions, indexes
// the functions and line tables of that module once, and reads the records of the function at
// the address.
//
// The format is described by LLVM ("The PDB File Format") and by the headers cvinfo.h and
// langapi of Microsoft's sources of its PDB library.
package pdb

import (
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

// maxProblems bounds the problems that are kept.
const maxProblems = 32

// File is a PDB file. It may be used concurrently.
type File struct {
	container *msf.File
	mapping   *object.Mapping // nil: the bytes are the caller's
	release   func()          // releases the pages that were read
	base      uint64

	identity Identity
	named    map[string]int // streams by name
	dbi      *dbi

	names     func() *names
	publics   func() *publics
	frameData func() *frameTables
	types     func() *idTypes
	codeMap   func() *codeMap

	moduleNumbers func() map[string]int

	kept      atomic.Int64 // bytes of memory that the indexes take
	read      atomic.Int64 // bytes of the file since pages were released
	openTypes atomic.Pointer[idTypes]

	mu       sync.Mutex
	problems problems.List[string]
	inlinees nameCache
}

// Open opens the file at a path, for an image whose base is the address base.
func Open(path string, base uint64) (*File, error) {
	m, err := object.Map(path)
	if err != nil {
		return nil, err
	}
	f, err := open(path, m.Data(), base, func() { m.ReleasePages(0, uint64(len(m.Data()))) })
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// OpenObject is Open for a file that is an object, which must stay open.
func OpenObject(o *object.Object, base uint64) (*File, error) {
	data := o.Data()
	return open(o.Name(), data, base, func() { o.ReleasePages(data) })
}

// New is Open for bytes that are in memory, and stay as they are. Errors begin with the name.
func New(name string, data []byte, base uint64) (*File, error) {
	return open(name, data, base, func() {})
}

// open opens a file; release releases the pages that were read.
func open(name string, data []byte, base uint64, release func()) (f *File, err error) {
	err = object.Guard(func() error {
		c, err := msf.New(name, data)
		if err != nil {
			return err
		}
		f = &File{container: c, base: base, release: release}
		return f.readHeaders()
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// readHeaders reads what leads to all else.
func (f *File) readHeaders() (err error) {
	var features []byte
	if f.identity, f.named, features, err = readInfo(f.container); err != nil {
		return err
	}
	f.readFeatures(features)
	if f.dbi, err = f.readDBI(); err != nil {
		return err
	}
	f.identity.Age, f.identity.Machine = f.dbi.age, f.dbi.machine
	f.names = sync.OnceValue(f.readNames)
	f.publics = sync.OnceValue(f.readPublics)
	f.frameData = sync.OnceValue(f.readFrameTables)
	f.types = sync.OnceValue(f.readTypes)
	f.moduleNumbers = sync.OnceValue(f.readModuleNumbers)
	f.codeMap = sync.OnceValue(f.readCodeMap)
	return nil
}

// Identify reads the identity of the file at a path, and nothing else.
func Identify(path string) (id Identity, err error) {
	f, err := Open(path, 0)
	if err != nil {
		return id, err
	}
	id = f.identity
	return id, f.Close()
}

// Close unmaps the file, which must not be used afterwards.
func (f *File) Close() error { return f.mapping.Close() }

// Name returns the file's name, with which errors begin.
func (f *File) Name() string { return f.container.Name() }

// Identity returns the identity of the file.
func (f *File) Identity() Identity { return f.identity }

// Problems are the faults of the file so far; answers leave the faulty parts out.
func (f *File) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems.Kept()
}

// note adds an error to the Problems, once; nil is none.
func (f *File) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text := err.Error()
	for _, p := range f.problems.Kept() {
		if p == text {
			return
		}
	}
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(text)
	}
}

// MemorySize is about how many bytes the data read so far takes, without the mapped file.
func (f *File) MemorySize() uint64 {
	size := uint64(f.kept.Load()) //nolint:gosec // not negative
	if t := f.openTypes.Load(); t != nil {
		for _, x := range []*codeview.Types{t.types, t.ids} {
			if x != nil {
				size += x.MemorySize()
			}
		}
	}
	return size
}

// ReleasePages releases the pages of the file that were read so far.
func (f *File) ReleasePages() { f.release() }

// restBytes is how much is read before the pages are released.
const restBytes = 16 << 20

// passed counts bytes of the file that were read, and releases their pages from time to time: they
// would count as memory of the process.
func (f *File) passed(n int64) {
	if f.read.Add(n) >= restBytes {
		f.read.Store(0)
		f.ReleasePages()
	}
}

// guard runs read, which reads bytes of the file. What the file lacks is noted.
func (f *File) guard(read func()) {
	f.note(object.Guard(func() error { read(); return nil }))
}

// idTypes are the streams of types and of identifiers. Either may be nil.
type idTypes struct{ types, ids *codeview.Types }

// Numbers of streams that every file has.
const (
	infoStream = 1
	tpiStream  = 2
	dbiStream  = 3
	ipiStream  = 4
	noStream   = 0xffff
)

func (f *File) readTypes() *idTypes {
	t := &idTypes{}
	var err error
	if s := f.container.Stream(tpiStream); s != nil && s.Size() > 0 {
		if t.types, err = codeview.NewTypes(s, nil); err != nil {
			f.note(err)
		}
	}
	if s := f.container.Stream(ipiStream); s != nil && s.Size() > 0 {
		if t.ids, err = codeview.NewTypes(s, t.types); err != nil {
			f.note(err)
		}
	}
	f.openTypes.Store(t)
	return t
}
