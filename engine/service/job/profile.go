// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// ProfileFormats are the formats in which profiles are written.
var ProfileFormats = []string{"text", "pprof", "otlp", "folded", "speedscope", "firefox", "html", "json"}

// DefaultJoinWindow is the time of ten samples at perf's usual 1,000 in a second.
const DefaultJoinWindow = 10 * time.Millisecond

// Profile asks for the profile of a recording. NewProfile gives the defaults. Folded stacks are
// of the first event.
type Profile struct {
	*pb.ProfileOptions `json:"options"`

	// Part is the part of the recording that is walked, and written to be joined with the
	// others; nil: the whole profile is made.
	Part *trace.ProfilePart `json:",omitempty"`
	// Joined are the sizes of the results of parts. They follow the Size bytes of the
	// recording. None: the samples are walked here.
	Joined []int64 `json:",omitempty"`
	Size   int64   `json:",omitempty"`
}

// NewProfile returns a Profile with the defaults: all events, as text.
func NewProfile() Profile { return Profile{ProfileOptions: &pb.ProfileOptions{Format: "text"}} }

// ProfileRanges are the ranges of the options of a Profile.
var ProfileRanges = Ranges{"max-stack": {Least: 1, Most: unbounded}}

// Check refuses options that have no meaning, in the words of flags. Equal requests have equal
// options then.
func (p *Profile) Check() error {
	if err := checkFormat(p.Format, ProfileFormats); err != nil {
		return err
	}
	switch {
	case len(p.Annotate) > 0 && p.Format != "text" && p.Format != "json":
		return wrong("--annotate writes text or JSON: expected another --format than %s", p.Format)
	case p.BottomUp && p.Format != "text" && p.Format != "folded":
		return wrong("--bottom-up turns the stacks of text and folded stacks: expected another --format than %s", p.Format)
	case len(p.Annotate) > 0 && p.NoSymbols:
		return wrong("--annotate names functions, and writes them: expected no --symbols=false with it")
	}
	if p.MaxStack == engine.DefaultMaxFrames {
		p.MaxStack = 0
	}
	if err := report.CheckSelection(p.Selection()); err != nil {
		return wrong("%v", err)
	}
	return nil
}

// Selection is the part of the profile that is shown.
func (p *Profile) Selection() trace.ProfileSelection {
	return trace.ProfileSelection{
		Processes: p.Process, Threads: p.Thread, CPUs: p.Cpu, Time: p.Time,
		Focus: p.Focus, Ignore: p.Ignore, Hide: p.Hide, Callers: p.Callers,
	}
}

// Engine returns the options of an engine with changes that the profile needs.
func (p *Profile) Engine(o engine.Options) engine.Options {
	o.MaxFrames, o.NoSymbols = int(p.MaxStack), p.NoSymbols || p.Part != nil
	return o
}

// WriteReport writes a profile.
func (p *Profile) WriteReport(r *report.Profile, w io.Writer, o report.TextOptions) error {
	o.FullNames = p.FullNames
	if len(p.Annotate) > 0 {
		if p.Format == "json" {
			return r.WriteAnnotationsJSON(w)
		}
		return r.WriteAnnotations(w, o)
	}
	if p.MarkGuesses {
		r = r.MarkGuesses()
	}
	if p.BottomUp {
		r = r.BottomUp()
	}
	switch p.Format {
	case "pprof":
		return r.WritePprof(w)
	case "otlp":
		return r.WriteOTLP(w)
	case "speedscope":
		return r.WriteSpeedscope(w)
	case "firefox":
		return r.WriteFirefox(w)
	case "html":
		return r.WritePage(w)
	case "json":
		return r.WriteJSON(w)
	case "folded":
		events := r.Events()
		if len(events) == 0 {
			return nil
		}
		return r.WriteFolded(w, events[0])
	}
	return r.WriteText(w, o)
}

// parts returns the results of parts, which follow the recording in the file.
func (p *Profile) parts(file io.ReaderAt) (list []io.Reader) {
	offset := p.Size
	for _, size := range p.Joined {
		list = append(list, io.NewSectionReader(file, offset, size))
		offset += size
	}
	return list
}

func (p *Profile) run(ctx context.Context, r *Request) (o Outcome, err error) {
	e, err := r.Tools.Engine.With(p.Engine(r.Tools.Options))
	if err != nil {
		return o, err
	}
	defer e.Close()
	path := fmt.Sprintf("/proc/self/fd/%d", r.Input.Fd())
	if p.Part != nil {
		if err := e.ProfilePart(ctx, path, *p.Part, trace.ProfileOptions{Input: r.Input}, r.Report); err != nil {
			return o, renamed(err, path, r.Name)
		}
		return o, nil
	}
	whole, err := e.Profile(ctx, path, trace.ProfileOptions{
		Input: r.Input, JoinWindow: DefaultJoinWindow, Annotate: p.Annotate, Parts: p.parts(r.Input), Size: p.Size,
	})
	if err != nil {
		return o, renamed(err, path, r.Name)
	}
	rename(whole, path, r.Name)
	selected, err := report.NewSelectedProfile(whole, p.Selection(), p.Event...)
	if err != nil {
		return o, wrong("%v", renamed(err, path, r.Name))
	}
	selected.NoSymbols = p.NoSymbols
	return o, p.WriteReport(selected, r.Report, report.TextOptions{})
}
