// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"context"
	"debug/dwarf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	entry "github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// The programs, each compiled by
//
//	g++ -std=c++17 -O2 -g -gdwarf-5 -DNDEBUG -pthread NAME.cpp
//
// exchange waits in every thread, workshop fails in one.
var variablePrograms = []struct {
	name  string
	fails bool
}{{"exchange", false}, {"workshop", true}}

const variablesDir = "testdata/variables"

// gdbThread is the output of variables.py for a thread.
type gdbThread struct {
	ID     string
	Frames []gdbFrame
}

type gdbFrame struct {
	Kind      string // inline, tailcall or normal
	PC        string
	Function  string
	Own       bool // the function is the program's, not a library's
	Variables []gdbVariable
}

type gdbVariable struct {
	Name string
	Line int
	Size int64
	gdbValue
	Target *gdbValue // what it points to, of a pointer whose bytes are zeros
	Error  string
	Entry  *gdbEntry // what it was when the function was called, of a parameter
}

type gdbEntry struct {
	gdbValue
	Error string
}

// gdbValue is the bytes of a value. Where some are not there, it has the parts
// that are.
type gdbValue struct {
	Bytes  *string
	Leaves []gdbLeaf
}

type gdbLeaf struct {
	Start int64 // in bits
	Bits  uint64
	Bytes string
}

func (v *gdbValue) absent() bool { return v.Bytes == nil && len(v.Leaves) == 0 }

// TestVariablesEqualGDB compares the raw bytes of every variable and parameter
// of every frame, inlined calls included, of every thread with those that gdb
// reads, in two programs that were optimized. Frames of libraries are left out.
func TestVariablesEqualGDB(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs and runs gdb")
	}
	oracle.Tools(t, "g++", "gdb", "gcore")
	total := tally{}
	for _, p := range variablePrograms {
		exe := variablesProgram(t, p.name+".cpp", []string{"g++", "-std=c++17", "-O2", "-g", "-gdwarf-5", "-DNDEBUG", "-pthread"})
		core := variablesCore(t, exe, p.fails)
		c := comparison{t: t, exe: exe, tally: tally{}}
		c.compare(core, gdbVariables(t, exe, core))
		c.tally.log(t, p.name)
		for class, n := range c.tally {
			total[class] += n
		}
	}
	total.log(t, "both")

	pairs, telling, explained := 0, 0, 0
	for class, n := range total {
		pairs += n
		switch class.outcome {
		case equal, equalInPart:
			if class.location != "DW_OP_fbreg" {
				telling += n
			}
		case callClobbered, gdbRepeats:
			explained += n
		}
	}
	t.Logf("%d pairs, %d of them with a value that is not at DW_OP_fbreg, %d differ as docs/differences.md says", pairs, telling, explained)
	if pairs < 1000 || telling*2 < pairs {
		t.Errorf("%d pairs, %d of them with a value that is not at DW_OP_fbreg: expected 1000 or more, and half of them", pairs, telling)
	}
	if explained*100 > pairs {
		t.Errorf("%d of %d pairs differ, expected at most 1%%", explained, pairs)
	}
}

// variablesProgram compiles a source of variablesDir.
func variablesProgram(t *testing.T, source string, command []string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(variablesDir, source))
	if err != nil {
		t.Fatal(err)
	}
	command = append(command[:len(command):len(command)], path, "-o", "program")
	return filepath.Join(oracle.Build{Sources: []string{path}, Commands: [][]string{command}}.Make(t), "program")
}

// variablesCore runs a program until it waits, or until it fails, and takes its
// core.
func variablesCore(t *testing.T, exe string, fails bool) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), "core")
	// Few arenas and small stacks keep the core small.
	limits := `ulimit -c unlimited -s 512; export MALLOC_ARENA_MAX=1; exec "$0" "$@"`
	if fails {
		oracle.Run(t, "bash", "-c", limits, "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
			"-ex", "run", "-ex", "generate-core-file "+core, exe)
		return core
	}
	cmd := exec.Command("bash", "-c", limits, exe)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("%s said %q, %v", exe, line, err)
	}
	time.Sleep(100 * time.Millisecond)
	pid := strconv.Itoa(cmd.Process.Pid)
	oracle.Run(t, "gcore", "-o", core, pid)
	return core + "." + pid
}

