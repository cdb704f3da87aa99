// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// SymbolizeProfile asks for the names of the frames of a profile that have none. The input is the profile, and
// the report is the same one with functions, lines and inlined calls. The problems of the outcome tell which
// frames have no names, and why.
type SymbolizeProfile struct {
	*pb.SymbolizeProfileOptions `json:"options"`
}

// profileFormats are the formats of profiles that get names.
var profileFormats = map[string]symbolize.ProfileFormat{"otlp": symbolize.ProfileOTLP, "pprof": symbolize.ProfilePprof}

// Check refuses a format that is not known.
func (s *SymbolizeProfile) Check() error {
	if profileFormats[s.Format] == 0 {
		return wrong("format %.40q, expected otlp or pprof", s.Format)
	}
	return nil
}

func (s *SymbolizeProfile) run(ctx context.Context, r *Request) (o Outcome, err error) {
	named, err := r.Tools.Symbolizer.ProfileFile(ctx, r.Report, r.Input, r.Name, symbolize.ProfileOptions{
		Format: profileFormats[s.Format], Finder: r.Tools.Engine.Finder(""), MaxUnpacked: r.Tools.Options.MaxUnpacked,
	})
	o.Problems = named.Problems
	o.Named = Named{Had: named.HadNames, Found: named.Named, Without: named.Reasons}
	return o, err
}
