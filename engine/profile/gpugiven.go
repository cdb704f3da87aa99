// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/gpusamples"
)

// givenObjects are the code objects of accelerators that were given: files, and
// what is inside of those.
type givenObjects struct {
	recording *recording
	list      []givenObject
	kernels   *kernelObjects // made when a kernel is asked for
	modules   map[*object.Object]*gpuModule
}

// givenObject is a code object that was given.
type givenObject struct {
	*object.Object
	file   string // it is in
	isUsed bool
}

// openGiven opens files with code objects. A file without any is an error.
func (b *profileBuilder) openGiven(paths []string) (*givenObjects, error) {
	g := &givenObjects{recording: b.recording, modules: map[*object.Object]*gpuModule{}}
	for _, p := range paths {
		if err := g.open(p); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// open opens a file: a code object of an accelerator, or what such are inside of.
func (g *givenObjects) open(name string) error {
	r := g.recording
	m, err := object.Map(name)
	if err != nil {
		return err
	}
	r.mapped = append(r.mapped, m)
	store, formats := r.maker.Finder("").Store, r.maker.Finder("").Formats
	before, failed := len(g.list), error(nil)
	err = object.Guard(func() error {
		nested, isFile := object.NestedIn(name, m.Data(), formats)
		if !isFile {
			o, err := store.Image(name, m.Data(), formats)
			if err != nil {
				return err
			}
			r.opened = append(r.opened, o)
			if g.isDevice(o) {
				g.list = append(g.list, givenObject{Object: o, file: name})
				return nil
			}
			nested = o.Nested(formats)
		}
		for n, err := range nested {
			if err == nil && len(n.Data) > 0 && n.Image == "" {
				err = g.add(store, name, &n)
			}
			failed = errors.Join(failed, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case failed != nil && len(g.list) == before:
		return failed
	case len(g.list) == before:
		return fmt.Errorf("%s: there is no code of an accelerator in it, expected a code object or a file that has some inside", name)
	}
	return nil
}

// add adds a code object inside a file. The host's own entries are passed over.
func (g *givenObjects) add(store *object.Store, file string, n *object.Nested) error {
	name := n.Name
	if n.Member != "" && n.Member != name {
		name = n.Member + ":" + name
	}
	o, err := store.Image(file+"#"+name, n.Data, nil)
	if err != nil {
		return fmt.Errorf("%s#%s: %w", file, name, err)
	}
	g.recording.opened = append(g.recording.opened, o)
	if g.isDevice(o) {
		g.list = append(g.list, givenObject{Object: o, file: file})
	}
	return nil
}

// isDevice says whether an object is of an architecture that is not the host's: one
// that the processes of recordings run on.
func (g *givenObjects) isDevice(o *object.Object) bool {
	_, err := g.arch(o)
	if err != nil {
		return false
	}
	for _, machine := range machines {
		if uint16(machine) == o.Machine() {
			return false
		}
	}
	return true
}

// arch is the architecture of an object.
func (g *givenObjects) arch(o *object.Object) (*plugin.Arch, error) {
	machine, head := o.Machine(), o.Data()
	if o.IsForeign() {
		machine = 0
	}
	return g.recording.maker.Plugins.ForObject(machine, o.OSABI(), o.Flags(), head[:min(len(head), object.MaxMagic)])
}

// module finds what a module was loaded from: by its build ID, by its name, or by its
// size; other says why an object cannot be it. problem says why there is none.
func (g *givenObjects) module(of *gpusamples.Module, other func(*object.Object) string) (found *object.Object, problem string) {
	var fit []*givenObject
	for i := range g.list {
		o := &g.list[i]
		var reason string
		switch id := o.BuildID(); {
		case len(of.BuildID) > 0 && len(id) > 0:
			if slices.Equal(id, of.BuildID) {
				o.isUsed = true
				return o.Retain(), ""
			}
			reason = fmt.Sprintf("its build ID is %x", id)
		case of.Path != "" && of.URI == "" && path.Base(of.Path) != filepath.Base(o.file):
			reason = "it has another name"
		case of.Path == "" && of.Size > 0 && of.Size != uint64(len(o.Data())):
			reason = fmt.Sprintf("it has %d bytes, expected %d", len(o.Data()), of.Size)
		default:
			reason = other(o.Object)
		}
		if reason != "" {
			problem = fmt.Sprintf("%s was not used: %s", o.Name(), reason)
			continue
		}
		fit = append(fit, o)
	}
	for _, o := range fit[min(1, len(fit)):] {
		if string(o.Data()) != string(fit[0].Data()) {
			return nil, fmt.Sprintf("%s and %s were not used: it may be either of them", fit[0].Name(), o.Name())
		}
	}
	if len(fit) == 0 {
		return nil, problem
	}
	fit[0].isUsed = true
	return fit[0].Retain(), ""
}

// kernel finds the code of a kernel by its name.
func (g *givenObjects) kernel(name string) (at kernelCode, problem string) {
	if len(g.list) == 0 {
		return at, "no code objects were given"
	}
	if g.kernels == nil {
		var list []*object.Object
		for i := range g.list {
			list = append(list, g.list[i].Object)
		}
		g.kernels = newKernelObjects(list)
	}
	if at, problem = g.kernels.find(name); problem == "" {
		i := slices.IndexFunc(g.list, func(o givenObject) bool { return o.Object == at.object })
		g.list[i].isUsed = true
	}
	return at, problem
}

// givenModule is the module of an object that a kernel was found in: nobody knows
// where it was loaded.
func (j *gpuJoin) givenModule(o *object.Object) *gpuModule {
	if m := j.given.modules[o]; m != nil {
		return m
	}
	t := &target.Module{Path: o.Name(), File: o.Path()}
	if arch, err := j.given.arch(o); err == nil {
		t.Arch = arch.Name()
	}
	m := j.addModule(t, o.Retain())
	j.given.modules[o] = m
	return m
}

// found notes the file that a module was found in where it was loaded: it may be one
// that was given, too.
func (g *givenObjects) found(path string) {
	for i := range g.list {
		if o := &g.list[i]; path == o.file || path == absolute(o.file) {
			o.isUsed = true
		}
	}
}

// absolute is a path as the finder has it.
func absolute(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return whole
}

// unused says of each file that was given whether nothing of it was used.
func (g *givenObjects) unused() (problems []string) {
	used := map[string]bool{}
	for i := range g.list {
		used[g.list[i].file] = used[g.list[i].file] || g.list[i].isUsed
	}
	for i := range g.list {
		if file := g.list[i].file; !used[file] {
			used[file] = true
			problems = append(problems, fmt.Sprintf("%s was not used: nothing that was sampled is in it", file))
		}
	}
	return problems
}
