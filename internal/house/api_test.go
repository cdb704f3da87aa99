// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

// packages are the promised packages with their types, by path.
func packages(t *testing.T) map[string]*types.Package {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, p := range Promised {
		args = append(args, Module+p)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	found := map[string]*types.Package{}
	for _, p := range Promised {
		if found[p], err = imports.Import(Module + p); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A program that embeds an engine meets only types of promised packages: it can name each of
// them, and finds its fields in one place.
func TestPromisedNamesHavePromisedTypes(t *testing.T) {
	r := &reachable{seen: map[*types.TypeName]bool{}}
	for _, p := range packages(t) {
		scope := p.Scope()
		for _, name := range scope.Names() {
			o := scope.Lookup(name)
			if !o.Exported() {
				continue
			}
			if alias, ok := o.(*types.TypeName); ok && alias.IsAlias() {
				if n, ok := types.Unalias(o.Type()).(*types.Named); ok && strings.HasPrefix(n.Obj().Pkg().Path(), Module) && !strings.HasPrefix(n.Obj().Pkg().Path(), p.Path()+"/") {
					t.Errorf("%s.%s is an alias of %s: a type has one place", p.Path(), name, n)
				}
			}
			r.visit(o.Type(), strings.TrimPrefix(p.Path(), Module)+"."+name)
		}
	}
	slices.Sort(r.problems)
	for _, problem := range r.problems {
		t.Error(problem)
	}
}

// reachable are the named types of the project that exported names lead to.
type reachable struct {
	seen     map[*types.TypeName]bool
	problems []string
}

// visit looks at a type, to which the name from leads.
func (r *reachable) visit(t types.Type, from string) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		r.named(t, from)
	case *types.Map:
		r.visit(t.Key(), from)
		r.visit(t.Elem(), from)
	case interface{ Elem() types.Type }:
		r.visit(t.Elem(), from)
	case *types.Signature:
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				r.visit(v.Type(), from)
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if name := from + "." + f.Name(); f.Exported() && !slices.Contains(Inner, name) {
				r.visit(f.Type(), name)
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				r.visit(m.Type(), from+"."+m.Name())
			}
		}
	}
}

func (r *reachable) named(t *types.Named, from string) {
	for arg := range t.TypeArgs().Types() {
		r.visit(arg, from)
	}
	o := t.Obj()
	if o.Pkg() == nil || r.seen[o] {
		return
	}
	path, isOurs := strings.CutPrefix(o.Pkg().Path(), Module)
	if !isOurs {
		return
	}
	r.seen[o] = true
	if !slices.Contains(Promised, path) && path != "sdk/reloc" && path != "sdk/archpb" {
		r.problems = append(r.problems, fmt.Sprintf("%s leads to %s.%s, which nothing promises", from, path, o.Name()))
		return
	}
	name := path + "." + o.Name()
	r.visit(t.Underlying(), name)
	for m := range t.Methods() {
		if m.Exported() && !slices.Contains(Inner, name+"."+m.Name()) {
			r.visit(m.Type(), name+"."+m.Name())
		}
	}
}

// A plugin that embeds the base type of an interface has each method that the interface gets.
func TestBasesHaveEveryMethod(t *testing.T) {
	found := packages(t)
	lookup := func(name string) types.Type {
		path, name, _ := strings.Cut(name, ".")
		o := found[path].Scope().Lookup(name)
		if o == nil {
			t.Fatalf("package %s has no %s", path, name)
		}
		return o.Type()
	}
	for name, base := range Growing {
		interfaceType := lookup(name).Underlying().(*types.Interface)
		if base == "" {
			continue
		}
		has := types.NewMethodSet(lookup(base))
		for m := range interfaceType.Methods() {
			if m.Name() != "Describe" && has.Lookup(nil, m.Name()) == nil {
				t.Errorf("%s has a method %s, and %s has none: plugins that embed it no longer compile", name, m.Name(), base)
			}
		}
	}
}

// testdata/api.txt lists the promised names with their types. A name that is gone, or has
// another type, breaks programs of others: that takes a new major version, or, before the first
// one, a line in CHANGELOG.md. New names are written by -update.
func TestPromisedNamesStay(t *testing.T) {
	const file = "testdata/api.txt"
	var list []string
	for path, p := range packages(t) {
		list = append(list, exported(path, p)...)
	}
	slices.Sort(list)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSpace(string(known)), "\n")
	for _, line := range before {
		if _, is := slices.BinarySearch(list, line); !is {
			t.Errorf("no longer there: %s", line)
		}
	}
	for _, line := range list {
		if _, is := slices.BinarySearch(before, line); !is {
			t.Errorf("new: %s (go test ./internal/house -update writes it down)", line)
		}
	}
}

// exported lists the exported names of a package, each with its type.
func exported(path string, p *types.Package) (list []string) {
	short := func(other *types.Package) string {
		return cmp.Or(strings.TrimPrefix(other.Path(), Module), other.Path())
	}
	scope := p.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		t, isType := o.(*types.TypeName)
		if !isType {
			list = append(list, path+": "+types.ObjectString(o, short))
			continue
		}
		list = append(list, fmt.Sprintf("%s: type %s %s", path, name, kindOf(t.Type().Underlying(), short)))
		if s, ok := t.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f.Exported() {
					list = append(list, fmt.Sprintf("%s: %s.%s %s", path, name, f.Name(), types.TypeString(f.Type(), short)))
				}
			}
		}
		for m := range types.NewMethodSet(types.NewPointer(t.Type())).Methods() {
			if m.Obj().Exported() && len(m.Index()) == 1 {
				list = append(list, fmt.Sprintf("%s: %s.%s%s", path, name, m.Obj().Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func")))
			}
		}
	}
	return list
}

// kindOf is an underlying type; of a struct, whose fields have lines of their own, that alone.
func kindOf(t types.Type, short types.Qualifier) string {
	if _, ok := t.(*types.Struct); ok {
		return "struct"
	}
	return types.TypeString(t, short)
}
