// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"

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
	if n := len(s.BuildId); n < 2 || n > 64 {
		return wrong("build ID \"%x\": expected 2 to 64 bytes in hexadecimal", s.BuildId)
	}
	return nil
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
