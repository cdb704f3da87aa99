// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	gopackages "golang.org/x/tools/go/packages"

	"github.com/unwindd/unwindd/internal/house"
)

// names are the promised names that are gone or have another type.
func (c *check) names(r *release) ([]broken, error) {
	if r.tree == "" {
		return c.listed()
	}
	before, err := load(r.tree, c.packages)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	after, err := load(c.top, c.packages)
	if err != nil {
		return nil, err
	}
	var found []broken
	for _, path := range c.packages {
		if before[path] == nil {
			continue // it is new
		}
		if after[path] == nil {
			found = append(found, broken{path, path + ": the package is gone"})
			continue
		}
		for _, change := range apidiff.Changes(before[path], after[path]).Changes {
			if name := nameOf(path, change.Message); !change.Compatible && !isExcepted(name, change.Message, after) {
				found = append(found, broken{name, path + ": " + change.Message})
			}
		}
	}
	return found, nil
}

// nameOf is the name that a message of apidiff is about, as sdk.Description.Name.
func nameOf(path, message string) string {
	name, _, _ := strings.Cut(message, ": ")
	name = strings.NewReplacer("(*", "", "(", "", ")", "").Replace(name)
	return path + "." + strings.TrimPrefix(name, "./")
}

// isExcepted reports whether a change is one that house says is no promise: of a member for
// unwindd's own packages, or a new method of an interface that may grow. A plugin's has to be
// in its base type.
func isExcepted(name, message string, after map[string]*types.Package) bool {
	if slices.Contains(house.Inner, name) {
		return true
	}
	i := strings.LastIndexByte(name, '.')
	based, grows := house.Growing[name[:i]]
	if !grows || !strings.HasSuffix(message, ": added") {
		return false
	}
	return based == "" || hasMethod(after, based, name[i+1:])
}

// hasMethod reports whether a type, named as sdk.Base, has a method.
func hasMethod(packages map[string]*types.Package, name, method string) bool {
	i := strings.LastIndexByte(name, '.')
	p := packages[name[:i]]
	if p == nil {
		return false
	}
	t := p.Scope().Lookup(name[i+1:])
	if t == nil {
		return false
	}
	return types.NewMethodSet(types.NewPointer(t.Type())).Lookup(nil, method) != nil
}

// load reads packages of a tree from their sources, by their paths in the module. Those that
// are not there are left out.
func load(top string, paths []string) (map[string]*types.Package, error) {
	// A package that imports them all is not there: its dependencies are read without the
	// bodies of their functions, which takes a tenth of the time.
	top, err := filepath.Abs(top)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("package all\n")
	for _, p := range paths {
		if entries, err := filepath.Glob(filepath.Join(top, p, "*.go")); err == nil && len(entries) > 0 {
			fmt.Fprintf(&text, "import _ %q\n", house.Module+p)
		}
	}
	cfg := &gopackages.Config{
		Mode: gopackages.NeedName | gopackages.NeedTypes | gopackages.NeedTypesSizes | gopackages.NeedImports | gopackages.NeedDeps | gopackages.NeedSyntax | gopackages.NeedFiles | gopackages.NeedCompiledGoFiles,
		Dir:  top, Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"),
		Overlay: map[string][]byte{filepath.Join(top, "all", "all.go"): []byte(text.String())},
	}
	loaded, err := gopackages.Load(cfg, "./all")
	if err != nil {
		return nil, err
	}
	found := map[string]*types.Package{}
	for _, all := range loaded {
		for _, e := range all.Errors {
			return nil, e
		}
		for path, p := range all.Imports {
			for _, e := range p.Errors {
				return nil, e
			}
			found[strings.TrimPrefix(path, house.Module)] = p.Types
		}
	}
	return found, nil
}

// listed compares the list of names of the last release with that of this tree, line by line:
// a line that is gone is broken.
func (c *check) listed() ([]broken, error) {
	before, err := lines(c.released("api.txt"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errNoRelease)
	}
	after, err := lines(filepath.Join(c.top, "internal/house/testdata/api.txt"))
	if err != nil {
		return nil, err
	}
	var found []broken
	for _, line := range before {
		path, rest, _ := strings.Cut(line, ": ")
		if !slices.Contains(c.packages, path) || slices.Contains(after, line) {
			continue
		}
		name := listedName(path, rest)
		if slices.Contains(house.Inner, name) {
			continue
		}
		if _, grows := house.Growing[name]; grows && hasGrown(line, after) {
			continue
		}
		found = append(found, broken{name, "no longer there: " + line})
	}
	return found, nil
}

// listedName is the name that a line of the list is about.
func listedName(path, rest string) string {
	rest = strings.TrimPrefix(rest, "type ")
	for _, kind := range []string{"func ", "const ", "var "} {
		if cut, is := strings.CutPrefix(rest, kind); is {
			return strings.TrimRight(cut[:strings.IndexAny(cut+" ", "([ ")], ".") // path.Name already
		}
	}
	return path + "." + rest[:strings.IndexAny(rest+" ", "([ ")]
}

// hasGrown reports whether an interface has all the methods of the line before.
func hasGrown(line string, after []string) bool {
	head, methods, _ := strings.Cut(line, "interface{")
	i := slices.IndexFunc(after, func(l string) bool { return strings.HasPrefix(l, head+"interface{") })
	if i < 0 {
		return false
	}
	now := strings.Split(strings.TrimSuffix(strings.TrimPrefix(after[i], head+"interface{"), "}"), "; ")
	for _, m := range strings.Split(strings.TrimSuffix(methods, "}"), "; ") {
		if !slices.Contains(now, m) {
			return false
		}
	}
	return true
}

// lines are the lines of a file.
func lines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}
