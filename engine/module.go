package engine

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/resolve"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxCachedRows bounds the rows that a module remembers. A module of a crashed
// process is entered at a few hundred places; a bound keeps a damaged target
// that leads everywhere from filling memory.
const maxCachedRows = 1 << 16

// maxFunctionCode bounds the code of a function that a plugin is asked to read.
const maxFunctionCode = 1 << 20

// codeWindow is how much code is sent before and after a PC in a function
// that nothing bounds: a page.
const codeWindow = 4096

// module is a module with what the walk needs of it. Its parts are made when
// they are first needed.
type module struct {
	*target.Module
	target *Target
	arch   *machine
	laid   *object.Object   // Object, with the addresses that the module has inside
	placed []target.Segment // Segments, with such addresses

	// code is where the module's code is read by the addresses of the object; nil:
	// in the target's memory. The processes of a recording share modules.
	code func(address uint64, buf []byte) (int, error)

	// returns says of addresses whether they follow a call; returned counts them.
	returns  sync.Map
	returned atomic.Int64

	made *perfdata.JITFunction // that it is; nil: it is an object

	mu       sync.Mutex
	opened   bool // rows and the plugin's answer are there
	tables   []*cfi.Table
	sframe   *cfi.SFrame // nil without one
	above    []cfi.Row   // the plugin's rows that override CFI
	below    []cfi.Row
	ruled    []sdk.Function // functions about which the plugin said something, by start
	defaults *ruleSet
	special  map[*sdk.Function]*ruleSet // default rules of single functions
	rows     map[rowKey]*rowSource
	problems []string

	symbolsOnce sync.Once
	symbols     *resolve.Resolver // nil without an object
	debug       object.Found
	debugLaid   *object.Object // the debug file, with the addresses of the module

	dialects dialectList                // of the object's expressions
	lanes    map[uint64]*laneAttributes // by address

	lines lineSource // of the source module

	read []readFunction        // what was read from the code of whole functions; by address
	left map[uint64]*codeExits // where code goes on to; nil: it is not known

	besideOnce sync.Once
	companions atomic.Pointer[[]companion] // nil until they were looked for
}

// rowKey is an address of the object; exact tells a frame that is about to
// execute there from one that is inside a call.
type rowKey struct {
	address uint64
	exact   bool
}

// rowSource is a row in force at an address, with where it came from.
type rowSource struct {
	row       *cfi.Row
	by        FoundBy
	defaults  *ruleSet
	dialect   *locexpr.Dialect // of the expressions of a row of CFI; nil: of one by another source
	outermost string           // why no caller is looked for; "" when one is
	complete  bool             // the row mentions every register that the function changes
	injected  bool             // a signal handler made what it interrupted call the function
	switches  string           // the row leads to another stack: why there is no caller where it cannot be read
	entered   bool             // the function is entered at its start by a return, not called

	fast     cfi.CompiledRow // row and defaults, where compiled
	compiled bool

	told atomic.Bool // the module has the problem that its CFA cannot be evaluated

	// The address that it was found for.
	module *module
	key    rowKey
	none   *noRow // why there is no row; nil when there is
}

// signalFrame says whether the row is of a frame that a signal interrupted.
func (s *rowSource) signalFrame() bool {
	if s.compiled {
		return s.fast.SignalFrame
	}
	return s.row != nil && s.row.SignalFrame
}

// compile fills in the compiled row, if there can be one.
func (s *rowSource) compile(m *machine) {
	if s.row == nil || m.compiler == nil {
		return
	}
	fast, err := m.compiler.Compile(s.row, s.defaults.column)
	s.fast, s.compiled = fast, err == nil
}

// noRow says that no source has a row for an address; the text says what each
// source answered.
type noRow struct {
	reasons  []string
	uncalled bool // the code is not entered by calls
}

func (e *noRow) Error() string {
	if len(e.reasons) == 0 {
		return "no call frame information"
	}
	return strings.Join(e.reasons, "; ")
}

// handle is the number by which plugins name the module's object. No other
// target's object has it: plugins keep what they find in an object.
func (m *module) handle() uint64 { return m.target.number<<targetBit | uint64(m.ID+1) } //nolint:gosec // not negative

// loose says whether the module is code that is in no file, which only snapshots
// have modules for. A scan takes it for no more than other targets' code without
// a module.
func (m *module) loose() bool { return m.Object == nil && m.Path == "" && len(m.BuildID) == 0 }

