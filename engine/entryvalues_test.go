// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	entry "github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// entryBuilds are how the programs are compiled: with what each compiler writes for
// DWARF 5, and with GNU's forms of the same for DWARF 4.
var entryBuilds = []struct {
	name, source string
	command      []string
	fails        bool
}{
	{"gcc 5", "entries.c", []string{"gcc", "-O2", "-g", "-gdwarf-5"}, true},
	{"gcc 4", "entries.c", []string{"gcc", "-O2", "-g", "-gdwarf-4"}, true},
	{"clang 5", "entries.c", []string{"clang", "-O2", "-g", "-gdwarf-5"}, true},
	{"clang 4", "entries.c", []string{"clang", "-O2", "-g", "-gdwarf-4", "-ggdb"}, true},
	{"g++ 5", "workshop.cpp", []string{"g++", "-std=c++17", "-O2", "-g", "-gdwarf-5", "-DNDEBUG", "-pthread"}, true},
	{"g++ 4", "exchange.cpp", []string{"g++", "-std=c++17", "-O2", "-g", "-gdwarf-4", "-DNDEBUG", "-pthread"}, false},
	{"clang++ 5", "workshop.cpp", []string{"clang++", "-std=c++17", "-O2", "-g", "-gdwarf-5", "-DNDEBUG", "-pthread"}, true},
	{"clang++ 4", "exchange.cpp", []string{"clang++", "-std=c++17", "-O3", "-g", "-gdwarf-4", "-ggdb", "-DNDEBUG", "-pthread"}, false},
}

// TestEntryValuesEqualGDB compares the variables of every frame whose function is
// described, those of libraries too, and what each parameter was when its function
// was called, with what gdb says.
func TestEntryValuesEqualGDB(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs and runs gdb")
	}
	oracle.Tools(t, "gcc", "g++", "clang", "clang++", "gdb", "gcore")
	total := tally{}
	half := !proof.IsRequested()
	for i, b := range entryBuilds {
		if half && i%2 == 1 {
			continue
		}
		exe := variablesProgram(t, b.source, b.command)
		core := variablesCore(t, exe, b.fails)
		c := entryComparison{t: t, build: b.name, tally: tally{}}
		c.compare(core, gdbVariables(t, exe, core, "LIBRARIES=1"))
		c.tally.log(t, b.name)
		for class, n := range c.tally {
			total[class] += n
		}
	}
	total.log(t, "all")
	same, values, explained := 0, 0, 0
	for class, n := range total {
		switch class.outcome {
		case equal, equalInPart:
			same += n
			if class.location == "parameter at entry" {
				values += n
			}
		case neither, otherOne, listsTwice, outOfScope:
		default:
			explained += n
		}
	}
	t.Logf("%d have the same value, %d of them at entry, %d differ as docs/differences.md says", same, values, explained)
	least, leastAtEntry := 3000, 800
	if half {
		least, leastAtEntry = least/2, leastAtEntry/2
	}
	if same < least || values < leastAtEntry || explained*8 > same {
		t.Errorf("expected %d, %d, and an eighth at most", least, leastAtEntry)
	}
}

// entryComparison compares one core.
type entryComparison struct {
	t     *testing.T
	build string
	tally tally
}

func (c *entryComparison) compare(core string, gdb []gdbThread) {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer e.Close()
	tg, err := e.Open(core)
	if err != nil {
		c.t.Fatal(err)
	}
	threads := map[string]*trace.Thread{}
	for _, th := range tg.Threads() {
		threads[th.ID] = th
	}
	for i := range gdb {
		stack, frames := tg.Process().Activations(context.Background(), threads[gdb[i].ID])
		index := 0
		var group []*gdbFrame // inlined calls come before the frame that they are in
		var tails tailsOfFrame
		for k := range gdb[i].Frames {
			f := &gdb[i].Frames[k]
			group = append(group, f)
			if f.Kind == "inline" {
				continue
			}
			place := &gdbPlace{outer: gdb[i].Frames[k+1:]}
			if f.Kind == "tailcall" {
				if a, ok := tails.next(f.PC); !ok {
					c.count(onlyGDBsTail, "frame", f, &gdbVariable{}, "")
				} else if c.count(equal, "frame", f, &gdbVariable{}, ""); f.Own {
					c.tail(a, group, place)
				}
				group = nil
				continue
			}
			c.tally[class{onlyOurTail, "frame"}] += len(tails.frames)
			if index >= len(frames) || fmt.Sprintf("%#x", stack.Frames[index].PC) != f.PC {
				c.t.Errorf("%s thread %s: frame %d, gdb has one at %s", c.build, gdb[i].ID, index, f.PC)
				break
			}
			tails = tailsOfFrame{stack.Frames[index].TailCallers(), frames[index].TailCallers()}
			place.hasTail = len(tails.frames) > 0
			if f.Own {
				c.frame(frames[index], group, place)
			}
			index++
			group = nil
		}
	}
}

