// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/unwindd/unwindd/engine/object"
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
	data, end, err := wholeInput(r.Input, r.Name)
	if err != nil {
		return o, err
	}
	defer end()
	named, err := r.Tools.Symbolizer.Profile(ctx, r.Report, data, symbolize.ProfileOptions{
		Format: profileFormats[s.Format], Finder: r.Tools.Engine.Finder(""), MaxUnpacked: r.Tools.Options.MaxUnpacked,
	})
	o.Problems = named.Problems
	o.Named = Named{Had: named.HadNames, Found: named.Named, Without: named.Reasons}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", r.Name, err)
	}
	return o, err
}

// wholeInput maps the input, or reads it where it is a pipe.
func wholeInput(f *os.File, name string) (data []byte, end func(), err error) {
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		m, err := object.MapFile(f, name)
		if err != nil {
			return nil, nil, err
		}
		return m.Data(), func() { _ = m.Close() }, nil
	}
	data, err = io.ReadAll(f)
	return data, func() {}, err
}
