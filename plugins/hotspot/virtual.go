// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// Java's library keeps its virtual threads in sets of the containers that began them. One that nothing executes has
// its frames in chunks of stack on the heap, as HotSpot has moved them there: the pieces of a frame that
// point into the frame are distances then.

const (
	// maxClasses bounds the classes that are searched for the sets.
	maxClasses = 1 << 18
	// maxVirtual bounds the virtual threads.
	maxVirtual = 1 << 20
	// maxBuckets bounds the array of a hash table.
	maxBuckets = 1 << 24
	// maxChunkWords bounds a chunk of stack.
	maxChunkWords = 1 << 28
	// maxChunks and maxChunkFrames bound the chunks and frames of a virtual thread.
	maxChunks      = 1 << 10
	maxChunkFrames = 1 << 14
)

// Names of Java's library.
const (
	classContainers = "jdk.internal.vm.ThreadContainers"
	classRoot       = "jdk.internal.vm.ThreadContainers$RootContainer$TrackingRootContainer"
	classVirtual    = "java.lang.VirtualThread"
	classTreeBin    = "java.util.concurrent.ConcurrentHashMap$TreeBin"
)

// ManagedThreads lists the virtual threads.
func (p *plugin) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	m, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	l := &virtualLister{reader: m.newReader(ctx, e), seen: map[uint64]bool{}, hasFrames: req.Frames}
	l.list()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &sdk.ManagedThreadsAnswer{Threads: l.threads, Problems: l.problems}, nil
}

// virtualLister lists virtual threads.
type virtualLister struct {
	*reader
	hasFrames bool
	carriers  []*javaThread
	seen      map[uint64]bool // objects of threads
	numbers   map[uint64]bool
	states    map[int64]string
	threads   []sdk.ManagedThread
	problems  []string
}

// maxProblems bounds the sentences about virtual threads.
const maxProblems = 16

func (l *virtualLister) problem(format string, args ...any) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}

// list finds the sets, and the threads in them.
func (l *virtualLister) list() {
	var err error
	if l.carriers, err = l.readThreads(); err != nil {
		l.problem("%v", err)
		return
	}
	if l.heapShape.reference == 0 {
		l.problem("how objects refer to each other is not known: no thread has a name")
		return
	}
	l.numbers = map[uint64]bool{}
	classes, err := l.findClasses(classContainers, classRoot, classVirtual)
	if err != nil {
		l.problem("the classes of virtual threads: %v", err)
		return
	}
	if classes[classVirtual] == 0 || classes[classRoot] == 0 {
		return // no virtual thread was begun
	}
	l.states = l.constantsOf(classes[classVirtual])
	for _, name := range []string{"VTHREADS", "THREADS"} {
		if set, err := l.static(classes[classRoot], name); err == nil {
			l.each(set, l.add)
			break
		}
	}
	registry, err := l.static(classes[classContainers], "CONTAINER_REGISTRY")
	if err != nil {
		l.problem("the containers of threads: %v", err)
		return
	}
	l.each(registry, l.addContainer)
}

// findClasses finds classes of Java's library by their names.
func (r *reader) findClasses(names ...string) (map[string]uint64, error) {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	found := map[string]uint64{}
	loader, err := r.Pointer(r.loaders)
	for loaders := 0; err == nil && loader != 0 && loaders < maxClasses; loaders++ {
		var class uint64
		class, err = get(r.MemoryReader, loader, r.loaderClasses)
		for n := 0; err == nil && class != 0 && n < maxClasses && len(found) < len(names); n++ {
			if name, err := r.nameOfClass(class); err == nil && wanted[name] && found[name] == 0 {
				found[name] = class
			}
			class, err = get(r.MemoryReader, class, r.nextClass)
		}
		if err == nil {
			loader, err = get(r.MemoryReader, loader, r.loaderNext)
		}
		if len(found) == len(names) || r.Err() != nil {
			break
		}
	}
	return found, err
}

// static reads a variable of a class that refers to an object.
func (r *reader) static(class uint64, name string) (uint64, error) {
	fields, err := r.fieldsOf(class)
	if err != nil {
		return 0, err
	}
	f, has := fields[name]
	if !has {
		return 0, fmt.Errorf("there is no variable %s", name)
	}
	mirror, err := r.handle(class, r.mirror)
	if err != nil {
		return 0, err
	}
	return r.link(mirror + f.offset)
}

// link reads a reference, whose width is known.
func (r *reader) link(address uint64) (uint64, error) {
	n, err := r.Uint(address, max(r.heapShape.reference, 4))
	if r.heapShape.reference == 4 {
		n = r.oop(n)
	}
	return n, err
}

// linkIn reads a field that refers to an object.
func (r *reader) linkIn(object uint64, name string) (uint64, error) {
	class, err := r.classOf(object)
	if err != nil {
		return 0, err
	}
	f, err := r.fieldOf(class, name)
	if err != nil {
		return 0, err
	}
	return r.link(object + f.offset)
}

