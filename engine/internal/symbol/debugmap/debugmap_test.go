// SPDX-License-Identifier: Apache-2.0

package debugmap_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
)

// program is an executable that was linked with a debug map, and what dsymutil made of that.
type program struct{ name, path, dsym string }

// programs makes programs of C and of C++, of two object files each, of which the second is in an archive, for both
// machines.
func programs(t *testing.T) (list []program) {
	t.Helper()
	oracle.Tools(t, "clang-22", "clang++-22", "ld64.lld-22", "dsymutil-22", "llvm-ar-22")
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{Sources: []string{folder}}
	for _, arch := range []string{"arm64", "x86_64"} {
		for i, options := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-gdwarf-4", "-fcommon"}, {"-O1", "-gdwarf-5"}, {"-Os", "-fno-unwind-tables"}} {
			for _, sources := range [][3]string{{"clang-22", "plain.c", "other.c"}, {"clang++-22", "classes.cpp", "other.cpp"}} {
				p := program{name: fmt.Sprintf("%s-%d-%s", sources[1], i, arch)}
				for n, source := range sources[1:] {
					compile := append([]string{sources[0], "-target", arch + "-apple-macos13", "-g", "-w", "-c", "-o", fmt.Sprintf("%s-%d.o", p.name, n)}, options...)
					b.Commands = append(b.Commands, append(compile, filepath.Join(folder, source)))
				}
				first, second := p.name+"-0.o", p.name+".a"
				b.Commands = append(b.Commands,
					[]string{"llvm-ar-22", "--format=darwin", "rcU", second, p.name + "-1.o"},
					[]string{"ld64.lld-22", "-arch", arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-dead_strip", "-o", p.name, second, first},
					[]string{"dsymutil-22", p.name, "-o", p.name + ".dwarf"})
				p.path, p.dsym = p.name, filepath.Join(p.name+".dwarf", "Contents", "Resources", "DWARF", p.name)
				list = append(list, p)
			}
		}
	}
	dir := b.Make(t)
	for i := range list {
		list[i].path, list[i].dsym = filepath.Join(dir, list[i].path), filepath.Join(dir, list[i].dsym)
	}
	return list
}

// open opens the debug information of a program: of its dSYM, or of its object files.
func open(t *testing.T, path, dsym string) (*object.Object, *dwarf.Reader) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	var debug *object.Object
	if dsym != "" {
		if debug, err = object.Open(dsym); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = debug.Close() })
	}
	r := resolve.New(o, debug)
	t.Cleanup(func() {
		if problems := r.Problems(); len(problems) > 0 {
			t.Errorf("%s: %q", path, problems)
		}
		_ = r.Close()
	})
	d := r.DWARF()
	if d == nil {
		t.Fatalf("%s: no DWARF", path)
	}
	return o, d
}

// location is a place as text: its expressions at an address.
func location(e dwarf.Entry, attr dw.Attr, address uint64) string {
	l, ok, err := e.Location(attr)
	if err != nil || !ok {
		return fmt.Sprint(ok, err)
	}
	exprs, err := l.At(address)
	text := fmt.Sprint(err)
	for _, expr := range exprs {
		// An index counts the addresses of one file.
		if len(expr) > 1 && expr[0] == dw.OpAddrx && expr[1] < 0x80 {
			at, err := l.Unit.Addrx(uint64(expr[1]))
			text += fmt.Sprintf(" addr %#x %v %x", at, err, expr[2:])
			continue
		}
		if len(expr) == 9 && expr[0] == dw.OpAddr {
			text += fmt.Sprintf(" addr %#x <nil> ", uint64(expr[1])|uint64(expr[2])<<8|uint64(expr[3])<<16|uint64(expr[4])<<24|uint64(expr[5])<<32)
			continue
		}
		text += fmt.Sprintf(" %x", expr)
	}
	return text
}