func gdbVariables(t *testing.T, exe, core string, environment ...string) []gdbThread {
	t.Helper()
	script := filepath.Join(variablesDir, "variables.py")
	if _, err := os.Stat(script); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "variables.json")
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "source "+script, exe, core)
	cmd.Env = append(append(os.Environ(), "VARIABLES="+out), environment...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var threads []gdbThread
	if err := json.Unmarshal(data, &threads); err != nil {
		t.Fatal(err)
	}
	return threads
}

// class is the key by which pairs are counted.
type class struct{ outcome, location string }

// The outcomes of a comparison. The last two are explained in
// docs/differences.md; what is none of these fails the test.
const (
	equal         = "equal"
	equalInPart   = "equal in the parts that are there"
	neither       = "neither has a value"
	callClobbered = "differs: only gdb reads registers that calls may change"
	gdbRepeats    = "differs: gdb repeats the call site in inlined calls"
)

type tally map[class]int

func (c tally) log(t *testing.T, what string) {
	t.Helper()
	var lines []string
	sum := 0
	for class, n := range c {
		lines = append(lines, fmt.Sprintf("%6d %s, %s", n, class.outcome, class.location))
		sum += n
	}
	sort.Strings(lines)
	t.Logf("%s: %d pairs\n%s", what, sum, strings.Join(lines, "\n"))
}

// comparison compares one core.
type comparison struct {
	t     *testing.T
	exe   string
	tally tally
	info  *debugInfo
	core  *engine.Target
}

func (c *comparison) compare(core string, gdb []gdbThread) {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer e.Close()
	if c.core, err = e.Open(core); err != nil {
		c.t.Fatal(err)
	}
	c.info = readDebugInfo(c.t, c.exe)
	threads := map[string]*trace.Thread{}
	for _, th := range c.core.Threads() {
		threads[th.ID] = th
	}
	for i := range gdb {
		th := threads[gdb[i].ID]
		if th == nil {
			c.t.Errorf("thread %s is not in the core", gdb[i].ID)
			continue
		}
		c.thread(th, gdb[i].Frames)
	}
}

// activation is a physical frame.
type activation struct {
	*comparison
	thread *trace.Thread
	index  int
	frames []trace.Frame
	held   []walk.Activation // the frames that can be asked

	function *die        // the frame's; nil where that is not the program's
	entry    entry.Entry // the same, as the engine reads it
}

func (a *activation) frame() *trace.Frame { return &a.frames[a.index] }

// lookup is the frame's PC as an address of the program, inside the call.
func (a *activation) lookup() uint64 {
	f := a.frame()
	if f.Exact {
		return f.ModuleOffset
	}
	return f.ModuleOffset - 1
}

// functionOf is the function of a frame, nil where that is not the program's.
func (a *activation) functionOf(index int) *die {
	at := activation{comparison: a.comparison, index: index, frames: a.frames}
	if m := at.frame().Module; m == nil || m.Path != a.exe {
		return nil
	}
	return a.info.function(at.lookup())
}

// find finds the function, and its entry as the engine reads it.
func (a *activation) find() error {
	if a.function = a.functionOf(a.index); a.function == nil {
		return errors.New("the frame is in no function")
	}
	scopes, err := a.held[a.index].Module().Code.DWARF().Scopes(a.held[a.index].Lookup())
	if err != nil {
		return err
	}
	if len(scopes) == 0 || scopes[len(scopes)-1].Offset() != uint64(a.function.Offset) {
		return fmt.Errorf("the engine has other scopes: %v", scopes)
	}
	a.entry = scopes[len(scopes)-1].Entry
	return nil
}

