// SPDX-License-Identifier: Apache-2.0

package job

import (
	"debug/elf"
	"encoding/hex"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// An Object describes a code object.
type Object struct {
	BuildID      string // in hexadecimal
	Machine      uint16 // of ELF
	HasDebugInfo bool
	IsDebugFile  bool // it has debug information alone, and no code

	Section     *Span `json:",omitempty"` // the place of Identify.Section; nil: it has no bytes of it
	NamesSource bool  `json:",omitempty"` // the line tables have Identify.Source
}

// Span is a part of a file, in bytes.
type Span struct{ Offset, Size uint64 }

// Identify asks which code object a file is.
type Identify struct {
	Section string `json:",omitempty"` // whose place in the file is wanted, too
	Source  string `json:",omitempty"` // a source file, by the path that debug information may have of it
}

func (i *Identify) run(r *Request) (o Outcome, err error) {
	m, err := object.MapFile(r.Input, r.Name)
	if err != nil {
		return o, err
	}
	defer m.Close()
	err = object.Guard(func() error {
		file, err := object.NewWith(r.Name, m.Data(), r.Tools.Engine.Finder("").Formats)
		if err != nil {
			return err
		}
		defer file.Close()
		if len(file.BuildID()) == 0 {
			return fmt.Errorf("%s: it has no build ID, by which files are kept here. Run `unwindd stack CORE FILE` where both files are; link the next build with --build-id", r.Name)
		}
		o.Object = &Object{
			BuildID: hex.EncodeToString(file.BuildID()), Machine: file.Machine(), HasDebugInfo: file.HasDebugInfo(), IsDebugFile: file.DebugOnly(),
			Section: spanOf(file, i.Section, uint64(len(m.Data()))),
		}
		if i.Source != "" {
			o.Object.NamesSource, err = symbolize.NamesSource(file, i.Source)
		}
		return err
	})
	return o, err
}

// spanOf returns the place of a section's bytes, as they are in the file; nil where it has none.
func spanOf(file *object.Object, name string, size uint64) *Span {
	if name == "" {
		return nil
	}
	s := file.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS || s.Offset > size || s.Size > size-s.Offset {
		return nil
	}
	return &Span{s.Offset, s.Size}
}
