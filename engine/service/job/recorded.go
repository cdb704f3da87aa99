// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file profiles recordings that stay with the caller.

// ProfileFacts describe a profile beside its report.
type ProfileFacts struct {
	Samples  int
	Summary  []byte
	Sections []ProfileSection
}

// ProfileSection is the part of a report that is of an event.
type ProfileSection struct {
	Name string
	Size int
}

// callersRecording is a recording of the caller that is being profiled.
type callersRecording struct {
	*pb.RecordedOptions
	walk    *Walk
	request *Request
	head    *remote.Recording
	files   *remote.RecordedFiles
	names   map[string]string // of second files, by their paths here
}

// runRecorded writes the profile of a recording.
func (w *Walk) runRecorded(ctx context.Context, r *Request) (o Outcome, err error) {
	head, err := readHead(r.Input, remote.DecodeRecording)
	if err != nil {
		return o, err
	}
	tools := r.Tools
	profile := &Profile{ProfileOptions: w.Profile.Profile}
	e, err := tools.Engine.With(profile.Engine(tools.Options))
	if err != nil {
		return o, err
	}
	defer e.Close()
	k := &callersRecording{RecordedOptions: w.Profile, walk: w, request: r, head: head, names: map[string]string{}, files: tools.host.OpenRecording(head, tools.Ask, e.Finder(""))}
	defer k.files.Close()
	o, err = k.write(ctx, e, profile)
	// Unanswered questions leave gaps in the report.
	return o, errors.Join(tools.host.Err(), err)
}

// bring brings the second files of a role here.
func (k *callersRecording) bring(role remote.Role) (paths []string, err error) {
	for _, i := range k.head.Of(role) {
		path, err := k.files.Second(i)
		if err != nil {
			return nil, err
		}
		k.names[path] = k.head.Second[i].Name
		paths = append(paths, path)
	}
	return paths, nil
}

// options brings the second files here, and returns the options of the profile, and the path of the recording.
func (k *callersRecording) options(profile *Profile) (o trace.ProfileOptions, path string, err error) {
	o = trace.ProfileOptions{JoinWindow: time.Duration(min(k.JoinWindow, uint64(time.Hour))), Annotate: profile.Annotate} //nolint:gosec // bounded
	var recordings, kallsyms, maps []string
	for _, list := range []struct {
		role  remote.Role
		paths *[]string
	}{
		{remote.RecordingFile, &recordings}, {remote.GPUFile, &o.GPU}, {remote.ObjectsFile, &o.Objects}, {remote.TraceFile, &o.Traces},
		{remote.KallsymsFile, &kallsyms}, {remote.PerfMapFile, &maps},
	} {
		if *list.paths, err = k.bring(list.role); err != nil {
			return o, "", err
		}
	}
	if len(recordings) > 1 || len(kallsyms) > 1 {
		return o, "", wrong("%d recordings and %d files of names of the kernel, expected one", len(recordings), len(kallsyms))
	}
	o.Kallsyms, o.PerfMaps = strings.Join(kallsyms, ""), map[int]string{}
	for i, index := range k.head.Of(remote.PerfMapFile) {
		o.PerfMaps[k.head.Second[index].PID] = maps[i]
	}
	return o, strings.Join(recordings, ""), nil
}

func (k *callersRecording) write(ctx context.Context, e *engine.Engine, profile *Profile) (o Outcome, err error) {
	options, path, err := k.options(profile)
	if err != nil {
		return o, err
	}
	var pairs []string
	for path, name := range k.names {
		pairs = append(pairs, path, name)
	}
	names := strings.NewReplacer(pairs...)
	whole, err := e.ProfileElsewhere(ctx, path, options, k.files, k.names)
	if err != nil {
		return o, renamedError{err, names.Replace(err.Error())}
	}
	renameAll(whole, names)
	whole.Problems = append(whole.Problems, k.Problems...)
	o.Profile = &ProfileFacts{Samples: len(whole.Samples)}
	selected, err := report.NewSelectedProfile(whole, profile.Selection(), profile.Event...)
	if err != nil {
		return o, err
	}
	selected.NoSymbols = profile.NoSymbols
	var summary bytes.Buffer
	if err := selected.WriteSummary(&summary, report.SummaryOptions{Color: k.ColoredSummary, Verbose: k.walk.Verbose}); err != nil {
		return o, err
	}
	o.Profile.Summary = summary.Bytes()
	if k.EveryEvent && profile.Format == "folded" {
		return o, o.Profile.writeFolded(selected, k.request.Report)
	}
	return o, profile.WriteReport(selected, k.request.Report, report.TextOptions{Color: k.walk.Color, Verbose: k.walk.Verbose})
}

// writeFolded writes the folded stacks of every event.
func (f *ProfileFacts) writeFolded(r *report.Profile, w io.Writer) error {
	for _, event := range r.Events() {
		var out bytes.Buffer
		if err := r.WriteFolded(&out, event); err != nil {
			return err
		}
		f.Sections = append(f.Sections, ProfileSection{event, out.Len()})
		if _, err := out.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}

// renameAll gives the files of a profile the names that they have on the machine of the recording.
func renameAll(p *trace.Profile, names *strings.Replacer) {
	p.Path = names.Replace(p.Path)
	for i, text := range p.Problems {
		p.Problems[i] = names.Replace(text)
	}
	for i := range p.Modules {
		if m := &p.Modules[i]; m.Module != nil {
			m.Path, m.File, m.Problem = names.Replace(m.Path), names.Replace(m.File), names.Replace(m.Problem)
		}
	}
}