func (c *comparison) thread(th *trace.Thread, gdb []gdbFrame) {
	stack, held := c.core.Process().Activations(context.Background(), th)
	index := 0
	var group []gdbFrame // inlined calls come before the frame that they are in
	var tails tailsOfFrame
	for _, f := range gdb {
		group = append(group, f)
		switch f.Kind {
		case "inline":
			continue
		case "tailcall":
			if _, ok := tails.next(f.PC); !ok {
				c.t.Errorf("thread %s: only gdb has a frame at %s that was left by a tail call", th.ID, f.PC)
			}
			group = nil
			continue
		}
		if n := len(tails.frames); n > 0 {
			c.t.Errorf("thread %s: only we have %d frames that were left by tail calls before %s", th.ID, n, f.PC)
		}
		if index >= len(stack.Frames) {
			c.t.Errorf("thread %s: gdb has a frame %d at %s, the stack ended: %s", th.ID, index, f.PC, stack.Stopped.Detail)
			return
		}
		a := &activation{comparison: c, thread: th, index: index, frames: stack.Frames, held: held}
		if pc := fmt.Sprintf("0x%x", a.frame().PC); pc != f.PC {
			c.t.Errorf("thread %s: frame %d is at %s, gdb has %s", th.ID, index, pc, f.PC)
			return
		}
		if f.Own {
			a.compare(group)
		}
		tails = tailsOfFrame{stack.Frames[index].TailCallers(), held[index].TailCallers()}
		group = nil
		index++
	}
}

// compare compares a frame and the calls inlined into it.
func (a *activation) compare(gdb []gdbFrame) {
	if err := a.find(); err != nil {
		a.t.Errorf("thread %s: frame %d at %#x: %v", a.thread.ID, a.index, a.frame().PC, err)
		return
	}
	levels := a.info.levels(a.function, a.lookup())
	if len(levels) != len(gdb) {
		a.t.Errorf("thread %s frame %d at %#x: %d calls in it, gdb has %d", a.thread.ID, a.index, a.lookup(), len(levels), len(gdb))
		return
	}
	err := object.Guard(func() error {
		for i := range levels {
			a.level(&gdb[i], levels[i])
		}
		return nil
	})
	if err != nil {
		a.t.Errorf("thread %s frame %d: %v", a.thread.ID, a.index, err)
	}
}

// variableKey tells the variables of a level apart; ordinal counts those of the
// same name and line from the innermost block on.
type variableKey struct {
	name    string
	line    int
	ordinal int
}

func (a *activation) level(gdb *gdbFrame, scopes []scope) {
	ctx := a.held[a.index].UnitContext(a.entry, a.entry.Unit())
	ours := map[variableKey]*die{}
	for _, s := range scopes {
		for _, x := range s.variables {
			line, _ := a.info.attribute(x, dwarf.AttrDeclLine).(int64)
			key := variableKey{a.info.name(x), int(line), 0}
			for ours[key] != nil {
				key.ordinal++
			}
			ours[key] = x
		}
	}
	seen := map[variableKey]bool{}
	for i := range gdb.Variables {
		g := &gdb.Variables[i]
		key := variableKey{g.Name, g.Line, 0}
		for seen[key] {
			key.ordinal++
		}
		seen[key] = true
		x := ours[key]
		if x == nil {
			a.t.Errorf("%s: only gdb has %+v", a.where(gdb), *g)
			continue
		}
		location, l, err := a.location(x)
		outcome, problem := a.variable(ctx, x, location, l, err, g)
		a.tally[class{outcome, location}]++
		switch outcome {
		case equal, equalInPart, neither, callClobbered, gdbRepeats:
		default:
			a.t.Errorf("%s: %s (line %d), entry %#x, %s: %s: %s", a.where(gdb), g.Name, g.Line, x.Offset, location, outcome, problem)
		}
	}
	for key := range ours {
		if !seen[key] {
			a.t.Errorf("%s: only we have %+v", a.where(gdb), key)
		}
	}
}

func (a *activation) where(gdb *gdbFrame) string {
	return fmt.Sprintf("thread %s frame %d at %#x, %s", a.thread.ID, a.index, a.lookup(), gdb.Function)
}

// expressions are the expressions of a variable's location that are in force.
func (a *activation) expressions(x *die) [][]byte {
	switch v := a.info.attribute(x, dwarf.AttrLocation).(type) {
	case []byte:
		return [][]byte{v}
	case int64:
		exprs, err := a.info.lists.At(uint64(v), a.lookup(), x.unit.base, nil)
		if err != nil {
			a.t.Errorf("entry %#x: %v", x.Offset, err)
		}
		return exprs
	}
	return nil
}

