// SPDX-License-Identifier: Apache-2.0

package code

import (
	"bytes"
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file answers the questions of a plugin during a call about a code object.

// A handle, by which plugins name an object, is the number of the object and, above it, the
// number of a companion; 0 for the object itself.
const companionShift = 48

func (o *Object) handle() uint64 { return o.number }

// Handle returns the handle by which plugins name the object.
func (o *Object) Handle() uint64 { return o.handle() }

// companionHandle returns the handle of the companion of an index.
func (o *Object) companionHandle(i int) uint64 { return uint64(i+1)<<companionShift | o.number }

// Section reads a section of the code object of a handle, relocated and
// decompressed, or for no name all of its file.
func (l *Library) Section(handle uint64, name string) ([]byte, error) {
	if o := l.numberedObject(handle & (1<<companionShift - 1)); o != nil {
		if f := o.file(handle >> companionShift); f != nil {
			return readSection(f, name)
		}
	}
	return nil, fmt.Errorf("no code object %d", handle)
}

// file returns the file of the object, or of one of its companions, by the number in handles.
func (o *Object) file(companion uint64) *object.Object {
	if companion == 0 {
		return o.File
	}
	list := o.beside.list.Load()
	if list == nil || companion > uint64(len(*list)) {
		return nil
	}
	return (*list)[companion-1].object
}

// objectEngine is the engine as a plugin sees it in a call about an object. An object that several
// targets share has no memory and no threads: an answer that depended on one target would be wrong
// for the next.
type objectEngine struct{ object *Object }

func (e objectEngine) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	if e.object.memory.engine == nil {
		return 0, fmt.Errorf("a code object is asked about without a target: %w", target.ErrNoMemory)
	}
	return e.object.memory.engine.ReadMemory(ctx, m, buf)
}

func (e objectEngine) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (sdk.Registers, error) {
	if e.object.memory.engine == nil {
		return sdk.Registers{}, fmt.Errorf("thread %d: a code object is asked about without a target", thread)
	}
	return e.object.memory.engine.ReadRegisters(ctx, thread, numbers)
}

func (e objectEngine) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	return e.object.library.Section(handle, name)
}

// readSection reads a section of an object, or all of it.
func readSection(o *object.Object, name string) (data []byte, err error) {
	guarded := object.Guard(func() error {
		if name == "" {
			if data = o.Data(); len(data) > sdk.MaxFile {
				data, err = nil, fmt.Errorf("%s: %w", o.Name(), tooLarge(data))
			}
		} else if s := o.SyntheticSection(name); s != nil {
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