// numberIn reads a field that is a number.
func (r *reader) numberIn(object uint64, name string) (uint64, error) {
	class, err := r.classOf(object)
	if err != nil {
		return 0, err
	}
	f, err := r.fieldOf(class, name)
	if err != nil {
		return 0, err
	}
	size := uint64(4)
	if f.signature == "J" {
		size = 8
	}
	return r.Uint(object+f.offset, size)
}

// constantsOf are the names of the numbers that a class defines.
func (r *reader) constantsOf(class uint64) map[int64]string {
	names := map[int64]string{}
	pool, err := get(r.MemoryReader, class, r.poolOfClass)
	if err != nil {
		return names
	}
	fields, err := r.fieldsOf(class)
	if err != nil {
		return names
	}
	for name, f := range fields {
		if f.signature != "I" || f.value == 0 || f.value >= maxPool {
			continue
		}
		n, err := r.Uint(pool+r.sizes.pool+8*f.value, 4)
		if _, has := names[signed(n, 4)]; err == nil && !has {
			names[signed(n, 4)] = name
		}
	}
	return names
}

// each calls do with the elements of a set that is a ConcurrentHashMap.
func (l *virtualLister) each(set uint64, do func(object uint64)) {
	table, err := l.tableOf(set)
	if err != nil {
		l.problem("a set of threads: %v", err)
		return
	}
	if table == 0 {
		return
	}
	length, err := l.Uint(table+l.heapShape.length, 4)
	if err != nil || length > maxBuckets {
		l.problem("a set of %d buckets at %#x, expected at most %d", length, table, maxBuckets)
		return
	}
	l.Prefetch([]uint64{table}, l.heapShape.elements+length*l.heapShape.reference)
	left := maxVirtual
	for i := range length {
		node, err := l.link(table + l.heapShape.elements + i*l.heapShape.reference)
		if name, failed := l.typeOf(node); node != 0 && failed == nil && name == classTreeBin {
			node, err = l.linkIn(node, "first")
		}
		for ; err == nil && node != 0 && left > 0 && l.Err() == nil; left-- {
			var key uint64
			if key, err = l.linkIn(node, "key"); err == nil && key != 0 {
				do(key)
			}
			if err == nil {
				node, err = l.linkIn(node, "next")
			}
		}
		if err != nil {
			l.problem("an element of a set at %#x: %v", table, err)
		}
	}
	if left == 0 {
		l.problem("the set at %#x has no end", table)
	}
}

// tableOf finds the array of a set's hash table.
func (l *virtualLister) tableOf(set uint64) (uint64, error) {
	if set == 0 {
		return 0, nil
	}
	table, err := l.linkIn(set, "map")
	if err == nil {
		table, err = l.linkIn(table, "table")
	}
	return table, err
}

// addContainer adds the threads of a container, which the registry refers to weakly.
func (l *virtualLister) addContainer(reference uint64) {
	container, err := l.linkIn(reference, "referent")
	if err != nil || container == 0 {
		return
	}
	for _, name := range []string{"threads", "virtualThreads"} {
		if set, err := l.linkIn(container, name); err == nil && set != 0 {
			l.each(set, l.add)
		}
	}
}

// add adds a thread that is virtual.
func (l *virtualLister) add(object uint64) {
	if l.seen[object] || len(l.threads) >= maxVirtual {
		return
	}
	l.seen[object] = true
	class, err := l.classOf(object)
	if err != nil || !l.isClass(class, classVirtual) {
		return
	}
	t, err := l.read(object)
	if err != nil {
		l.problem("the virtual thread at %#x: %v", object, err)
		return
	}
	if !l.numbers[t.Number] {
		l.numbers[t.Number] = true
		l.threads = append(l.threads, *t)
	}
}

// suspended is the bit of a state that a debugger has set.
const suspended = 1 << 8

// read reads a virtual thread.
func (l *virtualLister) read(object uint64) (*sdk.ManagedThread, error) {
	t := &sdk.ManagedThread{}
	var err error
	if t.Number, err = l.numberIn(object, "tid"); err != nil {
		return nil, err
	}
	if t.Name, err = l.textIn(object, "name"); err != nil {
		return nil, err
	}
	state, err := l.numberIn(object, "state")
	if err != nil {
		return nil, err
	}
	t.State = l.states[signed(state, 4)&^suspended]
	carrier, err := l.linkIn(object, "carrierThread")
	if err != nil {
		return nil, err
	}
	for _, c := range l.carriers {
		if carrier == 0 || c.object != carrier {
			continue
		}
		t.Carrier = c.lwp
		if mounted, err := l.handle(c.address, l.vthread); err == nil && mounted == object {
			t.IsMounted = true
			return t, nil
		}
	}
	if !l.hasFrames {
		return t, nil
	}
	continuation, err := l.linkIn(object, "cont")
	if err != nil || continuation == 0 {
		return t, err
	}
	chunk, err := l.linkIn(continuation, "tail")
	if err == nil {
		t.Frames, err = l.chunkFrames(chunk)
	}
	switch {
	case err != nil:
		t.Frames, t.Problem = nil, fmt.Sprintf("its frames on the heap: %v", err)
	case len(t.Frames) == 0:
		t.Problem = "it has not begun"
	}
	return t, nil
}

