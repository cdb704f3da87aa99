// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/devicecode"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// providedObjects are the user-provided code objects of accelerators: files, and the objects
// inside of them.
type providedObjects struct {
	recording *recording
	list      []providedObject
	kernels   *kernelObjects // made when a kernel is looked up
	modules   map[*object.Object]*gpuModule
}

// providedObject is a user-provided code object.
type providedObject struct {
	*object.Object
	file   string // the file that it is in
	isUsed bool
}

// openProvided opens files with code objects. A file without any is an error.
func (b *profileBuilder) openProvided(paths []string) (*providedObjects, error) {
	g := &providedObjects{recording: b.recording, modules: map[*object.Object]*gpuModule{}}
	for _, p := range paths {
		if err := g.open(p); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// open opens a file: a code object of an accelerator, or a container of such objects, as the core of
// a process is; or what a living process has, which is named by its number.
func (g *providedObjects) open(name string) error {
	if pid, ok := devicecode.PIDOf(name); ok {
		return g.openProcess(name, pid)
	}
	return g.openFile(name, cmp.Or(g.recording.maker.Names[name], name))
}

// openFile opens a file, which messages call by another name.
func (g *providedObjects) openFile(name, called string) error {
	r := g.recording
	m, err := object.Map(name)
	if err != nil {
		return err
	}
	r.mapped = append(r.mapped, m)
	store, formats := r.maker.Finder("").Store, r.maker.Finder("").Formats
	count, failed := len(g.list), error(nil)
	err = object.Guard(func() error {
		nested, isFile := object.NestedIn(name, m.Data(), formats)
		if !isFile {
			o, err := store.Image(name, m.Data(), formats)
			if err != nil {
				return err
			}
			r.opened = append(r.opened, o)
			if g.isDevice(o) {
				g.list = append(g.list, providedObject{Object: o, file: called})
				return nil
			}
			nested = o.Nested(formats)
		}
		for n, err := range nested {
			if err == nil && len(n.Data) > 0 && n.Image == "" {
				err = g.add(store, name, called, &n)
			}
			failed = errors.Join(failed, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case failed != nil && len(g.list) == count:
		return failed
	case len(g.list) == count:
		return fmt.Errorf("%s: there is no code of an accelerator in it, expected a code object or a file that has some inside", name)
	}
	return nil
}

// openProcess adds the code objects of a living process: of the files that it has mapped, and in its
// memory.
func (g *providedObjects) openProcess(name string, pid int) error {
	p, err := devicecode.Open(pid)
	if err != nil {
		return err
	}
	count, failed := len(g.list), error(nil)
	store := g.recording.maker.Finder("").Store
	for n, err := range object.NestedInMemory("process "+name, p.Ranges, p.Read) {
		if err == nil && n.Image == "" {
			err = g.add(store, "process "+name, "process "+name, &n)
		}
		failed = errors.Join(failed, err)
	}
	for _, file := range p.Files {
		if hasCode(file) {
			failed = errors.Join(failed, g.openFile(file, "process "+name))
		}
	}
	switch {
	case len(g.list) > count:
		return nil
	case failed != nil:
		return failed
	}
	return fmt.Errorf("process %s: there is no code of an accelerator in its files and its memory, as far as it could be read", name)
}

// hasCode reports whether a file has code objects of accelerators inside; most that a process has
// mapped have none.
func hasCode(file string) (has bool) {
	o, err := object.Open(file)
	if err != nil {
		return false
	}
	defer o.Close()
	for _, err := range o.Nested(nil) {
		return err == nil
	}
	return false
}

// add adds a code object inside a file. The host's own entries are skipped.
func (g *providedObjects) add(store *object.Store, file, called string, n *object.Nested) error {
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
		g.list = append(g.list, providedObject{Object: o, file: called})
	}
	return nil
}

// isDevice reports whether an object's architecture is not the host's, which the processes of
// recordings run on.
func (g *providedObjects) isDevice(o *object.Object) bool {
	_, err := g.arch(o)
	if err != nil {
		return false
	}
	for _, machine := range machines {
		if machine.Number == o.Machine() {
			return false
		}
	}
	return true
}

// arch returns the architecture of an object.
func (g *providedObjects) arch(o *object.Object) (*plugin.Arch, error) {
	return g.recording.maker.Plugins.ForObject(plugin.FileOf(o))
}

// module finds the object that a module was loaded from: by its build ID, by its name, or by
// its size; other returns why an object cannot be it. problem is why there is none.
func (g *providedObjects) module(wanted *gpusamples.Module, other func(*object.Object) string) (found *object.Object, problem string) {
	var fit []*providedObject
	for i := range g.list {
		o := &g.list[i]
		var reason string
		switch id := o.BuildID(); {
		case len(wanted.BuildID) > 0 && len(id) > 0:
			if slices.Equal(id, wanted.BuildID) {
				o.isUsed = true
				return o.Retain(), ""
			}
			reason = fmt.Sprintf("its build ID is %x", id)
		case wanted.Path != "" && wanted.URI == "" && path.Base(wanted.Path) != filepath.Base(o.file):
			reason = "it has another name"
		case wanted.Path == "" && wanted.Size > 0 && wanted.Size != uint64(len(o.Data())):
			reason = fmt.Sprintf("it has %d bytes, expected %d", len(o.Data()), wanted.Size)
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
func (g *providedObjects) kernel(name string) (place kernelCode, problem string) {
	if len(g.list) == 0 {
		return place, "no code objects were given"
	}
	if g.kernels == nil {
		var list []*object.Object
		for i := range g.list {
			list = append(list, g.list[i].Object)
		}
		g.kernels = newKernelObjects(list)
	}
	if place, problem = g.kernels.find(name); problem == "" {
		i := slices.IndexFunc(g.list, func(o providedObject) bool { return o.Object == place.object })
		g.list[i].isUsed = true
	}
	return place, problem
}

// providedModule returns the module of an object that a kernel was found in: its load address
// is not known.
func (b *profileBuilder) providedModule(g *providedObjects, o *object.Object) *gpuModule {
	if m := g.modules[o]; m != nil {
		return m
	}
	t := &target.Module{Module: trace.Module{Path: o.Name(), File: o.Path()}}
	if arch, err := g.arch(o); err == nil {
		t.Arch = arch.Name()
	}
	m := b.addProvidedModule(t, o.Retain())
	g.modules[o] = m
	return m
}

// withID returns the user-provided object that CUPTI knows by a number; nil: there is none. problem is
// why it is not certain which it is.
func (g *providedObjects) withID(id uint64) (found *providedObject, problem string) {
	for i := range g.list {
		o := &g.list[i]
		own, ok := o.CubinID()
		switch {
		case !ok || own != id:
		case found == nil:
			found = o
		case string(found.Data()) != string(o.Data()):
			return nil, fmt.Sprintf("%s and %s have its number: give only the one that was loaded", found.Name(), o.Name())
		default:
			o.isUsed = true // a copy
		}
	}
	if found == nil {
		return nil, "no cubin that was given has its number"
	}
	found.isUsed = true
	return found, ""
}

// found marks the file that a module was found in at its recorded path: it may also be a
// user-provided one.
func (g *providedObjects) found(path string) {
	for i := range g.list {
		o := &g.list[i]
		isElsewhere := g.recording.maker.Mapped != nil && strings.HasSuffix(path, "/"+o.file) // in a folder that is not known here
		if path == o.file || path == absolute(o.file) || isElsewhere {
			o.isUsed = true
		}
	}
}

// absolute returns a path in the form that the finder uses.
func absolute(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return whole
}

// unused returns a problem for each user-provided file of which nothing was used.
func (g *providedObjects) unused() (problems []string) {
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