func (m *module) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.symbols != nil {
		m.symbols.Close()
	}
	if m.debug.Object != nil {
		m.debug.Object.Close()
	}
	if list := m.companions.Load(); list != nil {
		for _, c := range *list {
			c.object.Close()
		}
	}
}

func (m *module) info() ModuleInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	info := ModuleInfo{DebugFile: m.debug.Path, DebugInfo: m.debugInfo()}
	for _, a := range m.debug.Tried {
		if info.DebugInfo != DebugInfoFound && a.Kind != object.Absent {
			info.Unused = append(info.Unused, fmt.Sprintf("debug file %s was not used: %s", a.Path, a.Reason))
		} else {
			info.Searched = append(info.Searched, a.Path+": "+a.Reason)
		}
	}
	if m.debug.Object != nil && m.debug.Problem != "" {
		info.Problems = append(info.Problems, m.debug.Problem)
	}
	if m.Problem != "" {
		info.Problems = append(info.Problems, m.Problem)
	}
	info.Problems = append(info.Problems, info.Unused...)
	info.Problems = append(info.Problems, m.problems...)
	if m.Object != nil {
		info.Problems = append(info.Problems, m.Object.Problems()...)
	}
	for _, t := range m.tables {
		for _, err := range t.Problems() {
			info.Problems = append(info.Problems, err.Error())
		}
	}
	if m.sframe != nil {
		for _, err := range m.sframe.Problems() {
			info.Problems = append(info.Problems, err.Error())
		}
	}
	if m.symbols != nil {
		info.Problems = append(info.Problems, m.symbols.Problems()...)
	}
	return info
}

// debugInfo says what came of looking for debug information. The caller holds mu.
func (m *module) debugInfo() DebugInfo {
	switch {
	case m.Object == nil || m.symbols == nil:
		return ""
	case m.symbols.Damaged():
		return DebugInfoUnreadable
	case m.debug.Object != nil || hasDebugInfo(m.Object):
		return DebugInfoFound
	}
	switch unused := m.debug.Unused(); {
	case len(unused) == 0:
		return DebugInfoNone
	case unused[0].Kind == object.Unreadable:
		return DebugInfoUnreadable
	}
	return DebugInfoMismatch
}

func (m *module) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, p := range m.problems {
		if p == text {
			return
		}
	}
	m.problems = append(m.problems, text)
}

// resolver is the module's names and positions; nil where it has no object.
func (m *module) resolver() *resolve.Resolver {
	m.symbolsOnce.Do(func() {
		if m.Object == nil {
			return
		}
		finder := &m.target.finder
		debug := finder.FindDebug(m.Object)
		laid, err := m.laidLike(debug.Object)
		if m.isLaid() && m.arch != nil {
			m.laid.SetRelocations(m.arch.desc.Relocations)
			if laid != nil {
				laid.SetRelocations(m.arch.desc.Relocations)
			}
		}
		symbols := resolve.NewWith(m.laid, laid, dwarf.Options{Finder: finder})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.debug, m.debugLaid, m.symbols = debug, laid, symbols
		if err != nil {
			m.problem("%v", err)
		}
	})
	return m.symbols
}

// frames appends the functions at an address of the module's object.
func (m *module) frames(dst []symbol.Frame, address uint64) []symbol.Frame {
	if m.made != nil {
		return append(dst, madeFrame(m.made, address))
	}
	r := m.resolver()
	if r == nil {
		return dst
	}
	before := len(dst)
	frames, err := r.Frames(dst, address)
	if base := m.base(address); base > 0 {
		for i := len(dst); i < len(frames); i++ {
			if frames[i].HasStart {
				frames[i].Start -= base
			}
		}
	}
	if err != nil {
		m.mu.Lock()
		m.problem("%s", err)
		m.mu.Unlock()
	}
	if len(frames) == before {
		frames = m.namedByPlugin(frames, address)
	}
	return append(frames[:before], m.fromSource(frames[before:], address)...)
}

