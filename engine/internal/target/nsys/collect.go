// SPDX-License-Identifier: Apache-2.0

package nsys

import (
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// collector has the rows of an export. Rows refer to texts that may follow them.
type collector struct {
	*stacktree.Builder
	strings   map[int64]string
	names     map[int64]int64  // texts of threads, by global ID
	processes map[int64]string // by process ID
	threads   map[int64]*thread
	order     []*thread
	work      []work
	samples   []sample
	chains    [chainKinds][]chainEntry
	texts     []string // of ranges, which are in no table
	textIDs   map[string]int64
	epoch     int64
	counts    struct{ noEnd, negative, noThread, marks, crossing, otherRanges, noLaunch, several int }
}

// thread is a thread of a process.
type thread struct {
	id    int64
	spans []rawSpan
}

// rawSpan is a span whose name is not looked up yet.
type rawSpan struct {
	start, end  int64
	name        int64 // of strings; below ownTexts: of texts
	correlation int64
	chain       int64 // -1: none
	kind        spanKind
}

// ownTexts is where the numbers of texts of ranges begin, downwards.
const ownTexts = -2

// spanKind orders spans with equal times, the outer one first.
type spanKind uint8

const (
	kindRange spanKind = iota + 1
	kindSystem
	kindCall
)

// work is work of a GPU.
type work struct {
	start, end                        int64
	device, stream, correlation, pid  int64
	demangled, short, mangled, copied int64 // copied: the direction of a copy; -1: it is none
	isMemory                          bool
}

// sample is a moment of a thread.
type sample struct{ id, start, thread, cpu int64 }

// The tables of stacks.
const (
	sampleChains = iota
	callChains
	systemChains
	chainKinds
)

// chainEntry is a frame of a stack.
type chainEntry struct {
	id, depth, symbol, module, address int64
	isKernel, isUnresolved             bool
}

func newCollector(path string) *collector {
	return &collector{
		Builder: stacktree.NewBuilder(path, Form), strings: map[int64]string{}, names: map[int64]int64{}, processes: map[int64]string{},
		threads: map[int64]*thread{}, textIDs: map[string]int64{},
	}
}

// processOf returns the ID of the process in a global ID of a process or thread; -1 where there is
// none.
func processOf(global int64) int64 {
	if global < 0 {
		return -1
	}
	return global >> 24 & 0xffffff
}

// threadOf returns the ID of the thread in a global ID.
func threadOf(global int64) int64 { return global & 0xffffff }

func (c *collector) addString(row []value) {
	if row[0].isNumber {
		c.strings[row[0].n] = row[1].text
	}
}

func (c *collector) addThreadName(row []value) {
	if row[0].isNumber && row[1].isNumber {
		c.names[row[0].n] = row[1].n
	}
}

func (c *collector) addProcess(row []value) {
	pid := row[1].number()
	if pid < 0 {
		pid = processOf(row[0].number())
	}
	c.processes[pid] = row[2].text
}

func (c *collector) addStartTime(row []value) { c.epoch = max(row[0].number(), 0) }

// thread returns a thread; nil where a row has none.
func (c *collector) thread(global int64) *thread {
	if global < 0 {
		c.counts.noThread++
		return nil
	}
	t := c.threads[global]
	if t == nil {
		t = &thread{id: global}
		c.threads[global] = t
		c.order = append(c.order, t)
	}
	return t
}

// maxTime bounds times, so that sums of them are no larger than 63 bits.
const maxTime = 1 << 62

// interval returns the first two values of a row, its times; false where they are none.
func (c *collector) interval(row []value) (start, end int64, ok bool) {
	switch {
	case !row[0].isNumber || !row[1].isNumber:
		c.counts.noEnd++
	case row[1].n < row[0].n || row[0].n < -maxTime || row[1].n > maxTime:
		c.counts.negative++
	default:
		return row[0].n, row[1].n, true
	}
	return 0, 0, false
}

// addSpan adds a span of a thread, whose ID is the third value of a row.
func (c *collector) addSpan(row []value, s rawSpan) {
	var ok bool
	if s.start, s.end, ok = c.interval(row); !ok {
		return
	}
	if t := c.thread(row[2].number()); t != nil {
		t.spans = append(t.spans, s)
	}
}

func (c *collector) addCall(row []value) {
	c.addSpan(row, rawSpan{name: row[3].number(), correlation: row[4].number(), chain: row[5].number(), kind: kindCall})
}

func (c *collector) addSystemCall(row []value) {
	c.addSpan(row, rawSpan{name: row[3].number(), correlation: -1, chain: row[4].number(), kind: kindSystem})
}

// The types of NVTX's events (ENUM_NSYS_EVENT_TYPE).
const (
	nvtxMark     = 34
	nvtxMarkOld  = 75 // the definition of a domain, in some versions a mark
	nvtxPushPop  = 59
	nvtxStartEnd = 60
)

func (c *collector) addRange(row []value) {
	switch row[5].number() {
	case nvtxPushPop:
	case nvtxStartEnd:
		c.counts.crossing++
		return
	case nvtxMark, nvtxMarkOld:
		c.counts.marks++
		return
	default:
		c.counts.otherRanges++
		return
	}
	name := row[3].number()
	if text := row[4].text; text != "" {
		id, ok := c.textIDs[text]
		if !ok {
			id = ownTexts - int64(len(c.texts))
			c.texts = append(c.texts, text)
			c.textIDs[text] = id
		}
		name = id
	}
	c.addSpan(row, rawSpan{name: name, correlation: -1, chain: -1, kind: kindRange})
}

// addWork adds work of a GPU, whose first six values are the same in all tables.
func (c *collector) addWork(row []value, w work) {
	var ok bool
	if w.start, w.end, ok = c.interval(row); !ok {
		return
	}
	w.device, w.stream, w.correlation, w.pid = row[2].number(), row[3].number(), row[4].number(), processOf(row[5].number())
	c.work = append(c.work, w)
}

func (c *collector) addKernel(row []value) {
	c.addWork(row, work{demangled: row[6].number(), short: row[7].number(), mangled: row[8].number(), copied: -1})
}

func (c *collector) addCopy(row []value) {
	c.addWork(row, work{isMemory: true, copied: max(row[6].number(), 0)})
}

func (c *collector) addSet(row []value) { c.addWork(row, work{isMemory: true, copied: -1}) }

func (c *collector) addSample(row []value) {
	if row[0].isNumber && row[1].isNumber && row[1].n > -maxTime && row[1].n < maxTime {
		c.samples = append(c.samples, sample{row[0].n, row[1].n, row[2].number(), row[3].number()})
	}
}

func (c *collector) addChain(kind int, row []value) {
	c.chains[kind] = append(c.chains[kind], chainEntry{
		id: row[0].number(), depth: row[1].number(), symbol: row[2].number(), module: row[3].number(), address: row[4].n,
		isKernel: row[5].n > 0, isUnresolved: row[6].n > 0,
	})
}
