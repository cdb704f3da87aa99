// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// nameTable has the names at addresses of a file.
type nameTable struct {
	mu         sync.Mutex          // while they are looked up
	spans      map[uint64]nameSpan // by address
	lines      []nameLine
	functions  []profilenames.Function
	functionOf map[profilenames.Function]uint32
	size       int   // about how many bytes it takes
	err        error // why an address has no names
}

// nameSpan is the lines of an address; none: the file knows none.
type nameSpan struct{ start, count uint32 }

// nameLine is a position in a function of the table.
type nameLine struct {
	function     uint32
	line, column int32
}

// About how many bytes parts of a table take.
const (
	addressSize  = 48
	lineSize     = 12
	functionSize = 200
)

// add adds the lines of an address.
func (t *nameTable) add(address uint64, frames []namedFrame) {
	if t.spans == nil {
		t.spans, t.functionOf = map[uint64]nameSpan{}, map[profilenames.Function]uint32{}
	}
	start := uint32(len(t.lines))
	for i := range frames {
		f := &frames[i]
		n, ok := t.functionOf[f.function]
		if !ok {
			n = uint32(len(t.functions))
			t.functionOf[f.function] = n
			t.functions = append(t.functions, f.function)
			t.size += functionSize + len(f.function.Name) + len(f.function.System) + len(f.function.File)
		}
		t.lines = append(t.lines, nameLine{n, f.line, f.column})
	}
	t.spans[address] = nameSpan{start, uint32(len(frames))}
	t.size += addressSize + lineSize*len(frames)
}

// failure is why addresses of the file have no names; "": it has none.
func (f *profileFile) failure() string {
	if f.names.err != nil {
		return f.names.err.Error()
	}
	return ""
}

// rest releases the pages of the file that were read.
func (f *profileFile) rest() {
	if f.File != nil {
		f.resolver.ReleasePages()
	}
}

// namedFrame is a function with a position.
type namedFrame struct {
	function     profilenames.Function
	line, column int32
}

// nameWorker looks up names.
type nameWorker struct {
	symbols []trace.Symbol
	frames  []namedFrame
	ends    []int
	texts   map[string]string // copies of texts of files, which are mapped
	read    map[string]string // demangled names
}

// maxTexts bounds the texts that a worker keeps.
const maxTexts = 1 << 14

// name finds the names of addresses of a file and adds them to its table.
func (w *nameWorker) name(f *profileFile, addresses []uint64) {
	if w.texts == nil || len(w.texts) > maxTexts || len(w.read) > maxTexts {
		w.texts, w.read = map[string]string{}, map[string]string{}
	}
	w.frames, w.ends = w.frames[:0], w.ends[:0]
	err := object.Guard(func() error {
		for _, a := range addresses {
			w.symbols = f.at(w.symbols[:0], a)
			for i := range w.symbols {
				w.add(&w.symbols[i], len(w.symbols) == 1)
			}
			w.ends = append(w.ends, len(w.frames))
		}
		return nil
	})
	f.names.mu.Lock()
	defer f.names.mu.Unlock()
	if err != nil {
		f.names.err = err
	}
	start := 0
	for i, end := range w.ends {
		f.names.add(addresses[i], w.frames[start:end])
		start = end
	}
}

// at appends the functions at an address.
func (f *profileFile) at(dst []trace.Symbol, address uint64) []trace.Symbol {
	if f.breakpad != nil {
		if frames := f.breakpad.frames(dst, address); len(frames) > 0 {
			return frames
		}
	}
	if f.File == nil {
		return dst
	}
	frames := f.FramesLLVM(dst, address, true)
	if len(frames) == len(dst)+1 && rawName(&frames[len(dst)]) == "" {
		// llvm-symbolizer reads no symbols of debug files.
		if known := f.Frames(address); len(known) > 0 && known[len(known)-1].Function != "" {
			return append(dst, rawNames(known)...)
		}
	}
	return frames
}

// add adds a function, unless it is the only one of its address and nothing is known of it.
func (w *nameWorker) add(s *trace.Symbol, isAlone bool) {
	raw, name := rawName(s), ""
	if raw != "" {
		raw = w.text(raw)
		if name = w.read[raw]; name == "" {
			name = symbol.DemangleLLVM(raw)
			w.read[raw] = name
		}
	}
	if isAlone && name == "" && s.File == "" {
		return
	}
	f := namedFrame{function: profilenames.Function{Name: name, File: w.text(s.File), Start: int64(s.StartLine)}, line: int32(s.Line), column: int32(s.Column)}
	if raw != name {
		f.function.System = raw
	} else {
		f.function.System = name
	}
	w.frames = append(w.frames, f)
}

// text returns a copy of a text.
func (w *nameWorker) text(s string) string {
	if s == "" {
		return ""
	}
	c, ok := w.texts[s]
	if !ok {
		c = strings.Clone(s)
		w.texts[c] = c
	}
	return c
}

// rawName is the name of a function as llvm-symbolizer has it, before it is demangled.
func rawName(s *trace.Symbol) string {
	if s.LinkageName != "" {
		return s.LinkageName
	}
	if s.Name != "" && strings.HasSuffix(s.Function, "::"+s.Name) {
		return s.Name
	}
	return s.Function
}