// namedByPlugin appends the function that the plugin knows at an address. It is
// for code whose names are only in what the plugin reads, such as a vISA stream.
func (m *module) namedByPlugin(dst []symbol.Frame, address uint64) []symbol.Frame {
	m.mu.Lock()
	opened := m.opened // what the plugin said is set with it, and stays
	m.mu.Unlock()
	if !opened {
		return dst
	}
	f := m.function(address)
	if f == nil || f.Name == "" {
		return dst
	}
	return append(dst, symbol.Frame{Function: f.Name, Start: m.offset(m.startOf(f)), HasStart: true})
}

// startOf is where a function begins of which a part was given: one that is in
// parts has other functions, such as its subroutines, between them.
func (m *module) startOf(f *sdk.Function) uint64 {
	start := f.Start
	first := sort.Search(len(m.ruled), func(i int) bool { return m.ruled[i].Start >= f.Start })
	for i := first - 1; i >= 0 && m.ruled[i].End == m.ruled[i+1].Start; i-- {
		if m.ruled[i].Name == f.Name {
			start = m.ruled[i].Start
		}
	}
	return start
}

// open reads the module's call frame information and asks its plugin about
// it. A plugin that fails is asked again by the next stack that comes here.
func (m *module) open(ctx context.Context) error {
	if m.opened {
		return nil
	}
	if m.Object == nil {
		m.defaults, m.opened = m.arch.defaults, true
		return nil
	}
	o := m.Object
	o.SetRelocations(m.arch.desc.Relocations)
	answer, err := m.arch.arch.OpenObject(ctx, &view{target: m.target}, m.openRequest())
	if err != nil {
		return err
	}
	for _, p := range answer.Problems {
		m.problem("%s", p)
	}
	if len(answer.Nested) > 0 && !o.IsELF() {
		m.problem("%s holds %d code objects, of which the module does not name one, as FILE#%.200s: they are not used",
			o.Name(), len(answer.Nested), answer.Nested[0].Name)
	}
	if m.dialects, err = newDialectList(m.arch, answer); err != nil {
		return err
	}
	m.defaults = m.arch.defaults
	if answer.DefaultRules != nil {
		m.defaults = newRuleSet(answer.DefaultRules)
	}
	for _, t := range answer.Tables {
		if t.Priority == sdk.OverridesCFI {
			m.above = m.takeRows(m.above, &t)
			m.problem("call frame information is overridden: %s", t.Reason)
		} else {
			m.below = m.takeRows(m.below, &t)
		}
	}
	sortRows(m.above)
	sortRows(m.below)
	m.takeFunctions(answer.Functions)
	m.takePositions(answer.PositionMaps)
	m.special = map[*sdk.Function]*ruleSet{}
	for i := range m.ruled {
		if f := &m.ruled[i]; f.DefaultRules != nil {
			m.special[f] = newRuleSet(f.DefaultRules)
		}
	}
	m.openTables()
	m.opened = true
	return nil
}

func sortRows(rows []cfi.Row) {
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Start < rows[j].Start })
}

// processor is the one that the module's code is for: what the target says of
// the module, or else of all threads of its architecture.
func (m *module) processor() string {
	if m.Processor != "" {
		return m.Processor
	}
	name, found := "", false
	for _, t := range m.target.state.Threads() {
		switch {
		case t.Arch != m.arch.desc.Name:
		case found && t.Processor != name:
			return ""
		default:
			name, found = t.Processor, true
		}
	}
	return name
}

func (m *module) openRequest() *sdk.OpenObjectRequest {
	o := m.Object
	req := &sdk.OpenObjectRequest{
		Object:  m.handle(),
		Path:    m.Path,
		Machine: o.Machine(),
		OSABI:   o.OSABI(),
		Flags:   o.Flags(),

		Processor: m.processor(),
	}
	for _, p := range m.openCompanions() {
		m.problem("%s", p)
	}
	for i, c := range *m.companions.Load() {
		req.Companions = append(req.Companions, sdk.Companion{Suffix: c.suffix, Object: m.companionHandle(i)})
	}
	for _, s := range o.Sections() {
		req.Sections = append(req.Sections, sdk.SectionInfo{
			Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Address, Size: s.Size,
		})
	}
	// Only the functions that the architecture named: a library has a hundred
	// thousand, and the plugin reads the symbol table itself if it wants all. One
	// without a size ends where the next function begins, so that is told too.
	unbounded, last := false, uint64(0)
	if m.symbols != nil && len(m.arch.watched) > 0 {
		for _, s := range m.symbols.Functions() {
			switch {
			case m.arch.watched[s.Name]:
				unbounded, last = s.End == s.Start, s.Start
			case unbounded && s.Start > last:
				unbounded = false
			default:
				continue
			}
			req.Symbols = append(req.Symbols, sdk.SymbolInfo{Name: s.Name, Address: m.offset(s.Start), Size: s.End - s.Start})
		}
	}
	return req
}

