// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// targetMemory is the part of a code object that only one target knows; it is zero for
// objects that targets share. It is set while the module is loaded, before any other use of
// the object, and does not change.
type targetMemory struct {
	module       *Module
	segments     []trace.Segment
	engine       sdk.Engine // the target, as plugins see it; nil: there is none
	read         func(address uint64, buf []byte) (int, error)
	jit          *JIT // code that a runtime made; nil: it is not
	companion    func(suffix string) (path string, data []byte, err error)
	sourceModule func() ([]byte, error)
}

// newTargetMemory returns the memory of a module that is one target's alone.
func newTargetMemory(m *target.Module, load *Loading) targetMemory {
	return targetMemory{
		segments: m.Segments, engine: load.Target, read: load.ReadMemory, jit: load.JIT,
		companion: m.Companion, sourceModule: m.SourceModule,
	}
}

var errNotInSegments = errors.New("the code is not in the module's segments")

// readCode reads code at an address of the object: JIT code, or the target's memory. It reads
// nothing where the target has no memory.
func (t *targetMemory) readCode(address uint64, buf []byte) (int, error) {
	switch {
	case t.jit != nil:
		return t.jit.Read(address, buf)
	case t.module == nil || t.read == nil:
		return 0, nil
	}
	start, ok := t.module.Start(address)
	if !ok {
		return 0, errNotInSegments
	}
	return t.read(start, buf)
}
