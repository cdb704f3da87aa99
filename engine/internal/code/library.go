// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// DefaultBytes is how much memory a Library keeps for its code objects: the debug information of
// a browser and its libraries fits.
const DefaultBytes = 1 << 30

// A Library holds the code objects of an engine. It may be used concurrently.
//
// A code object is shared by the targets that have the same file loaded, for the
// same architecture and processor, under the same path, and that have the same
// folders to look for its debug file in. Code that is in no file, is laid out by a target, or
// has parts that only a target has, is that target's alone.
type Library struct {
	plugins *plugin.Manager
	most    uint64    // bytes
	rows    *rowCache // has no lock
	numbers atomic.Uint64
	uses    atomic.Uint64 // counts; see usage.used
	bytes   atomic.Int64  // of all objects
	misses  atomic.Uint64 // of rows
	symbols symbolFiles

	noNames atomic.Bool // see ExpectNoNames

	mu       sync.Mutex // guards the rest; taken after Object.mu
	machines map[string]*Machine
	objects  map[objectKey]*Object
	hits     uint64             // shared objects that were loaded again
	news     uint64             // shared objects that were made
	numbered map[uint64]*Object // by number, while they are open
}

// ExpectNoNames has symbols not read in advance for names, which will hardly be needed.
func (l *Library) ExpectNoNames() { l.noNames.Store(true) }

// NewLibrary makes a library whose code objects keep about so many bytes at most;
// 0 is DefaultBytes. Beyond that the least used are forgotten.
func NewLibrary(plugins *plugin.Manager, bytes uint64) *Library {
	l := &Library{
		plugins: plugins, most: cmp.Or(bytes, DefaultBytes), rows: new(rowCache),
		machines: map[string]*Machine{}, objects: map[objectKey]*Object{}, numbered: map[uint64]*Object{},
	}
	l.symbols.library = l
	return l
}

// Machine returns the architecture of a name. No plugin is started for it.
func (l *Library) Machine(name string) (*Machine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.machines[name]; m != nil {
		return m, nil
	}
	a, err := l.plugins.Find(name)
	if err != nil {
		return nil, err
	}
	m := newMachine(a)
	l.machines[name] = m
	return m, nil
}

// Loading adds to a target.Module. All of it is optional.
type Loading struct {
	// Finder finds separate debug files and the files beside a code object.
	Finder *object.Finder
	// Processor is the processor of the code, where the module does not name it.
	Processor string
	// Target answers the questions of a plugin, for code objects that are this target's
	// alone.
	Target sdk.Engine
	// ReadMemory reads the target's memory, for code that is in no file.
	ReadMemory func(address uint64, buf []byte) (int, error)
	// IsAlone: the code object is not shared.
	IsAlone bool
	// JIT is the JIT code; nil: the code is none.
	JIT *JIT
}

// JIT is a function of JIT code.
type JIT struct {
	// Functions know its name and where it ends.
	Functions FunctionSource
	// Read reads its bytes, by its address.
	Read func(address uint64, buf []byte) (int, error)
}

// A FunctionSource knows names and positions, and where functions lie.
type FunctionSource interface {
	symbol.Source
	// Function returns the function that contains an address.
	Function(address uint64) (symbol.Symbol, bool)
}

// Load loads a module of a target. Module.Close releases it.
func (l *Library) Load(m *target.Module, o Loading) *Module {
	loaded := &Module{Module: m, Code: l.object(m, &o)}
	loaded.Code.touch()
	loaded.place()
	return loaded
}

// object returns the code object of a module, with one user more.
func (l *Library) object(m *target.Module, load *Loading) *Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isShared(m, load) {
		o := l.newObject(m, load, objectKey{})
		o.memory = newTargetMemory(m, load)
		return o
	}
	key := objectKey{m.Object, m.Arch, cmp.Or(m.Processor, load.Processor), m.Path, ""}
	if load.Finder != nil {
		key.folders = strings.Join(append([]string{load.Finder.Sysroot}, load.Finder.FoldersOf(m.Path)...), "\x00")
		if load.Finder.Owner != nil {
			key.folders += "\x00" + load.Finder.Owner.Key(m.Object)
		}
	}
	if o := l.objects[key]; o != nil {
		l.hits++
		o.usage.users++
		return o
	}
	l.news++
	o := l.newObject(m, load, key)
	l.objects[key] = o
	return o
}