// openTables opens the call frame information of the object itself and of its
// separate debug file. Several tables may be there; they are asked in this
// order. Its .sframe is asked after them, because it says less.
func (m *module) openTables() {
	tables, err := m.loadedTables(m.laid)
	if err != nil {
		m.problem("%v", err)
	}
	if m.debugLaid != nil {
		// The .eh_frame of a debug file is the object's, without its bytes.
		more, err := m.loadedTables(m.debugLaid)
		if err != nil {
			m.problem("%v", err)
		}
		for _, t := range more {
			if t.section == ".debug_frame" {
				tables = append(tables, t)
			}
		}
	}
	for _, t := range tables {
		if t.header != nil {
			m.problem("%v; the index is built from the section itself", t.header)
		}
		if t.err != nil {
			m.problem("%v", t.err)
			continue
		}
		m.tables = append(m.tables, t.Table)
	}
	if m.sframe, err = sframeTable(m.laid); err != nil {
		m.problem("%v", err)
	}
}

// function is what the plugin said about the function at an address.
func (m *module) function(address uint64) *sdk.Function {
	i := sort.Search(len(m.ruled), func(i int) bool { return m.ruled[i].Start > address })
	if i > 0 && address < m.ruled[i-1].End {
		return &m.ruled[i-1]
	}
	return nil
}

// row finds the row in force at pc, an address of the object (design of the
// walk: the object's rows that override CFI, CFI, the object's other rows,
// rows read from the code). That there is none is an answer too: none is set.
func (m *module) row(ctx context.Context, pc uint64, exact bool) (*rowSource, error) {
	m.resolver() // finds the debug file, whose .debug_frame counts too
	m.mu.Lock()
	defer m.mu.Unlock()
	key := rowKey{pc, exact}
	if s, ok := m.rows[key]; ok {
		return s, nil
	}
	if m.arch == nil {
		return nil, &noRow{reasons: []string{"the module is of another architecture than its thread"}}
	}
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	s, err := m.find(ctx, pc, exact)
	var none *noRow
	switch {
	case errors.As(err, &none):
		s = &rowSource{none: none}
	case err != nil:
		return nil, err
	}
	s.module, s.key = m, key
	s.compile(m.arch)
	if len(m.rows) < maxCachedRows {
		m.rows[key] = s
	}
	return s, nil
}

func (m *module) find(ctx context.Context, pc uint64, exact bool) (*rowSource, error) {
	lookup := pc
	if !exact {
		lookup -= uint64(m.arch.desc.CallDistance)
	}
	source := &rowSource{defaults: m.defaults}
	if f := m.function(pc); f != nil && f.Kind == sdk.TrampolineFunction {
		return m.readRow(ctx, f, pc, pc, true)
	}
	if f := m.function(lookup); f != nil {
		if rules := m.special[f]; rules != nil {
			source.defaults = rules
		}
		switch f.Kind {
		case sdk.StackStartFunction, sdk.StackSwitchFunction:
			row, err := m.readSwitch(ctx, f, pc, lookup, exact)
			if row != nil || err != nil {
				return row, err
			}
			source.outermost = "a stack begins in " + nameOf(f)
			return source, nil
		case sdk.InjectedFunction:
			source.injected = true
		case sdk.OutermostFunction:
			source.outermost = nameOf(f) + " has no caller"
		case sdk.KernelFunction:
			source.outermost = nameOf(f) + " is a kernel"
		}
	}
	if row := rowIn(m.above, lookup); row != nil {
		source.row, source.by = row, ByObject
		return source, nil
	}
	var none noRow
	var bounds codeBounds
	if m.made != nil {
		bounds = codeBounds{m.made.Address, m.made.Address + m.made.Size, true, m.made.Name}
	}
	if m.findCFI(ctx, pc, lookup, exact, source, &bounds, &none) {
		return source, nil
	}
	if m.sframe != nil && m.findSFrame(lookup, source, &bounds, &none) {
		return source, nil
	}
	if m.findDepth(lookup, source, &bounds) {
		return source, nil
	}
	if row := rowIn(m.below, lookup); row != nil {
		source.row, source.by = row, ByObject
		return source, nil
	}
	if source.outermost == "" && m.isAtEntryPoint(ctx, pc, exact) {
		source.outermost = "the program begins there"
	}
	if source.outermost != "" {
		return source, nil
	}
	return m.findByCode(ctx, pc, lookup, exact, source, bounds, &none)
}