// typeOf is a type as text, with the members of structures.
func typeOf(e dwarf.Entry) string {
	t, err := e.ValueType()
	if err != nil || t == nil {
		return fmt.Sprint(err)
	}
	text := t.String()
	full := t.Complete()
	if parts, err := full.Parts(); err == nil && parts != nil {
		for _, m := range parts.Members {
			text += " " + m.Name
		}
	}
	if element, err := t.Element(); err == nil && element != nil {
		if parts, err := element.Complete().Parts(); err == nil && parts != nil {
			for _, m := range parts.Members {
				text += " *" + m.Name
			}
		}
	}
	return text
}

// describe is all that is said of an address, as text.
func describe(d *dwarf.Reader, address uint64) string {
	var b strings.Builder
	scopes, err := d.Scopes(address)
	fmt.Fprintln(&b, err)
	for _, s := range scopes {
		pc, ok, err := s.EntryPC()
		fmt.Fprintf(&b, "%v %s %#x %v %v %s\n", s.Tag(), s.Name(), pc, ok, err, location(s.Entry, dw.AttrFrameBase, address))
		for v, err := range s.Variables() {
			fixed, isFixed := v.StaticAddress()
			line, _, _ := v.Number(dw.AttrDeclLine)
			fmt.Fprintf(&b, "\t%v %s %s line %d %v fixed %#x %v\n", err, v.Name(), typeOf(v), line, isFixed, fixed, location(v, dw.AttrLocation, address))
			if l, err := v.Placed(); err == nil && l != nil {
				exprs, err := l.At(address)
				fmt.Fprintln(&b, len(exprs), err)
			}
		}
	}
	if site, err := d.CallSite(address); err != nil || !site.IsZero() {
		callee, _ := site.Callee()
		pc, after, ok, _ := site.PC()
		fmt.Fprintf(&b, "call %s %#x %#x %v %v", nameOf(callee), pc, after, ok, err)
		for p, err := range site.Parameters() {
			value, _, _ := p.Value()
			fmt.Fprintf(&b, " %s %x %v", location(p.Entry, dw.AttrLocation, address), value.Expr, err)
		}
		if !callee.IsZero() {
			bodies, areAll, err := d.Bodies(site, callee)
			for _, body := range bodies {
				pc, _, _ := body.EntryPC()
				fmt.Fprintf(&b, " %s at %#x", body.Name(), pc)
			}
			fmt.Fprintln(&b, areAll, err)
		}
	}
	frames, err := d.Frames(nil, address)
	fmt.Fprintln(&b, frames, err)
	locals, err := d.Locals(nil, address)
	fmt.Fprintln(&b, locals, err)
	list, err := d.Equals(address)
	fmt.Fprintln(&b, len(list), err)
	f, err := d.Function(address)
	fmt.Fprintln(&b, nameOf(f), err)
	tails, areAll, err := tailCalls(f)
	fmt.Fprintln(&b, tails, areAll, err)
	return b.String()
}

func nameOf(e dwarf.Entry) string {
	if e.IsZero() {
		return ""
	}
	return e.Name()
}

func tailCalls(f dwarf.Entry) (text string, areAll bool, err error) {
	if f.IsZero() {
		return "", false, nil
	}
	list, areAll, err := f.TailCalls()
	for _, s := range list {
		pc, after, ok, err := s.PC()
		text += fmt.Sprintf(" %#x %#x %v %v", pc, after, ok, err)
	}
	return text, areAll, err
}