// location is where a variable is, and the class of that.
func (a *activation) location(x *die) (class string, l locexpr.Location, err error) {
	class = optimizedOut
	for _, expr := range a.expressions(x) {
		class = classOf(expr)
	}
	if a.info.attribute(x, dwarf.AttrLocation) == nil && a.info.attribute(x, dwarf.AttrConstValue) != nil {
		class = "DW_AT_const_value"
	}
	variable, err := a.entry.Unit().Entry(uint64(x.Offset))
	if err == nil {
		l, err = a.held[a.index].Locate(context.Background(), a.entry, variable)
	}
	return class, l, err
}

// locationClasses are the classes of expressions. An expression is of the last
// one that has an operation of it, so that what uses DW_OP_fbreg is always of
// that class.
var locationClasses = []struct{ name, operations string }{
	{"DW_OP_addr", "DW_OP_addr"},
	{"DW_OP_breg", "DW_OP_breg DW_OP_bregx"},
	{"DW_OP_reg", "DW_OP_reg DW_OP_regx"},
	{"DW_OP_implicit_value", "DW_OP_implicit_value"},
	{"DW_OP_stack_value", "DW_OP_stack_value"},
	{"DW_OP_implicit_pointer", "DW_OP_implicit_pointer"},
	{"typed", "DW_OP_convert DW_OP_regval_type DW_OP_deref_type DW_OP_const_type DW_OP_reinterpret"},
	{"DW_OP_entry_value", "DW_OP_entry_value DW_OP_GNU_parameter_ref"},
	{"DW_OP_piece", "DW_OP_piece DW_OP_bit_piece"},
	{"DW_OP_fbreg", "DW_OP_fbreg"},
}

const optimizedOut = "optimized out"

func classOf(expr []byte) string {
	rank, name := -1, optimizedOut
	for in, err := range locexpr.Decode(expr, locexpr.DWARF5, 8, locexpr.LittleEndian) {
		if err != nil {
			return "cannot be decoded"
		}
		op := strings.TrimRight(in.Op.Name, "0123456789")
		for i, c := range locationClasses {
			if i > rank && slices.Contains(strings.Fields(c.operations), op) {
				rank, name = i, c.name
			}
		}
	}
	return name
}

// variable compares a variable that is at l, or, with err, nowhere.
func (a *activation) variable(ctx locexpr.Context, x *die, location string, l locexpr.Location, err error, g *gdbVariable) (outcome, problem string) {
	if g.Error != "" {
		return "gdb failed", g.Error
	}
	size, sizeErr := a.info.size(x)
	if sizeErr != nil || size != g.Size {
		return "size", fmt.Sprintf("%d bytes, gdb has %d: %v", size, g.Size, sizeErr)
	}
	theirs := &g.gdbValue
	if problem := illFormed(err); problem != nil {
		return "ill-formed", problem.Error()
	}
	if err == nil {
		if entry, displacement, ok := l.Place(0).ImplicitPointer(); ok {
			// gdb gives such a pointer bytes of zeros. What it points to is
			// compared.
			if size, err = a.info.size(a.info.pointer(x)); err != nil {
				return "size", err.Error()
			}
			if theirs = g.Target; theirs == nil {
				theirs = &gdbValue{}
			}
			if l, err = ctx.(locexpr.EntryContext).EntryLocation(context.Background(), entry); err == nil {
				l, err = l.Offset(displacement * 8)
			}
		}
	}
	outcome, problem = compareValue(ctx, l, err, size, theirs)
	switch {
	case outcome == onlyGDB && a.readsClobbered(x):
		return callClobbered, ""
	case outcome == differs && location == "DW_OP_entry_value" && a.isVisitAt(x, ctx, l):
		return gdbRepeats, ""
	}
	return outcome, problem
}

// illFormed returns an error that says that an expression is none: gdb having
// no value either does not excuse it.
func illFormed(err error) error {
	var expression *locexpr.Error
	var list *locexpr.ListError
	if errors.As(err, &expression) && expression.Kind == locexpr.IllFormed || errors.As(err, &list) && list.Kind == locexpr.IllFormed {
		return err
	}
	return nil
}