// findCFI finds the row in call frame information. bounds gets the function of the
// first FDE, and none why there is no row.
func (m *module) findCFI(ctx context.Context, pc, lookup uint64, exact bool, source *rowSource, bounds *codeBounds, none *noRow) (found bool) {
	for _, t := range m.tables {
		row, fde, err := cfiRow(t, pc, lookup, exact)
		if errors.Is(err, cfi.ErrNoFDE) && !exact {
			if row, fde = m.enteredRow(ctx, t, pc); row != nil {
				source.entered, err = true, nil
			}
		}
		if fde != nil && !bounds.known {
			*bounds = codeBounds{start: fde.Start, end: fde.End, known: true}
		}
		switch {
		case err == nil:
			source.row, source.by, source.dialect = row, ByCFI, m.dialects.ofCIE(fde.CIE)
			return true
		case errors.Is(err, cfi.ErrNoFDE):
		case errors.Is(err, errEmptyFDE):
			none.reasons = append(none.reasons, err.Error())
		default:
			// One entry that cannot be read is no reason to stop: other
			// sources may know the function.
			m.problem("%s: %v", m.Object.Name(), err)
			none.reasons = append(none.reasons, err.Error())
		}
	}
	return false
}

// findByCode finds the row by reading the code.
func (m *module) findByCode(ctx context.Context, pc, lookup uint64, exact bool, source *rowSource, bounds codeBounds, none *noRow) (*rowSource, error) {
	if row := m.rowRead(lookup); row != nil {
		source.row, source.by, source.defaults, source.complete = row, ByRules, m.arch.defaults, true
		return source, nil
	}
	rules, err := m.readCode(ctx, pc, lookup, exact, bounds)
	if err != nil {
		return nil, err
	}
	if rules.Trampoline {
		lookup = pc
	}
	if row := rowIn(rules.Rows, lookup); row != nil {
		source.row, source.by = row, ByRules
		if rules.Complete {
			source.defaults, source.complete = m.arch.defaults, true
		}
		return source, nil
	}
	if rules.Reason != "" {
		none.reasons = append(none.reasons, "code: "+rules.Reason)
	}
	none.uncalled = rules.Uncalled
	return nil, none
}

// nameOf is a plugin's function in a sentence.
func nameOf(f *sdk.Function) string {
	if f.Name == "" {
		return "the function"
	}
	return f.Name
}

// readRow reads the code of a function whose call frame information is not to be
// believed. Of one that a signal handler returns to it says what holds after a
// call, which is not how it was entered.
func (m *module) readRow(ctx context.Context, f *sdk.Function, pc, lookup uint64, exact bool) (*rowSource, error) {
	rules, err := m.readCode(ctx, pc, lookup, exact, codeBounds{f.Start, f.End, true, f.Name})
	if err != nil {
		return nil, err
	}
	if row := rowIn(rules.Rows, lookup); row != nil {
		return &rowSource{row: row, by: ByRules, defaults: m.defaults}, nil
	}
	return nil, &noRow{reasons: []string{"code: " + rules.Reason}}
}

// readSwitch reads the row of a function in which a stack begins or that goes on on
// another one, whose call frame information is of that other stack. A call before the
// stack is changed is one like others. nil says that a stack begins here.
func (m *module) readSwitch(ctx context.Context, f *sdk.Function, pc, lookup uint64, exact bool) (*rowSource, error) {
	source, err := m.readRow(ctx, f, pc, lookup, exact)
	var none *noRow
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	onThisStack := source.row.CFA.Kind == cfi.CFARegister && source.row.CFA.Register == uint64(m.arch.desc.SP)
	switch {
	case f.Kind == sdk.StackSwitchFunction && source.row.CFA.Kind == cfi.CFAExpression:
		source.switches = "a stack begins in " + nameOf(f)
	case !onThisStack && !exact:
		return nil, nil
	}
	return source, nil
}

