package engine

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/llvmir"
	"github.com/unwindd/unwindd/engine/symbol/spirv"
	"github.com/unwindd/unwindd/engine/symbol/visaasm"
	"github.com/unwindd/unwindd/sdk"
)

// This file has what the module that code was made from adds to its own debug
// information: lines of vISA assembly where that has none, and inlined calls of
// SPIR-V or LLVM IR where it has lines only.

// irSections are where a zebin keeps what it was made from, as SPIR-V or LLVM IR.
var irSections = []string{".spv", ".llvm"}

// irSection is the first of irSections that an object has; nil: it has none.
func irSection(o *object.Object) *object.Section {
	for _, name := range irSections {
		if s := o.Section(name); s != nil {
			return s
		}
	}
	return nil
}

const (
	// visaPositions is the kind of position maps to vISA instructions.
	visaPositions = "visa"
	// maxSourceModule bounds the bytes of a source module that is read.
	maxSourceModule = 64 << 20
	// maxSourceProblems bounds the problems of a source module that are told.
	maxSourceProblems = 8
	// maxJoinFrames bounds the frames that an index of positions is made of: those
	// of all instructions and calls. The largest module that was seen has a tenth.
	maxJoinFrames = 1 << 22
	// maxJoinPath bounds the calls of a chain.
	maxJoinPath = 128
	// maxJoinWork bounds the calls that are looked at for all chains of a module: a
	// few seconds.
	maxJoinWork = 1 << 29
	// maxJoinKept bounds the chains that are kept.
	maxJoinKept = 1 << 12
	// maxJoinSites bounds the positions that one may be. A line of a program has a
	// few.
	maxJoinSites = 64
)

// A sourceModule is what a module was made from.
type sourceModule struct {
	assembly *visaasm.Module // nil without one
	join     *sourceJoin     // likewise
}

// lineSource holds what a module knows of its source module. Its parts are made
// when they are first needed.
type lineSource struct {
	once   sync.Once
	source sourceModule

	positions []sdk.PositionMap // in addresses of the module; set when it is opened
	functions []string          // of each of positions; "" where it is not known
}

// takePositions takes the maps of the plugin to vISA instructions, by address.
func (m *module) takePositions(list []sdk.PositionMap) {
	s := &m.lines
	s.positions, s.functions = nil, nil
	for _, p := range list {
		if p.Kind != visaPositions || len(p.PCs) == 0 {
			continue
		}
		base, ok := m.sectionBase(p.Section, "positions")
		if !ok {
			continue
		}
		p.PCs = slices.Clone(p.PCs)
		for i := range p.PCs {
			p.PCs[i] += base
		}
		s.positions = append(s.positions, p)
	}
	sort.SliceStable(s.positions, func(i, j int) bool { return s.positions[i].PCs[0] < s.positions[j].PCs[0] })
	for _, p := range s.positions {
		// A kernel and its first subroutine do not begin at one address, but a
		// kernel holds its subroutines.
		name := ""
		for i := range m.ruled {
			if f := &m.ruled[i]; f.Start == p.PCs[0] && name == "" {
				name = f.Name
			}
		}
		s.functions = append(s.functions, name)
	}
}

// visaIndex is the vISA instruction that code at an address of the module is of,
// and the kernel or function that counts it.
func (s *lineSource) visaIndex(address uint64) (function string, index uint32, ok bool) {
	n := sort.Search(len(s.positions), func(i int) bool { return s.positions[i].PCs[0] > address })
	if n == 0 {
		return "", 0, false
	}
	p := &s.positions[n-1]
	i := sort.Search(len(p.PCs), func(i int) bool { return p.PCs[i] > address })
	// The last entry is where the code ends.
	if i == len(p.PCs) || p.Positions[i-1] > uint64(^uint32(0)) {
		return "", 0, false
	}
	return s.functions[n-1], uint32(p.Positions[i-1]), true
}

// fromSource adds what the source module says of an address of the module's
// object to what its debug information and symbols say.
func (m *module) fromSource(frames []symbol.Frame, address uint64) []symbol.Frame {
	if m.SourceModule == nil && (m.Object == nil || !m.Object.IsELF() || irSection(m.Object) == nil) {
		return frames
	}
	source := m.sourceModule()
	if source.assembly != nil && len(frames) == 1 && frames[0].Line == 0 {
		frames = m.assemblyLine(source.assembly, frames, address)
	}
	if source.join == nil || len(frames) != 1 || frames[0].Line == 0 || m.scoped(address) {
		return frames
	}
	physical := &frames[0]
	chain, spent := source.join.chain(physical)
	if spent {
		m.mu.Lock()
		m.problem("source module: too many calls: inlined calls are not looked for any more")
		m.mu.Unlock()
	}
	if chain != nil {
		return chain
	}
	if physical.Source == "" {
		physical.Source = source.join.text(physical.File)
	}
	return frames
}

