// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// DefaultBytes is how much memory a Library keeps for what it found out about
// code objects: the debug information of a browser and its libraries fits.
const DefaultBytes = 1 << 30

// A Library holds the code objects of an engine. It may be used concurrently.
//
// A code object is shared by the targets that have the same file loaded, for the
// same architecture and processor, under the same path, and that have the same
// folders to look for its debug file in. What is in no file, is laid out by a
// target, or has parts that only a target keeps, is that target's alone.
type Library struct {
	plugins *plugin.Manager
	most    uint64 // bytes
	rows    *rowCache
	numbers atomic.Uint64
	uses    atomic.Uint64 // counts; see Object.used
	bytes   atomic.Int64  // of all objects
	misses  atomic.Uint64 // of rows
	symbols symbolFiles

	mu       sync.Mutex
	machines map[string]*Machine
	objects  map[objectKey]*Object
	hits     uint64             // objects that were asked for and there
	news     uint64             // and those that were made
	numbered map[uint64]*Object // by number, while they are open
	noNames  atomic.Bool        // see ExpectNoNames
}

// ExpectNoNames says that names will hardly be asked for, and so symbols are not read for
// them in advance.
func (l *Library) ExpectNoNames() { l.noNames.Store(true) }

// objectKey tells shared code objects apart. A Store gives one pointer for one
// file.
type objectKey struct {
	file                           *object.Object
	arch, processor, path, folders string
}

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

// Machine is the architecture of a name. No plugin is started for it.
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

// Loading is what a target adds to what a target.Module says. All of it may be
// missing.
type Loading struct {
	// Finder finds separate debug files and what is beside a code object.
	Finder *object.Finder
	// Processor is the one that the code is for, where the module does not say it.
	Processor string
	// Target answers what a plugin asks of the target, for code objects that are
	// this target's alone.
	Target sdk.Engine
	// ReadMemory reads the target's memory: of code that is in no file.
	ReadMemory func(address uint64, buf []byte) (int, error)
	// IsAlone says that the code object is not to be shared.
	IsAlone bool
	// Made is code that a runtime made; nil: it is an object's or nobody's.
	Made *Made
}

// Made is a function that a runtime made and kept.
type Made struct {
	// Functions know what it is called and where it ends.
	Functions FunctionSource
	// Read reads its bytes, by its address.
	Read func(address uint64, buf []byte) (int, error)
}

// A FunctionSource knows names and positions, and where functions lie.
type FunctionSource interface {
	symbol.Source
	// Function is the function that holds an address.
	Function(address uint64) (symbol.Symbol, bool)
}

// Load takes a module of a target. Close gives it back.
func (l *Library) Load(m *target.Module, o Loading) *Module {
	loaded := &Module{Module: m, Code: l.object(m, &o)}
	loaded.Code.touch()
	loaded.place()
	return loaded
}

// object is the code object of a module, with one user more.
func (l *Library) object(m *target.Module, load *Loading) *Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isShared(m, load) {
		o := l.newObject(m, load)
		o.target, o.companion, o.sourceModule, o.segments = load.Target, m.Companion, m.SourceModule, m.Segments
		o.readMemory, o.made = load.ReadMemory, load.Made
		return o
	}
	key := objectKey{m.Object, m.Arch, cmp.Or(m.Processor, load.Processor), m.Path, ""}
	if load.Finder != nil {
		key.folders = strings.Join(append([]string{load.Finder.Sysroot}, load.Finder.Folders...), "\x00")
		if load.Finder.Owner != nil {
			key.folders += "\x00" + load.Finder.Owner.Key(m.Object)
		}
	}
	if o := l.objects[key]; o != nil {
		l.hits++
		o.users++
		return o
	}
	l.news++
	o := l.newObject(m, load)
	o.key, l.objects[key] = key, o
	return o
}

// isShared says whether all that is known of a module's code is in its file.
func isShared(m *target.Module, o *Loading) bool {
	return m.Object != nil && m.Companion == nil && m.SourceModule == nil && o.Made == nil && !o.IsAlone && hasOwnCode(m.Object)
}

// hasOwnCode says whether the code of an object is in its file as it is executed.
// Relocatable objects are relocated by who loads them, and packed programs write
// their code when they start.
func hasOwnCode(o *object.Object) bool {
	if o.IsELF() && o.Type() == elf.ET_REL {
		return false
	}
	return !slices.ContainsFunc(o.Segments(), func(s object.Segment) bool { return s.Executable() && s.FileSize < s.MemSize })
}

// newObject makes an object with one user. The caller holds mu.
func (l *Library) newObject(m *target.Module, load *Loading) *Object {
	o := &Object{
		File: m.Object, library: l, cached: l.rows, number: l.numbers.Add(1), users: 1,
		path: m.Path, arch: m.Arch, processor: cmp.Or(m.Processor, load.Processor),
		isLoose: m.Object == nil && m.Path == "" && len(m.BuildID) == 0,
		buildID: m.BuildID, symbolID: m.Symbols,
	}
	if load.Finder != nil {
		o.finder = *load.Finder
	}
	if o.File != nil {
		o.File.Retain()
	}
	o.lay()
	l.numbered[o.number] = o
	return o
}

// numberedObject is the open object of a number; nil where there is none.
func (l *Library) numberedObject(number uint64) *Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbered[number]
}

// release takes away a user of an object. One that nobody uses stays as long as
// there is room, if its file may be asked for again.
func (l *Library) release(o *Object) {
	l.mu.Lock()
	o.users--
	isGone := o.users == 0 && (o.key.file == nil || !o.File.IsShared())
	if isGone {
		l.forget(o)
	}
	l.mu.Unlock()
	if isGone {
		o.close()
	}
	l.trim()
}

// forget takes an object out of the library. The caller holds mu.
func (l *Library) forget(o *Object) {
	delete(l.numbered, o.number)
	if o.key.file != nil {
		delete(l.objects, o.key)
	}
}

// Bytes is about how much memory the code objects keep.
func (l *Library) Bytes() uint64 { return uint64(max(l.bytes.Load(), 0)) }

// Uses are how many code objects, of those that targets share, were asked for and there, and
// how many were made anew.
func (l *Library) Uses() (hits, news uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits, l.news
}

// RowMisses is how many look-ups of rows the cache that all objects share did not
// answer.
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

// trim forgets what was used longest ago until the rest fits: objects that
// nobody has loaded, and of the others what can be found out again.
func (l *Library) trim() {
	if l.Bytes() <= l.most {
		return
	}
	l.symbols.trim(int64(l.most)) //nolint:gosec // of memory
	l.mu.Lock()
	var idle, busy []*Object
	for _, o := range l.numbered {
		if o.users == 0 {
			idle = append(idle, o)
		} else {
			busy = append(busy, o)
		}
	}
	longest := func(a, b *Object) int { return cmp.Compare(a.used.Load(), b.used.Load()) }
	slices.SortFunc(idle, longest)
	slices.SortFunc(busy, longest)
	left := l.bytes.Load()
	n := 0
	for n < len(idle) && left > int64(l.most) {
		left -= idle[n].bytes.Load()
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