// errEmptyFDE says that an FDE is no information. Compilers write such FDEs for
// accelerators: that nothing is said of a frame does not make it the outermost.
var errEmptyFDE = errors.New("has no rule for the CFA")

// cfiRow finds the row of a CFI table. A signal trampoline is entered by
// returning to its first instruction, so the byte before it belongs to nobody:
// an FDE with the augmentation S that starts exactly at pc is taken although pc
// came as a return address.
func cfiRow(t *cfi.Table, pc, lookup uint64, exact bool) (*cfi.Row, *cfi.FDE, error) {
	fde, err := t.FDE(lookup)
	if !exact && (err != nil || !fde.CIE.SignalFrame) {
		if at, atErr := t.FDE(pc); atErr == nil && at.CIE.SignalFrame {
			fde, err = at, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if fde.CIE.SignalFrame {
		lookup = pc
	}
	var row cfi.Row
	if err := fde.RowAt(lookup, &row); err != nil {
		return nil, fde, err
	}
	if row.CFA.Kind == cfi.NoCFA {
		return nil, fde, fmt.Errorf("call frame information: the FDE at offset %#x, of %#x to %#x, %w", fde.Offset, fde.Start, fde.End, errEmptyFDE)
	}
	return &row, fde, nil
}

func rowIn(rows []cfi.Row, pc uint64) *cfi.Row {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Start > pc })
	if i > 0 && pc < rows[i-1].End && rows[i-1].CFA.Kind != cfi.NoCFA {
		return &rows[i-1]
	}
	return nil
}

// A readFunction is a function that was read as a whole: it is not asked for again.
type readFunction struct {
	start, end uint64
	rules      *sdk.FrameRules
}

// rowRead is the row at an address in a function that was read before, or nil.
func (m *module) rowRead(lookup uint64) *cfi.Row {
	i := sort.Search(len(m.read), func(i int) bool { return m.read[i].start > lookup })
	if i > 0 && lookup < m.read[i-1].end {
		return rowIn(m.read[i-1].rules.Rows, lookup)
	}
	return nil
}

// rulesRead is what was read of a function with these bounds, or nil. One that
// another source bounds otherwise may have other gaps.
func (m *module) rulesRead(start, end uint64) *sdk.FrameRules {
	i := sort.Search(len(m.read), func(i int) bool { return m.read[i].start >= start })
	if i < len(m.read) && m.read[i].start == start && m.read[i].end == end {
		return m.read[i].rules
	}
	return nil
}

// keepRead keeps what was read of a function. One that was read for another address
// of it has them already.
func (m *module) keepRead(f readFunction) {
	i := sort.Search(len(m.read), func(i int) bool { return m.read[i].start >= f.start })
	if (i == len(m.read) || m.read[i].start >= f.end) && (i == 0 || m.read[i-1].end <= f.start) {
		m.read = slices.Insert(m.read, i, f)
	}
}

// codeBounds is where a function lies, if something says so.
type codeBounds struct {
	start, end uint64
	known      bool
	name       string
}

