// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// A Symbolize asks what the code at addresses of a file is called, which has a build ID.
// The addresses are read, a line for each, decimal or with 0x; what is written of each is
// a line of llvm-symbolizer's JSON.
type Symbolize struct {
	BuildID   string // in hexadecimal
	NoInlines bool
	Mangled   bool // names as the linker has them
}

// Check says what has no meaning.
func (s *Symbolize) Check() error {
	if id, err := hex.DecodeString(s.BuildID); err != nil || len(id) < 2 || len(id) > 64 {
		return wrong("build ID %q: expected 2 to 64 bytes in hexadecimal", s.BuildID)
	}
	return nil
}

func (s *Symbolize) run(_ context.Context, tools *Tools, in *os.File, out io.Writer) (o Outcome, err error) {
	id, err := hex.DecodeString(s.BuildID)
	if err != nil {
		return o, wrong("build ID %q: %v", s.BuildID, err)
	}
	if _, err := tools.Symbolizer.OpenBuildID(id); err != nil {
		tools.forget()
		if errors.Is(err, symbolize.ErrNoBuildID) {
			err = fmt.Errorf("build ID %x: %w", id, ErrNoObject)
		}
		return o, err
	}
	session := symbolize.Session{
		Symbolizer: tools.Symbolizer, BuildID: id, Inlines: !s.NoInlines, Tool: "unwindd",
		Output: symbolize.WriterOptions{Style: symbolize.StyleJSON, Demangle: !s.Mangled},
		Refuse: func(string) error { return nil },
	}
	return o, session.Run(out, nil, in)
}

// ErrNoObject says that nobody has a file with a build ID.
var ErrNoObject = errors.New("no file that is known here has it")

// An Object is what was found out about a code object.
type Object struct {
	BuildID      string // in hexadecimal
	Machine      uint16 // of ELF
	HasDebugInfo bool
	IsDebugFile  bool // it has debug information alone, and no code
}

// An Identify asks which code object a file is.
type Identify struct{}

func (*Identify) run(tools *Tools, in *os.File, name string) (o Outcome, err error) {
	m, err := object.MapFile(in, name)
	if err != nil {
		return o, err
	}
	defer m.Close()
	err = object.Guard(func() error {
		file, err := object.NewWith(name, m.Data(), tools.Engine.Finder("").Formats)
		if err != nil {
			return err
		}
		defer file.Close()
		if len(file.BuildID()) == 0 {
			return fmt.Errorf("%s: it has no build ID", name)
		}
		o.Object = &Object{
			BuildID: hex.EncodeToString(file.BuildID()), Machine: file.Machine(), HasDebugInfo: file.HasDebugInfo(), IsDebugFile: file.DebugOnly(),
		}
		return nil
	})
	return o, err
}