// tailsOfFrame are the functions that called that of a frame by tail calls.
type tailsOfFrame struct {
	frames      []trace.Frame
	activations []walk.Activation
}

// next takes the next one, which must have a PC.
func (l *tailsOfFrame) next(pc string) (a walk.Activation, ok bool) {
	if len(l.frames) == 0 || fmt.Sprintf("%#x", l.frames[0].PC) != pc {
		return a, false
	}
	a = l.activations[0]
	l.frames, l.activations = l.frames[1:], l.activations[1:]
	return a, true
}

// tail compares a frame of a function that was left by a tail call. gdb takes a call
// inlined there for the function itself, and has none for that.
func (c *entryComparison) tail(a walk.Activation, gdb []*gdbFrame, place *gdbPlace) {
	levels := 0
	err := object.Guard(func() error {
		scopes, err := a.Module().Code.DWARF().Scopes(a.Lookup())
		for _, s := range scopes {
			if s.Tag() != dw.TagLexicalBlock {
				levels++
			}
		}
		return err
	})
	if err != nil {
		c.t.Errorf("%s at %s: %v", c.build, gdb[0].PC, err)
	}
	if levels == len(gdb) {
		c.frame(a, gdb, place)
	}
}

// frame compares a frame and the calls inlined into it.
func (c *entryComparison) frame(f walk.Activation, gdb []*gdbFrame, place *gdbPlace) {
	err := object.Guard(func() error {
		scopes, err := f.Module().Code.DWARF().Scopes(f.Lookup())
		if err != nil {
			return err
		}
		level := 0
		ours := map[variableKey]entry.Entry{}
		for _, s := range scopes {
			for v, err := range s.Variables() {
				if err != nil {
					return err
				}
				line, _, _ := v.Number(dw.AttrDeclLine)
				key := variableKey{v.Name(), int(line), 0}
				for !ours[key].IsZero() {
					key.ordinal++
				}
				ours[key] = v
			}
			if s.Tag() == dw.TagLexicalBlock {
				continue
			}
			if level == len(gdb) {
				return fmt.Errorf("it has more than the %d functions that gdb has", len(gdb))
			}
			place.function, place.isPhysical = scopes[len(scopes)-1].Entry, level == len(gdb)-1
			c.level(f, ours, gdb[level], place)
			level++
			clear(ours)
		}
		if level != len(gdb) {
			return fmt.Errorf("it has %d functions, gdb has %d", level, len(gdb))
		}
		return nil
	})
	if err != nil {
		c.t.Errorf("%s at %s: %v", c.build, gdb[0].PC, err)
	}
}

// A gdbPlace is what a level of a frame is in.
type gdbPlace struct {
	function   entry.Entry
	isPhysical bool       // it is the function itself, not a call inlined into it
	hasTail    bool       // we know what called it by a tail call
	outer      []gdbFrame // gdb's frames further out
}

// calls counts the calls of a function further out.
func (p *gdbPlace) calls(function string) (n uint64) {
	for i := range p.outer {
		if p.outer[i].Kind == "normal" && p.outer[i].Function == function {
			n++
		}
	}
	return n
}