// scoped says whether debug information describes scopes at an address.
func (m *module) scoped(address uint64) bool {
	d := m.resolver().DWARF()
	if d == nil {
		return false
	}
	scoped, err := d.Scoped(address)
	return scoped || err != nil // what is not known is not added to
}

// assemblyLine gives a function without a position the one that the assembly
// has.
//
// Instructions of one function may be in the code of another: what a compiler
// adds at the start of a subroutine counts as the kernel's last instruction. They
// have no line.
func (m *module) assemblyLine(a *visaasm.Module, frames []symbol.Frame, address uint64) []symbol.Frame {
	m.mu.Lock()
	opened := m.opened // what the plugin said is set with it, and stays
	m.mu.Unlock()
	if !opened {
		return frames
	}
	counted, index, ok := m.lines.visaIndex(address)
	unit := a.Unit(counted)
	if !ok || counted == "" || unit == nil {
		return frames
	}
	f := &frames[0]
	at, ok := unit.At(index)
	if !ok || at.File == "" || at.Line == 0 || !isVISA(&at, unit.Name, f.Function) && !isVISA(&at, unit.Name, f.LinkageName) {
		return frames
	}
	f.File, f.Line, f.Column, f.CompDir, f.LineByAssembly = at.File, at.Line, 0, "", true
	return frames
}

