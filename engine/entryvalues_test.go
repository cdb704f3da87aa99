package engine_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	entry "github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
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
	for _, b := range entryBuilds {
		source := filepath.Join(variablesDir, b.source)
		if _, err := os.Stat(source); err != nil { // a cached result is of these files
			t.Fatal(err)
		}
		exe := filepath.Join(t.TempDir(), "program")
		run(t, exec.Command(b.command[0], append(b.command[1:], source, "-o", exe)...))
		core := variablesCore(t, exe, b.fails)
		c := entryComparison{t: t, build: b.name, tally: tally{}}
		c.compare(core, gdbVariables(t, exe, core, "LIBRARIES=1"))
		c.tally.log(t, b.name)
		for class, n := range c.tally {
			total[class] += n
		}
	}
	total.log(t, "all")
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
	threads := map[string]*target.Thread{}
	for _, th := range tg.Threads() {
		threads[th.ID] = th
	}
	for i := range gdb {
		stack, frames := tg.Activations(context.Background(), threads[gdb[i].ID])
		index := 0
		var group []*gdbFrame // inlined calls come before the frame that they are in
		for k := range gdb[i].Frames {
			f := &gdb[i].Frames[k]
			group = append(group, f)
			if f.Kind == "inline" {
				continue
			}
			if f.Kind != "tailcall" {
				if index >= len(frames) || fmt.Sprintf("%#x", stack.Frames[index].PC) != f.PC {
					c.t.Errorf("%s thread %s: frame %d, gdb has one at %s", c.build, gdb[i].ID, index, f.PC)
					break
				}
				if f.Own {
					c.frame(frames[index], group, f.PC)
				}
				index++
			}
			group = nil
		}
	}
}

// frame compares a frame and the calls inlined into it.
func (c *entryComparison) frame(f walk.Activation, gdb []*gdbFrame, pc string) {
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
				line, _, _ := v.Number(entry.AttrDeclLine)
				key := variableKey{v.Name(), int(line), 0}
				for !ours[key].IsZero() {
					key.ordinal++
				}
				ours[key] = v
			}
			if s.Tag() == entry.TagLexicalBlock {
				continue
			}
			if level == len(gdb) {
				return fmt.Errorf("it has more than the %d functions that gdb has", len(gdb))
			}
			c.level(f, scopes[len(scopes)-1].Entry, ours, gdb[level], level == len(gdb)-1)
			level++
			clear(ours)
		}
		if level != len(gdb) {
			return fmt.Errorf("it has %d functions, gdb has %d", level, len(gdb))
		}
		return nil
	})
	if err != nil {
		c.tally[class{"frames differ", ""}]++
		c.t.Logf("%s at %s: %v", c.build, pc, err)
	}
}

func (c *entryComparison) level(f walk.Activation, function entry.Entry, ours map[variableKey]entry.Entry, gdb *gdbFrame, isPhysical bool) {
	seen := map[variableKey]bool{}
	for i := range gdb.Variables {
		g := &gdb.Variables[i]
		key := variableKey{g.Name, g.Line, 0}
		for seen[key] {
			key.ordinal++
		}
		seen[key] = true
		v := ours[key]
		if v.IsZero() {
			c.count("only gdb has the variable", "variable", gdb, g, fmt.Sprint(ours))
			continue
		}
		outcome, problem := c.variable(f, function, v, g)
		c.count(outcome, "variable", gdb, g, problem)
		if g.Entry != nil && isPhysical {
			outcome, problem := atEntry(f, function, v, g)
			c.count(outcome, "parameter at entry", gdb, g, problem)
		}
	}
}

func (c *entryComparison) count(outcome, what string, gdb *gdbFrame, g *gdbVariable, problem string) {
	c.tally[class{outcome, what}]++
	if problem != "" {
		c.t.Logf("%s: %s %s: %s %s (line %d): %s", c.build, gdb.Function, gdb.PC, what+" "+outcome, g.Name, g.Line, problem)
	}
}

// variable compares a variable.
func (c *entryComparison) variable(f walk.Activation, function, v entry.Entry, g *gdbVariable) (outcome, problem string) {
	if g.Error != "" {
		return "gdb failed", g.Error
	}
	ctx := f.UnitContext(function, v.Unit())
	l, err := f.Locate(function, v)
	if problem := illFormed(err); problem != nil {
		b := "nothing"
		if g.Bytes != nil {
			b = *g.Bytes
		}
		return "ill-formed", b + " " + problem.Error()
	}
	size, theirs := uint64(g.Size), &g.gdbValue
	if err == nil {
		if at, displacement, ok := l.Place(0).ImplicitPointer(); ok {
			if theirs = g.Target; theirs == nil {
				theirs = &gdbValue{}
			}
			size = pointedSize(v)
			if l, err = ctx.(locexpr.EntryContext).EntryLocation(at); err == nil {
				l, err = l.Offset(displacement * 8)
			}
		}
	}
	return compareValue(ctx, l, err, int64(size), theirs)
}

// pointedSize is the size of what a pointer or a reference points to.
func pointedSize(v entry.Entry) uint64 {
	t, err := v.Type()
	for err == nil && !t.IsZero() {
		switch t.Tag() {
		case entry.TagPointerType, entry.TagReferenceType, entry.TagRvalueReference:
			size, _ := t.Size()
			return size
		}
		t, err = t.Type()
	}
	return 0
}

// atEntry compares what a parameter was when the function was called.
func atEntry(f walk.Activation, function, v entry.Entry, g *gdbVariable) (outcome, problem string) {
	value, err := f.AtEntry(function, v)
	if g.Entry.Error != "" && strings.Contains(g.Entry.Error, "can be used only for function parameters") {
		return "gdb takes another variable of the name", ""
	}
	theirs := ""
	if g.Entry.Bytes != nil {
		theirs = *g.Entry.Bytes
	}
	switch {
	case err != nil && theirs == "":
		return neither, ""
	case err != nil:
		return onlyGDB, fmt.Sprintf("%s: %v", theirs, err)
	}
	b := value.Bytes(locexpr.LittleEndian)
	own := hex.EncodeToString(b[:min(len(b), int(g.Size))])
	switch {
	case theirs == "":
		return "only we have a value", fmt.Sprintf("%s: gdb: %s", own, g.Entry.Error)
	case own != theirs:
		return differs, fmt.Sprintf("%s, gdb has %s", own, theirs)
	}
	return equal, ""
}
