package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file has the code objects that are no ELF files, which plugins read, and
// the files that belong to code objects.

// formats are the files that architectures recognise by their first bytes.
type formats struct{ plugins *plugin.Manager }

// Recognises says whether an architecture claims a file that begins so. That
// several do is an error of Nested.
func (f formats) Recognises(head []byte) bool {
	_, err := f.plugins.ForObject(0, 0, 0, head)
	var several *plugin.ErrAmbiguous
	return err == nil || errors.As(err, &several)
}

// Nested asks the plugin of the architecture.
func (f formats) Nested(name string, data []byte) ([]object.Range, error) {
	arch, err := f.plugins.ForObject(0, 0, 0, data[:min(len(data), object.MaxMagic)])
	if err != nil {
		return nil, err
	}
	// The plugin may read on while the caller is gone: a copy cannot fault.
	if len(data) > sdk.MaxFile {
		return nil, tooLarge(data)
	}
	answer, err := arch.OpenObject(context.Background(), wholeFile{data: bytes.Clone(data)}, &sdk.OpenObjectRequest{Object: 1, Path: name})
	if err != nil {
		return nil, err
	}
	list := make([]object.Range, len(answer.Nested))
	for i, n := range answer.Nested {
		list[i] = object.Range(n)
	}
	return list, nil
}

func tooLarge(data []byte) error {
	return fmt.Errorf("a file of %d bytes, expected at most %d", len(data), sdk.MaxFile)
}

// wholeFile is the engine of a call about one file outside a target.
type wholeFile struct{ data []byte }

func (wholeFile) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, fmt.Errorf("there is no target: %w", target.ErrNoMemory)
}

func (wholeFile) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("there is no target, and no thread")
}

func (w wholeFile) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	switch {
	case handle != 1:
		return nil, fmt.Errorf("no code object %d", handle)
	case name != "":
		return nil, fmt.Errorf("no section %s: %w", name, object.ErrNotELF)
	}
	return w.data, nil
}

// readSection reads a section of an object, or all of it.
func readSection(o *object.Object, name string) (data []byte, err error) {
	guarded := object.Guard(func() error {
		if name == "" {
			if data = o.Data(); len(data) > sdk.MaxFile {
				data, err = nil, fmt.Errorf("%s: %w", o.Name(), tooLarge(data))
			}
		} else if s := o.Section(name); s != nil {
			data, err = s.Data()
		} else {
			err = fmt.Errorf("%s: no section %s", o.Name(), name)
		}
		// The bytes leave the guard: a copy cannot fault later.
		data = bytes.Clone(data)
		return nil
	})
	if guarded != nil {
		return nil, guarded
	}
	return data, err
}

// A companion is a file that belongs to a module's code object.
type companion struct {
	suffix string
	object *object.Object
}

// A handle has a number of its target, of a companion, and of the module.
// companionBit is the lowest bit of the part that tells a module's companions
// apart, targetBit that of the target's.
const (
	companionBit = 32
	targetBit    = 36
)

// companionHandle is the handle of the companion of an index.
func (m *module) companionHandle(i int) uint64 { return uint64(i+1)<<companionBit | m.handle() }

// objectOf is the code object of a handle, or a companion; nil: there is none.
func (t *Target) objectOf(handle uint64) *object.Object {
	id, index := handle&(1<<companionBit-1), handle>>companionBit&(1<<(targetBit-companionBit)-1)
	m := t.moduleOf(id - 1)
	if handle>>targetBit != t.number || m == nil {
		return nil
	}
	if index == 0 {
		return m.Object
	}
	list := m.companions.Load()
	if list == nil || index > uint64(len(*list)) {
		return nil
	}
	return (*list)[index-1].object
}

// openCompanions opens the files beside the code object that its architecture
// asks for and recognises, once. What is there and not used is said.
func (m *module) openCompanions() (problems []string) {
	m.besideOnce.Do(func() {
		list := []companion{}
		defer func() { m.companions.Store(&list) }()
		arch, err := m.target.engine.plugins.Find(m.Arch)
		if err != nil || m.Object == nil {
			return
		}
		for _, suffix := range arch.Description().Companions {
			o, err := m.openBeside(suffix)
			if err == nil && !recognised(arch, o) {
				err = fmt.Errorf("%s: architecture %s does not recognise it", o.Name(), arch.Name())
				_ = o.Close()
			}
			switch {
			case err == nil:
				list = append(list, companion{suffix, o})
			case !errors.Is(err, fs.ErrNotExist):
				problems = append(problems, fmt.Sprintf("what is beside the code object was not used: %v", err))
			}
		}
	})
	return problems
}

// openBeside opens one file beside the code object.
func (m *module) openBeside(suffix string) (*object.Object, error) {
	finder := &m.target.finder
	if m.Companion != nil {
		name, data, err := m.Companion(suffix)
		if err != nil {
			return nil, err
		}
		return object.NewWith(name, data, finder.Formats)
	}
	path := m.Object.Path()
	name, ok := object.Beside(path, suffix)
	if path == "" || !ok || m.Object.Name() != path { // what is inside a file has nothing beside it
		return nil, fs.ErrNotExist
	}
	return finder.OpenBeside(name)
}

// recognised says whether an object is one of an architecture.
func recognised(arch *plugin.Arch, o *object.Object) (is bool) {
	err := object.Guard(func() error {
		var head []byte
		if !o.IsELF() {
			head = o.Data()
		}
		is = arch.Recognises(o.Machine(), o.OSABI(), o.Flags(), head)
		return nil
	})
	return is && err == nil
}