// chunkFrames reads the frames in chunks of stack, innermost first.
func (r *reader) chunkFrames(chunk uint64) (list []sdk.ManagedFrame, err error) {
	for n := 0; chunk != 0; n++ {
		if n >= maxChunks {
			return list, errors.New("the chunks have no end")
		}
		class, err := r.classOf(chunk)
		if err != nil {
			return list, err
		}
		if name, err := r.nameOfClass(class); err != nil || name != "jdk.internal.vm.StackChunk" {
			return list, fmt.Errorf("the chunk at %#x is a %s", chunk, name)
		}
		c, err := r.readChunk(chunk, class)
		if err != nil {
			return list, fmt.Errorf("the chunk at %#x: %w", chunk, err)
		}
		for c.sp < c.end {
			frames, err := c.next()
			if err != nil {
				return list, fmt.Errorf("frame %d of the chunk at %#x: %w", len(list), chunk, err)
			}
			if list = append(list, frames...); len(list) > maxChunkFrames {
				return list[:maxChunkFrames], nil
			}
		}
		if chunk, err = r.linkIn(chunk, "parent"); err != nil {
			return list, err
		}
	}
	return list, nil
}

// stackChunk is a part of a stack on the heap.
type stackChunk struct {
	*reader
	sp, end uint64
	// own is the stack pointer of the frame without what its callee has changed.
	own uint64
}

// readChunk finds the bounds of a chunk.
func (r *reader) readChunk(chunk, class uint64) (*stackChunk, error) {
	layout, err := get(r.MemoryReader, class, r.layoutHelper)
	if err != nil {
		return nil, err
	}
	var numbers [2]uint64
	for i, name := range []string{"size", "sp"} {
		if numbers[i], err = r.numberIn(chunk, name); err != nil {
			return nil, err
		}
	}
	size, sp := numbers[0], numbers[1]
	// Java 21 has the arguments behind the outermost frame, later ones where that ends.
	bottom, err := r.numberIn(chunk, "bottom")
	if err != nil {
		arguments, err := r.numberIn(chunk, "argsize")
		if err != nil {
			return nil, err
		}
		bottom = size - arguments
	}
	header := layout &^ 7
	if header < 16 || header > maxStruct || size > maxChunkWords || sp > size || bottom > size {
		return nil, fmt.Errorf("a header of %d bytes, frames from %d to %d of %d words", header, sp, bottom, size)
	}
	start := chunk + header
	c := &stackChunk{reader: r, sp: start + 8*sp, end: start + 8*bottom}
	c.own = c.sp
	r.Prefetch([]uint64{c.sp - 16}, min(c.end-min(c.sp, c.end)+16, 1<<20))
	return c, nil
}

// next reads the methods of a frame, and goes to its caller.
func (c *stackChunk) next() ([]sdk.ManagedFrame, error) {
	pc, err := c.Pointer(c.sp - 8)
	if err != nil {
		return nil, err
	}
	before := c.sp
	if c.queue.has(pc - 1) {
		distance, err := c.Pointer(c.sp - frameRecord)
		if err != nil {
			return nil, err
		}
		fp := c.sp - frameRecord + 8*distance
		sender, err := c.Pointer(fp - 8)
		if err != nil {
			return nil, err
		}
		if fp < before || fp > c.end {
			return nil, fmt.Errorf("its frame record is at %#x, expected %#x to %#x", fp, before, c.end)
		}
		w := &stackWalk{reader: c.reader, native: &sdk.NativeStack{Frames: []sdk.NativeFrame{{}, {}}}}
		frames, err := w.interpreted(1, fp)
		c.sp, c.own = fp+frameRecord, fp+8*sender
		if c.own >= c.end {
			c.sp = c.end
		}
		return frames, err
	}
	b, err := c.blobAt(c.MemoryReader, pc-1)
	if err != nil {
		return nil, err
	}
	if b.frameSize < 16 {
		return nil, fmt.Errorf("the code at %#x, %s, has no frame", pc, b.name)
	}
	var frames []sdk.ManagedFrame
	if b.isNmethod {
		if frames, err = c.framesAt(b, pc-1); err != nil {
			return nil, err
		}
		if handler, err := (&stackWalk{reader: c.reader}).deoptimizeHandler(b); err == nil && handler == pc && !b.isNativeCall {
			frames, err = (&stackWalk{reader: c.reader}).deoptimized(&sdk.NativeFrame{PC: pc, CFA: c.own + b.frameSize})
			if err != nil {
				return nil, err
			}
		}
	}
	c.own += b.frameSize
	c.sp = c.own
	if c.sp <= before {
		return nil, fmt.Errorf("its caller is at %#x, expected above %#x", c.sp, before)
	}
	return frames, nil
}