// readCode asks the plugin for rows of the function at pc.
func (m *module) readCode(ctx context.Context, pc, lookup uint64, exact bool, bounds codeBounds) (*sdk.FrameRules, error) {
	if !bounds.known && m.symbols != nil {
		// A return address that is a function's first byte was pushed by no
		// call of that function: it may be a trampoline's.
		if s, ok := m.symbols.Function(pc); ok && !exact && s.Start == pc && s.End > s.Start {
			rules, err := m.readCode(ctx, pc, pc, true, codeBounds{s.Start, s.End, true, s.Name})
			if err != nil || rules.Trampoline {
				return rules, err
			}
		}
		if s, ok := m.symbols.Function(lookup); ok && s.End > s.Start {
			bounds = codeBounds{s.Start, s.End, true, s.Name}
		}
	}
	window := bounds
	if !bounds.known || bounds.end-bounds.start > maxFunctionCode || lookup < bounds.start {
		window = m.codeWindow(pc)
		bounds.known = false
	}
	if bounds.known {
		if rules := m.rulesRead(window.start, window.end); rules != nil {
			return reasonedRules(rules, lookup), nil
		}
	}
	code := make([]byte, window.end-window.start)
	n, err := m.readCodeAt(window.start, code)
	if n == 0 {
		if n = m.codeOfFile(code, window.start); n == 0 {
			return &sdk.FrameRules{Reason: err.Error()}, nil
		}
	}
	base := m.base(window.start)
	asked := sdk.CodeRange{
		PC: lookup - base, Start: window.start - base, Code: code[:n],
		Bounded: bounds.known && n == len(code), Name: window.name, Exact: exact,
	}
	rules, err := m.askRules(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i := range rules.Rows {
		row := &rules.Rows[i]
		row.Start, row.End = row.Start+base, row.End+base
	}
	for i := range rules.Gaps {
		g := &rules.Gaps[i]
		g.Start, g.End = g.Start+base, g.End+base
	}
	if rules.Complete && asked.Bounded && !rules.Trampoline {
		m.keepRead(readFunction{window.start, window.end, rules})
	}
	return rules, nil
}

// reasonedRules is what was read of a whole function, with the reason why an
// address of it has no row, should it have none.
func reasonedRules(rules *sdk.FrameRules, lookup uint64) *sdk.FrameRules {
	r := *rules
	r.Reason = cmp.Or(r.GapReason(lookup), "reading the function gave no row here")
	return &r
}

// askRules asks for the rows of one function of the module. Its object is opened
// again where the plugin does not know it any longer.
func (m *module) askRules(ctx context.Context, code sdk.CodeRange) (*sdk.FrameRules, error) {
	v := &view{target: m.target}
	if m.Object == nil {
		return askRules(ctx, m.arch, v, 0, code)
	}
	rules, err := askRules(ctx, m.arch, v, m.handle(), code)
	if !errors.Is(err, sdk.ErrObjectNotOpen) {
		return rules, err
	}
	if _, err := m.arch.arch.OpenObject(ctx, v, m.openRequest()); err != nil {
		return nil, err
	}
	if rules, err = askRules(ctx, m.arch, v, m.handle(), code); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Object.Name(), err)
	}
	return rules, nil
}

// codeOfFile reads code from the module's object. Targets of accelerators have
// seldom any memory but that of their threads.
func (m *module) codeOfFile(code []byte, start uint64) int {
	if m.Object == nil {
		return 0
	}
	if !m.isLaid() {
		n, _ := m.Object.ReadAddress(code, start)
		return n
	}
	for _, s := range m.laid.Sections() {
		if s.Flags&elf.SHF_EXECINSTR == 0 || start-s.Address >= s.Size {
			continue
		}
		if data, err := s.Data(); err == nil && start-s.Address < uint64(len(data)) {
			return copy(code, data[start-s.Address:])
		}
	}
	return 0
}

// readCodeAt reads code at an address of the object.
func (m *module) readCodeAt(address uint64, buf []byte) (int, error) {
	if m.code != nil {
		return m.code(address, buf)
	}
	at, ok := m.Start(address)
	if !ok {
		return 0, errors.New("the code is not in the module's segments")
	}
	return m.target.state.ReadMemory(locexpr.DefaultSpace, at, buf)
}

// codeWindow is the code around pc, within its section or segment.
func (m *module) codeWindow(pc uint64) codeBounds {
	w := codeBounds{start: 0, end: ^uint64(0)}
	for _, s := range m.placed {
		if s.Executable && pc-s.Address < s.Size {
			w.start, w.end = s.Address, s.Address+s.Size
		}
	}
	if m.laid != nil {
		for _, s := range m.laid.Sections() {
			if s.Flags&elf.SHF_EXECINSTR != 0 && pc-s.Address < s.Size && s.Address >= w.start && s.Address+s.Size <= w.end {
				w = codeBounds{start: s.Address, end: s.Address + s.Size, name: s.Name}
			}
		}
	}
	if pc-w.start > codeWindow {
		w.start = pc - codeWindow
	}
	if w.end-pc > codeWindow {
		w.end = pc + codeWindow
	}
	return w
}

// askRules asks for the rows of one function.
func askRules(ctx context.Context, a *machine, v *view, object uint64, code sdk.CodeRange) (*sdk.FrameRules, error) {
	answer, err := a.arch.FrameRules(ctx, v, &sdk.FrameRulesRequest{Object: object, Functions: []sdk.CodeRange{code}})
	if err != nil {
		return nil, err
	}
	rules := &answer.Functions[0]
	sortRows(rules.Rows)
	return rules, nil
}