// isShared reports whether a module's code depends on nothing but its file.
func isShared(m *target.Module, o *Loading) bool {
	return m.Object != nil && m.Companion == nil && m.SourceModule == nil && o.JIT == nil && !o.IsAlone && hasOwnCode(m.Object)
}

// hasOwnCode reports whether the code of an object is in its file as it is executed. Relocatable
// objects are relocated by their loader, and packed programs write their code when they start.
func hasOwnCode(o *object.Object) bool {
	if o.IsELF() && o.IsRelocatable() {
		return false
	}
	return !slices.ContainsFunc(o.Segments(), func(s object.Segment) bool { return s.Executable() && s.FileSize < s.MemSize })
}

// newObject makes the object of a module. The caller holds mu.
func (l *Library) newObject(m *target.Module, load *Loading, key objectKey) *Object {
	o := newObject(l, m.Object, identity{
		number: l.numbers.Add(1), key: key,
		path: m.Path, arch: m.Arch, processor: cmp.Or(m.Processor, load.Processor),
		isUnmapped: m.Object == nil && m.Path == "" && len(m.BuildID) == 0,
		buildID:    m.BuildID, symbolID: m.Symbols,
	})
	if load.Finder != nil {
		o.finder = *load.Finder
	}
	l.numbered[o.number] = o
	return o
}

// numberedObject returns the open object of a number; nil where there is none.
func (l *Library) numberedObject(number uint64) *Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbered[number]
}

// release removes a user of an object. An object without users stays while the library has not
// too much, if its file may be opened again.
func (l *Library) release(o *Object) {
	l.mu.Lock()
	o.usage.users--
	isGone := o.usage.users == 0 && (o.key.file == nil || !o.File.IsShared())
	if isGone {
		l.forget(o)
	}
	l.mu.Unlock()
	if isGone {
		o.close()
	}
	l.trim()
}

// forget removes an object from the library. The caller holds mu.
func (l *Library) forget(o *Object) {
	delete(l.numbered, o.number)
	if o.key.file != nil {
		delete(l.objects, o.key)
	}
}

// Bytes returns about how much memory the code objects keep.
func (l *Library) Bytes() uint64 { return uint64(max(l.bytes.Load(), 0)) }

// Uses counts the loads of shared code objects that were there, and of new ones.
func (l *Library) Uses() (hits, news uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits, l.news
}

// RowMisses counts the look-ups of rows that the cache of all objects did not answer.
func (l *Library) RowMisses() uint64 { return l.misses.Load() }

// Close forgets all code objects. No module may be used any more.
func (l *Library) Close() {
	l.mu.Lock()
	var open []*Object
	for _, o := range l.numbered {
		open = append(open, o)
	}
	for _, o := range open {
		l.forget(o)
	}
	l.mu.Unlock()
	for _, o := range open {
		o.close()
	}
	l.symbols.trim(-1)
}

// trim forgets until the rest fits, and the least recently used first: objects that are not
// loaded, and the answers of the others.
func (l *Library) trim() {
	if l.Bytes() <= l.most {
		return
	}
	l.symbols.trim(int64(l.most)) //nolint:gosec // of memory
	l.mu.Lock()
	var idle, busy []*Object
	for _, o := range l.numbered {
		if o.usage.users == 0 {
			idle = append(idle, o)
		} else {
			busy = append(busy, o)
		}
	}
	longest := func(a, b *Object) int { return cmp.Compare(a.usage.used.Load(), b.usage.used.Load()) }
	slices.SortFunc(idle, longest)
	slices.SortFunc(busy, longest)
	left := l.bytes.Load()
	n := 0
	for n < len(idle) && left > int64(l.most) {
		left -= idle[n].usage.bytes.Load()
		l.forget(idle[n])
		n++
	}
	l.mu.Unlock()
	for _, o := range idle[:n] {
		o.close()
	}
	for _, o := range busy {
		if l.Bytes() <= l.most {
			return
		}
		o.forgetFound()
	}
}