// The outcomes that fail the test.
const (
	onlyGDB = "only gdb has a value"
	differs = "differs"
)

func compareValue(ctx locexpr.Context, l locexpr.Location, err error, size int64, g *gdbValue) (outcome, problem string) {
	buf := make([]byte, size)
	if err == nil {
		err = l.Read(context.Background(), ctx, buf, uint64(size)*8)
	}
	switch {
	case g.absent() && (err != nil || size == 0):
		return neither, ""
	case g.Bytes == nil && err == nil:
		return onlyWe, fmt.Sprintf("%x, %v, gdb has of it %+v", buf, l, g.Leaves)
	case g.Bytes == nil:
		for _, leaf := range g.Leaves {
			if outcome, problem := compareLeaf(ctx, l, leaf); outcome != equal {
				return outcome, problem
			}
		}
		return equalInPart, ""
	case err != nil:
		return onlyGDB, fmt.Sprintf("%s, %v: %v", *g.Bytes, l, err)
	case hex.EncodeToString(buf) != *g.Bytes:
		return differs, fmt.Sprintf("%x, gdb has %s, %v", buf, *g.Bytes, l)
	}
	return equal, ""
}

// compareLeaf compares a part of a variable.
func compareLeaf(ctx locexpr.Context, l locexpr.Location, leaf gdbLeaf) (outcome, problem string) {
	at, err := l.Offset(leaf.Start)
	buf := make([]byte, (leaf.Bits+7)/8)
	if err == nil {
		err = at.Read(context.Background(), ctx, buf, leaf.Bits)
	}
	switch got := hex.EncodeToString(buf); {
	case err != nil:
		return onlyGDB, fmt.Sprintf("bit %d: %s, %v: %v", leaf.Start, leaf.Bytes, l, err)
	case got != leaf.Bytes:
		return differs, fmt.Sprintf("bit %d: %s, gdb has %s, %v", leaf.Start, got, leaf.Bytes, l)
	}
	return equal, ""
}

// readsClobbered reports whether the location of a variable uses a register that
// calls may change, in a frame that is in a call of the program's own. The
// compiler then knew that this one does not change it (-fipa-ra); the rules of
// the callee do not say so.
func (a *activation) readsClobbered(x *die) bool {
	if a.index == 0 || a.functionOf(a.index-1) == nil {
		return false
	}
	return useClobbered(a.expressions(x))
}

// useClobbered reports whether one of several expressions reads a register that calls
// may change.
func useClobbered(exprs [][]byte) bool {
	for _, expr := range exprs {
		for in, err := range locexpr.Decode(expr, locexpr.DWARF5, 8, locexpr.LittleEndian) {
			if err != nil {
				return false
			}
			reg, register := uint64(0), false
			for _, prefix := range []string{"DW_OP_reg", "DW_OP_breg"} {
				if digits, ok := strings.CutPrefix(in.Op.Name, prefix); ok {
					if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
						reg, register = n, true
					}
				}
			}
			// rax, rdx, rcx, rsi, rdi, r8 to r11, xmm0 to xmm15 (System V psABI, 3.2.1).
			if register && (reg <= 2 || reg == 4 || reg == 5 || reg >= 8 && reg <= 11 || reg >= 17 && reg <= 32) {
				return true
			}
		}
	}
	return false
}

// isVisitAt reports whether l is right for the parameter at of visit in
// exchange.cpp, which is how many calls of visit there are around this one.
func (a *activation) isVisitAt(x *die, ctx locexpr.Context, l locexpr.Location) bool {
	fn := a.function
	if a.info.name(fn) != "visit" || a.info.name(x) != "at" {
		return false
	}
	outer := uint64(0)
	for i := a.index + 1; i < len(a.frames); i++ {
		if a.functionOf(i) == fn {
			outer++
		}
	}
	var buf [8]byte
	return l.Read(context.Background(), ctx, buf[:], 64) == nil && binary.LittleEndian.Uint64(buf[:]) == outer
}
