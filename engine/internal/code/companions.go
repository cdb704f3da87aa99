// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
)

// A Companion is a file that belongs to a code object.
type Companion struct {
	suffix string
	object *object.Object
}

// Suffix returns the end of its name, behind the name of the code object.
func (c *Companion) Suffix() string { return c.suffix }

// Name returns the name of the file in messages.
func (c *Companion) Name() string { return c.object.Name() }

// Data returns the file's bytes. They are valid as long as the code object.
func (c *Companion) Data() []byte { return c.object.Data() }

// companionFiles are the files beside an object. once opens them; list is nil until then.
type companionFiles struct {
	once sync.Once
	list atomic.Pointer[[]Companion]
}

func (f *companionFiles) close() {
	if list := f.list.Load(); list != nil {
		for _, c := range *list {
			_ = c.object.Close()
		}
	}
}

// Companions opens the files that belong to the object, once. problems are why others are not
// used; only the first call returns them.
func (o *Object) Companions() (list []Companion, problems []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	problems = o.openCompanions()
	return *o.beside.list.Load(), problems
}

// openCompanions opens the files beside the code object that its architecture names and
// recognises, once. The caller holds mu.
func (o *Object) openCompanions() (problems []string) {
	o.beside.once.Do(func() {
		list := []Companion{}
		defer func() { o.beside.list.Store(&list) }()
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
	if o.memory.companion != nil {
		name, data, err := o.memory.companion(suffix)
		if err != nil {
			return nil, err
		}
		return object.NewWith(name, data, finder.Formats)
	}
	path := o.File.Path()
	name, ok := object.Beside(path, suffix)
	if path == "" || finder.Owner != nil || !ok || o.File.Name() != path { // a file inside another has none beside it; an owner has its own
		return nil, fs.ErrNotExist
	}
	return finder.OpenBeside(name)
}

// isRecognised reports whether an architecture recognises a file.
func isRecognised(arch *Machine, o *object.Object) (is bool) {
	err := object.Guard(func() error {
		is = arch.Plugin.Recognises(plugin.FileOf(o))
		return nil
	})
	return is && err == nil
}