func (c *entryComparison) level(f walk.Activation, ours map[variableKey]entry.Entry, gdb *gdbFrame, place *gdbPlace) {
	seen := map[variableKey]bool{}
	for i := range gdb.Variables {
		g := &gdb.Variables[i]
		key := variableKey{g.Name, g.Line, 0}
		for seen[key] {
			key.ordinal++
		}
		seen[key] = true
		v := ours[key]
		if v.IsZero() && g.Bytes == nil && len(g.Leaves) == 0 {
			c.tally[class{withoutEntry(key), "variable"}]++
			continue
		}
		if v.IsZero() {
			c.t.Errorf("%s: %s %s: only gdb has %s (line %d)", c.build, gdb.Function, gdb.PC, g.Name, g.Line)
			continue
		}
		outcome, problem := c.variable(f, v, gdb, g, place)
		c.count(outcome, "variable", gdb, g, problem)
		if g.Entry != nil && place.isPhysical {
			outcome, problem := atEntry(f, v, gdb, g, place)
			c.count(outcome, "parameter at entry", gdb, g, problem)
		}
	}
}

func (c *entryComparison) count(outcome, what string, gdb *gdbFrame, g *gdbVariable, problem string) {
	c.tally[class{outcome, what}]++
	switch outcome {
	case onlyGDB, onlyWe, onlyGDBsTail, differs, "ill-formed", "gdb failed":
		c.t.Errorf("%s: %s %s: %s %s (line %d) %s: %s", c.build, gdb.Function, gdb.PC, what, g.Name, g.Line, outcome, problem)
	}
}

// The outcomes that docs/differences.md explains, beside those of
// TestVariablesEqualGDB.
const (
	onlyGDBsTail = "only gdb has a frame of a function that was left by a tail call"
	throughTail  = "differs: only we follow the tail calls"
	onlyOurTail  = "differs: only we have a frame of a function that was left by a tail call"
	needsData    = "differs: gdb has no value of a reference whose object the call site does not say"
	missesTail   = "differs: gdb does not see that tail calls lead back to the function"
	zerosAfter   = "differs: gdb has zeros behind the last piece"
	isWide       = "differs: gdb has no value of a parameter in a vector register"
	otherOne     = "gdb takes another variable of the name"
	onlyWe       = "only we have a value"
	listsTwice   = "gdb lists it once more, without a value"
	outOfScope   = "gdb lists it, without a value, where its block is not"
)

// withoutEntry is the class of a variable that gdb lists alone.
func withoutEntry(key variableKey) string {
	if key.ordinal > 0 {
		return listsTwice
	}
	return outOfScope
}

// variable compares a variable.
func (c *entryComparison) variable(f walk.Activation, v entry.Entry, gdb *gdbFrame, g *gdbVariable, place *gdbPlace) (outcome, problem string) {
	if g.Error != "" {
		return "gdb failed", g.Error
	}
	ctx := f.UnitContext(place.function, v.Unit())
	l, err := f.Locate(context.Background(), place.function, v)
	if problem := illFormed(err); problem != nil {
		return "ill-formed", problem.Error()
	}
	size, theirs := uint64(g.Size), &g.gdbValue
	if err == nil {
		if at, displacement, ok := l.Place(0).ImplicitPointer(); ok {
			if theirs = g.Target; theirs == nil {
				theirs = &gdbValue{}
			}
			size = pointedSize(v)
			if l, err = ctx.(locexpr.EntryContext).EntryLocation(context.Background(), at); err == nil {
				l, err = l.Offset(displacement * 8)
			}
		}
	}
	outcome, problem = compareValue(ctx, l, err, int64(size), theirs)
	switch {
	case outcome == onlyGDB && errors.Is(err, walk.ErrNoCallValue):
		return place.explained(gdb, onlyGDB, problem)
	case outcome == onlyGDB && f.Index() > 0 && readsClobbered(f, v):
		return callClobbered, ""
	case outcome == onlyGDB && isCutAtPieces(ctx, l, theirs):
		return zerosAfter, ""
	case outcome == differs && gdb.Function == "visit" && g.Name == "at":
		var b [8]byte
		if l.Read(context.Background(), ctx, b[:], 64) == nil && binary.LittleEndian.Uint64(b[:]) == place.calls("visit") {
			return gdbRepeats, ""
		}
	}
	return outcome, problem
}