// TestObjectFilesDescribeWhatDSYMsDo compares what the object files say of each address of a program's code with what the
// dSYM says.
func TestObjectFilesDescribeWhatDSYMsDo(t *testing.T) {
	oracle.All(t)
	addresses, variables, calls := 0, 0, 0
	for _, p := range programs(t) {
		o, want := open(t, p.path, p.dsym)
		_, got := open(t, p.path, "")
		wrong := 0
		text := o.Section(".text")
		for a := text.Address - 4; a < text.Address+text.Size+16; a++ {
			x, y := describe(want, a), describe(got, a)
			addresses++
			variables += strings.Count(x, "fixed")
			calls += strings.Count(x, "call ")
			if x != y {
				if wrong++; wrong < 3 {
					t.Errorf("%s: %#x: (-dSYM +objects)\n%s", p.name, a, cmp.Diff(x, y))
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d addresses differ", p.name, wrong)
		}
	}
	t.Logf("%d addresses, %d variables, %d calls", addresses, variables, calls)
	if variables < addresses || calls < 100 {
		t.Error("too few")
	}
}

// TestObjectFilesHaveTheVariablesOfDSYMs compares the variables at each address of data, and by their names.
func TestObjectFilesHaveTheVariablesOfDSYMs(t *testing.T) {
	oracle.All(t)
	count := map[string]int{}
	for _, p := range programs(t) {
		o, want := open(t, p.path, p.dsym)
		_, got := open(t, p.path, "")
		for _, s := range o.MachO().Sections() {
			if s.IsCode() || s.Segment == "__LINKEDIT" {
				continue
			}
			for a := s.Address; a < s.Address+s.Size; a++ {
				x, isThere, err := want.Variable(a, "")
				y, isHere, failed := got.Variable(a, "")
				if isThere != isHere || err != nil || failed != nil || isThere && (x.Name() != y.Name() || x.Start != y.Start || x.Size != y.Size || x.File != y.File || x.Line != y.Line) {
					t.Errorf("%s: %s,%s %#x: %v %v %s %#x %d, expected %v %v %s %#x %d", p.name, s.Segment, s.Name, a, isHere, failed, name(y, isHere), y.Start, y.Size, isThere, err, name(x, isThere), x.Start, x.Size)
					break
				}
				if isThere {
					count[x.Name()]++
				}
			}
		}
		for _, name := range []string{"global", "empty", "counter", "table", "nodes", "tentative", "perThread", "scope::Base::number", "Box<int>::count", "target", "calls", "hidden", "text", "origin", "one"} {
			compareLists(t, p.name+": "+name, want.Globals, got.Globals, name)
		}
		for _, name := range []string{"Hidden", "Point", "Node", "Box<int>", "scope::Base", "Color", "int"} {
			compareLists(t, p.name+": type "+name, want.TypesNamed, got.TypesNamed, name)
		}
	}
	t.Log(count)
	for _, name := range []string{"global", "counter", "nodes", "tentative", "number", "count", "target", "calls"} {
		if count[name] == 0 {
			t.Errorf("no %s", name)
		}
	}
}

func name(v dwarf.Variable, ok bool) string {
	if !ok {
		return ""
	}
	return v.Name()
}

// compareLists compares the entries of a name. dsymutil writes one of equal types.
func compareLists(t *testing.T, what string, want, got func(string) ([]dwarf.Entry, error), name string) {
	t.Helper()
	texts := [2]map[string]bool{{}, {}}
	for i, find := range []func(string) ([]dwarf.Entry, error){want, got} {
		list, err := find(name)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, e := range list {
			fixed, ok := e.StaticAddress()
			line, _, _ := e.Number(dw.AttrDeclLine)
			texts[i][fmt.Sprintf("%s %v %#x line %d %s", e.QualifiedName(), ok, fixed, line, location(e, dw.AttrLocation, 0))] = true
		}
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("%s: (-dSYM +objects)\n%s", what, diff)
	}
}

// TestObjectFilesHaveTheLinesOfDSYMs compares the rows of all line tables, and the parts of functions.
func TestObjectFilesHaveTheLinesOfDSYMs(t *testing.T) {
	oracle.All(t)
	rows := 0
	for _, p := range programs(t) {
		var lists [2][]string
		for i, dsym := range []string{p.dsym, ""} {
			_, d := open(t, p.path, dsym)
			err := d.EachLine(func(r *symbol.LineRow) bool {
				lists[i] = append(lists[i], fmt.Sprintf("%#x %#x %s:%d:%d", r.Start, r.End, r.Frames[0].File, r.Frames[0].Line, r.Frames[0].Column))
				return true
			})
			if err != nil {
				t.Error(err)
			}
		}
		slices.Sort(lists[0])
		slices.Sort(lists[1])
		rows += len(lists[0])
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
			t.Errorf("%s: (-dSYM +objects)\n%.2000s", p.name, diff)
		}
	}
	t.Logf("%d rows", rows)
}