// isVISA says whether a function of vISA is that of a name: the first one of its
// unit has the unit's, and the others have a number behind theirs.
func isVISA(at *visaasm.Position, unit, name string) bool {
	if at.Entry || name == "" {
		return at.Entry && name == unit
	}
	number, ok := strings.CutPrefix(at.Function, name+"_")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// sourceModule reads what the module was made from, once.
func (m *module) sourceModule() *sourceModule {
	m.lines.once.Do(func() {
		var problems []string
		err := object.Guard(func() error {
			problems = m.readSource(&m.lines.source)
			return nil
		})
		if err != nil {
			problems, m.lines.source = append(problems, err.Error()), sourceModule{}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, p := range problems {
			m.problem("%s", p)
		}
	})
	return &m.lines.source
}

// readSource reads the source module of the target, and that in the object where
// the target's is none with scopes. It returns what is wrong.
func (m *module) readSource(s *sourceModule) (problems []string) {
	if m.SourceModule != nil {
		data, err := m.SourceModule()
		if err == nil {
			problems, err = s.read("source module", data)
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if s.join != nil || m.Object == nil || !m.Object.IsELF() {
		return problems
	}
	section := irSection(m.Object)
	if section == nil {
		return problems
	}
	name := m.Object.Name() + ": " + section.Name
	data, err := section.Data()
	if err != nil {
		return append(problems, err.Error())
	}
	if !spirv.Is(name, data) && !llvmir.Is(name, data) {
		return append(problems, name+": expected SPIR-V or LLVM IR")
	}
	more, err := s.read(name, data)
	if err != nil {
		more = append(more, err.Error())
	}
	return append(problems, more...)
}

// read reads a source module in any of its forms.
func (s *sourceModule) read(name string, data []byte) (problems []string, err error) {
	if len(data) > maxSourceModule {
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", name, len(data), maxSourceModule)
	}
	var ir symbol.IR
	switch {
	case visaasm.Is(name, data):
		s.assembly, err = visaasm.Read(name, data)
		if err == nil {
			problems = s.assembly.Problems()
		}
	case spirv.Is(name, data):
		ir, err = spirv.Read(name, data)
	case llvmir.Is(name, data):
		ir, err = llvmir.Read(name, bytes.Clone(data)) // it keeps what it reads, outside of a guard
	default:
		err = fmt.Errorf("%s: expected SPIR-V, LLVM IR or vISA assembly", name)
	}
	if err != nil {
		return nil, err
	}
	if ir != nil {
		if s.join, err = newJoin(ir); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		problems = ir.Problems()
	}
	if n := len(problems); n > maxSourceProblems {
		problems = append(slices.Clone(problems[:maxSourceProblems]), fmt.Sprintf("%s: and %d more problems", name, n-maxSourceProblems))
	}
	return problems, err
}

// A sourceJoin finds by file and line which calls were inlined into a function.
//
// An IR that is not optimized has a function for each call that the compiler will
// inline later. A position in one of them stands for each way of calls that leads
// there. Only where there is one way, it is taken.
type sourceJoin struct {
	functions map[string]bool
	sites     map[int][]joinSite    // by line
	calls     map[string][]joinCall // by the function that calls
	callers   map[string][]string   // by the function that is called
	texts     map[string]string     // of files, by path

	mu   sync.Mutex
	work int                        // calls that may still be looked at
	kept map[joinKey][]symbol.Frame // what chain found
}

// A joinKey is all that the calls at a position depend on.
type joinKey struct {
	function, file string
	line, column   int
}

// A joinSite is a position that instructions of a function have. The last of the
// frames is the function.
type joinSite struct {
	function string
	frames   []symbol.Frame
	key      string // equal for equal frames
}

// A joinCall is a call that may be inlined: the frames are those of its position.
type joinCall struct {
	callee string
	frames []symbol.Frame
	key    string
}

var errJoinSize = errors.New("too many inlined calls: they are not used")

// newJoin indexes the positions of an IR.
func newJoin(ir symbol.IR) (*sourceJoin, error) {
	j := &sourceJoin{
		functions: map[string]bool{}, sites: map[int][]joinSite{}, calls: map[string][]joinCall{},
		callers: map[string][]string{}, texts: map[string]string{},
		work: maxJoinWork, kept: map[joinKey][]symbol.Frame{},
	}
	budget := maxJoinFrames
	seen := map[string]bool{}
	for p := range ir.Positions() {
		if budget -= len(p.Frames); budget < 0 {
			return nil, errJoinSize
		}
		j.functions[p.Function] = true
		if len(p.Frames) == 0 || p.Frames[0].Line == 0 || p.Frames[0].File == "" {
			continue
		}
		key := p.Function + "\x00" + framesKey(p.Frames)
		if !seen[key] {
			seen[key] = true
			line := p.Frames[0].Line
			j.sites[line] = append(j.sites[line], joinSite{p.Function, p.Frames, framesKey(p.Frames[1:])})
		}
	}
	clear(seen)
	for c := range ir.Calls() {
		if budget -= len(c.Frames); budget < 0 {
			return nil, errJoinSize
		}
		key := c.Function + "\x00" + c.Callee + "\x00" + framesKey(c.Frames)
		if c.NeverInlined || len(c.Frames) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		j.calls[c.Function] = append(j.calls[c.Function], joinCall{c.Callee, c.Frames, framesKey(c.Frames)})
		if pair := c.Function + "\x00" + c.Callee; !seen[pair] {
			seen[pair] = true
			j.callers[c.Callee] = append(j.callers[c.Callee], c.Function)
		}
	}
	for _, f := range ir.Sources() {
		if f.HasText {
			j.texts[path.Clean(f.Path)] = f.Text
		}
	}
	return j, nil
}

// framesKey is equal for frames of equal functions and positions.
func framesKey(frames []symbol.Frame) string {
	var b strings.Builder
	for i := range frames {
		f := &frames[i]
		fmt.Fprintf(&b, "%s\x00%s\x00%s\x00%d\x00%d\x00", f.Function, f.LinkageName, f.File, f.Line, f.Column)
	}
	return b.String()
}

// text is the text of a file; "" where the IR has none.
func (j *sourceJoin) text(file string) string {
	if file == "" {
		return ""
	}
	return j.texts[path.Clean(file)]
}

// root is the function of the IR that a physical one was made from.
func (j *sourceJoin) root(f *symbol.Frame) string {
	for _, name := range []string{f.LinkageName, f.Function, f.Name} {
		if name != "" && j.functions[name] {
			return name
		}
	}
	return ""
}

// chain is the calls that were inlined where a physical function is at a
// position, and the function; nil where none was, or that is not known. spent says
// that nothing more is looked for.
func (j *sourceJoin) chain(physical *symbol.Frame) (chain []symbol.Frame, spent bool) {
	root := j.root(physical)
	if root == "" {
		return nil, false
	}
	key := joinKey{root, physical.File, physical.Line, physical.Column}
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.kept[key]
	if !ok {
		found = j.find(&key)
		if len(j.kept) < maxJoinKept {
			j.kept[key] = found
		}
	}
	if found != nil {
		chain = j.join(slices.Clone(found), physical)
	}
	return chain, j.work < 0
}

// find finds a chain.
func (j *sourceJoin) find(key *joinKey) (found []symbol.Frame) {
	sites := j.at(key)
	if len(sites) > maxJoinSites {
		return nil
	}
	same := ""
	for i := range sites {
		s := &sites[i]
		calls, ok := j.way(key.function, s.function)
		if !ok {
			return nil
		}
		if calls == nil && s.function != key.function {
			continue // what is not called from there
		}
		chain := slices.Clone(s.frames)
		k := s.function + "\x00" + s.key
		for n := len(calls) - 1; n >= 0; n-- {
			chain = append(chain, calls[n].frames...)
			k += "\x00" + calls[n].callee + "\x00" + calls[n].key
		}
		if found != nil && k != same {
			return nil
		}
		found, same = chain, k
	}
	if len(found) < 2 || !allPlaced(found) {
		return nil
	}
	return found
}

// allPlaced says whether every frame of a chain has a function and a position.
func allPlaced(chain []symbol.Frame) bool {
	for i := range chain {
		if chain[i].Function == "" || chain[i].File == "" || chain[i].Line == 0 {
			return false
		}
	}
	return true
}

// at are the sites of a position. Those of its column go before others of the
// line: compilers move and merge columns.
func (j *sourceJoin) at(key *joinKey) []joinSite {
	var line, column []joinSite
	file := path.Clean(key.file)
	j.work -= len(j.sites[key.line])
	if j.work < 0 {
		return nil
	}
	for _, s := range j.sites[key.line] {
		if path.Clean(s.frames[0].File) != file {
			continue
		}
		line = append(line, s)
		if key.column != 0 && s.frames[0].Column == key.column {
			column = append(column, s)
		}
	}
	if column != nil {
		return column
	}
	return line
}

// way is the calls that lead from one function to another, the first one first.
// There are none where no calls lead there; ok is false where several do.
func (j *sourceJoin) way(from, to string) (calls []joinCall, ok bool) {
	leads := map[string]bool{to: true}
	for queue := []string{to}; len(queue) > 0; {
		f := queue[0]
		queue = queue[1:]
		if j.work -= 1 + len(j.callers[f]); j.work < 0 {
			return nil, false
		}
		for _, caller := range j.callers[f] {
			if !leads[caller] {
				leads[caller] = true
				queue = append(queue, caller)
			}
		}
	}
	if !leads[from] {
		return nil, true
	}
	for at := from; ; {
		var next *joinCall
		if j.work -= len(j.calls[at]); j.work < 0 {
			return nil, false
		}
		for i := range j.calls[at] {
			if c := &j.calls[at][i]; leads[c.callee] {
				if next != nil {
					return nil, false
				}
				next = c
			}
		}
		switch {
		case at == to:
			return calls, next == nil // else it may have been inlined into itself
		case next == nil, len(calls) == maxJoinPath:
			return nil, false
		}
		calls = append(calls, *next)
		at = next.callee
	}
}

// join makes the frames of a chain: the position of the innermost one and the
// name of the outermost one are the physical function's.
func (j *sourceJoin) join(chain []symbol.Frame, physical *symbol.Frame) []symbol.Frame {
	last := len(chain) - 1
	for i := range chain {
		chain[i].Inlined, chain[i].ScopeBySource = i < last, true
		chain[i].Start, chain[i].HasStart = 0, false
	}
	first := &chain[0]
	first.File, first.Line, first.Column = physical.File, physical.Line, physical.Column
	first.Discriminator, first.CompDir, first.LineByAssembly = physical.Discriminator, physical.CompDir, physical.LineByAssembly
	if physical.Source != "" {
		first.Source = physical.Source
	}
	named := *physical
	named.ScopeBySource, named.LineByAssembly = true, false
	outer := &chain[last]
	named.File, named.Line, named.Column = outer.File, outer.Line, outer.Column
	named.Discriminator, named.CompDir, named.Source = outer.Discriminator, outer.CompDir, outer.Source
	*outer = named
	for i := range chain {
		if chain[i].Source == "" {
			chain[i].Source = j.text(chain[i].File)
		}
	}
	return chain
}