// isCutAtPieces reports whether a composite location has the bits of gdb's value up to
// its end, and gdb zeros behind that. Clang leaves padding out.
func isCutAtPieces(ctx locexpr.Context, l locexpr.Location, g *gdbValue) bool {
	if l.NumPlaces() != 1 || l.Place(0).Storage != locexpr.Composite {
		return false
	}
	leaves := g.Leaves
	if g.Bytes != nil {
		leaves = []gdbLeaf{{0, uint64(len(*g.Bytes)) * 4, *g.Bytes}}
	}
	size := uint64(0)
	for _, p := range l.Place(0).Parts() {
		size += p.Bits
	}
	for _, leaf := range leaves {
		there := min(leaf.Bits, size-min(size, uint64(leaf.Start)))
		digits := there / 4
		if strings.Trim(leaf.Bytes[digits:], "0") != "" {
			return false
		}
		leaf.Bits, leaf.Bytes = there, leaf.Bytes[:digits]
		if outcome, _ := compareLeaf(ctx, l, leaf); there > 0 && outcome != equal {
			return false
		}
	}
	return true
}

// explained sorts out what only gdb has of a call. It does not read the call sites of
// tail calls that have no return address, as clang writes them for DWARF 5: of even in
// entries.c, which is called with 2 and fails when it has called itself with 0, it says 2.
func (p *gdbPlace) explained(gdb *gdbFrame, outcome, problem string) (string, string) {
	if gdb.Function == "even" && strings.Contains(problem, "lead back") {
		return missesTail, ""
	}
	return outcome, problem
}

// readsClobbered reports whether the location of a variable uses a register that calls
// may change.
func readsClobbered(f walk.Activation, v entry.Entry) bool {
	for e := v; !e.IsZero(); {
		l, ok, err := e.Location(dw.AttrLocation)
		if err != nil {
			return false
		}
		if ok {
			exprs, err := l.At(f.Lookup())
			return err == nil && useClobbered(exprs)
		}
		if e, err = e.Origin(); err != nil {
			return false
		}
	}
	return false
}

// pointedSize is the size of what a pointer or a reference points to.
func pointedSize(v entry.Entry) uint64 {
	t, err := v.Type()
	for err == nil && !t.IsZero() {
		switch t.Tag() {
		case dw.TagPointerType, dw.TagReferenceType, dw.TagRvalueReferenceType:
			size, _ := t.Size()
			return size
		}
		t, err = t.Type()
	}
	return 0
}

// atEntry compares what a parameter was when the function was called.
func atEntry(f walk.Activation, v entry.Entry, gdb *gdbFrame, g *gdbVariable, place *gdbPlace) (outcome, problem string) {
	same := 0
	for i := range gdb.Variables {
		if gdb.Variables[i].Name == g.Name {
			same++
		}
	}
	if same > 1 { // of a parameter pack, or one that a block hides
		return otherOne, ""
	}
	value, err := f.AtEntry(context.Background(), place.function, v)
	theirs, now := "", ""
	if g.Entry.Bytes != nil {
		theirs = *g.Entry.Bytes
	}
	if g.Bytes != nil {
		now = *g.Bytes
	}
	switch {
	case err != nil && theirs == "":
		return neither, ""
	case err != nil:
		return place.explained(gdb, onlyGDB, fmt.Sprintf("%s: %v", theirs, err))
	}
	b := value.Bytes(locexpr.LittleEndian)
	own := hex.EncodeToString(b[:min(len(b), int(g.Size))])
	switch {
	case theirs == "" && strings.Contains(g.Entry.Error, "DW_AT_call_data_value") && (now == "" || now == own || readsClobbered(f, v)):
		return needsData, "" // a reference stays what it was
	case theirs == "" && strings.Contains(g.Entry.Error, "integers of more than 8 bytes"):
		return isWide, ""
	case theirs == "" && place.hasTail:
		return throughTail, ""
	case theirs == "":
		return onlyWe, fmt.Sprintf("%s, now it is %s: gdb: %s", own, now, g.Entry.Error)
	case own == theirs:
		return equal, ""
	case own == now, gdb.Function == "visit" && value.Uint64() == place.calls("visit"):
		return gdbRepeats, ""
	}
	return differs, fmt.Sprintf("%s, gdb has %s, now it is %s", own, theirs, now)
}
