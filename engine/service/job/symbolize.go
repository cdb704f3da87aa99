// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// Symbolize asks for the names of the code at addresses of the file with a build ID. The
// input has a line for each address, decimal or with 0x; the report has a line of
// llvm-symbolizer's JSON for each. The options have no addresses.
type Symbolize struct {
	*pb.SymbolizeRequest `json:"options"`
}

// Check refuses a malformed build ID.
func (s *Symbolize) Check() error {
	return checkBuildID(s.BuildId)
}

func (s *Symbolize) run(r *Request) (o Outcome, err error) {
	if _, err := r.Tools.Symbolizer.OpenBuildID(s.BuildId); err != nil {
		r.Tools.forget()
		if errors.Is(err, symbolize.ErrNoBuildID) {
			err = fmt.Errorf("build ID %x: %w", s.BuildId, ErrNoObject)
		}
		return o, err
	}
	session := symbolize.Session{
		Symbolizer: r.Tools.Symbolizer, BuildID: s.BuildId, Inlines: !s.NoInlines, Tool: "unwindd",
		Output: symbolize.WriterOptions{Style: symbolize.StyleJSON, Demangle: !s.Mangled},
		Refuse: func(string) error { return nil },
	}
	return o, session.Run(r.Report, nil, r.Input)
}

// ErrNoObject is the error of a build ID without a file.
var ErrNoObject = errors.New("no file that is known here has it")

// An Object describes a code object.
type Object struct {
	BuildID      string // in hexadecimal
	Machine      uint16 // of ELF
	HasDebugInfo bool
	IsDebugFile  bool // it has debug information alone, and no code
}

// Identify asks which code object a file is.
type Identify struct{}

func (*Identify) run(r *Request) (o Outcome, err error) {
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
		}
		return nil
	})
	return o, err
}
