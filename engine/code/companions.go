// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/unwindd/unwindd/engine/object"
)

// A Companion is a file that belongs to a code object.
type Companion struct {
	suffix string
	object *object.Object
}

// Suffix is what stands behind the name that it shares with the code object.
func (c *Companion) Suffix() string { return c.suffix }

// Name is what the file is called in what is said of it.
func (c *Companion) Name() string { return c.object.Name() }

// Data is the file's bytes. They are valid as long as the code object.
func (c *Companion) Data() []byte { return c.object.Data() }

// Companions opens the files that belong to the object, once. problems say what
// is there and not used; they are told the first time.
func (o *Object) Companions() (list []Companion, problems []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	problems = o.openCompanions()
	return *o.companions.Load(), problems
}

// openCompanions opens the files beside the code object that its architecture
// asks for and recognises, once. What is there and not used is said.
func (o *Object) openCompanions() (problems []string) {
	o.besideOnce.Do(func() {
		list := []Companion{}
		defer func() { o.companions.Store(&list) }()
		arch := o.findMachine()
		if arch == nil || o.File == nil {
			return
		}
		for _, suffix := range arch.Description.Companions {
			f, err := o.openBeside(suffix)
			if err == nil && !isRecognised(arch, f) {
				err = fmt.Errorf("%s: architecture %s does not recognise it", f.Name(), arch.Plugin.Name())
				_ = f.Close()
			}
			switch {
			case err == nil:
				list = append(list, Companion{suffix, f})
			case !errors.Is(err, fs.ErrNotExist):
				problems = append(problems, fmt.Sprintf("what is beside the code object was not used: %v", err))
			}
		}
	})
	return problems
}

// openBeside opens one file beside the code object.
func (o *Object) openBeside(suffix string) (*object.Object, error) {
	finder := &o.finder
	if o.companion != nil {
		name, data, err := o.companion(suffix)
		if err != nil {
			return nil, err
		}
		return object.NewWith(name, data, finder.Formats)
	}
	path := o.File.Path()
	name, ok := object.Beside(path, suffix)
	if path == "" || finder.Owner != nil || !ok || o.File.Name() != path { // what is inside a file has nothing beside it; an owner gives what is beside one
		return nil, fs.ErrNotExist
	}
	return finder.OpenBeside(name)
}

// isRecognised says whether a file is one of an architecture.
func isRecognised(arch *Machine, o *object.Object) (is bool) {
	err := object.Guard(func() error {
		var head []byte
		if o.IsForeign() {
			head = o.Data()
		}
		is = arch.Plugin.Recognises(o.Machine(), o.OSABI(), o.Flags(), head)
		return nil
	})
	return is && err == nil
}
