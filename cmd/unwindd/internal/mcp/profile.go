// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
)

// usualTop and mostTop bound the functions of an event.
const usualTop, mostTop = 20, 100

// profileArguments are the arguments of the tool profile_top.
type profileArguments struct {
	Path  string `json:"path"`
	Event string `json:"event"`
	Lines int    `json:"lines"`
}

// profileAnswer is the answer of the tool profile_top.
type profileAnswer struct {
	Events   []report.EventTop `json:"events"`
	Problems []string          `json:"problems"`
}

// profiles keeps the last profile that was made.
type profiles struct {
	mu      sync.Mutex // while one is made
	path    string
	info    os.FileInfo
	profile *trace.Profile
}

// maxEvents bounds the events, and the problems, of an answer.
const maxEvents = 10

// profileTop answers with the functions in which most of a recording happened.
func profileTop(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a profileArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if err := bounded("lines", &a.Lines, usualTop, mostTop); err != nil {
		return nil, err
	}
	f, err := s.roots.open(a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := s.profile(ctx, f)
	if err != nil {
		return nil, err
	}
	var events []string
	if a.Event != "" {
		events = []string{a.Event}
	}
	r, err := report.NewProfile(p, events...)
	if err != nil {
		return nil, err
	}
	out := profileAnswer{Events: r.Top(a.Lines), Problems: p.Problems}
	out.Events = out.Events[:min(len(out.Events), maxEvents)]
	out.Problems = append([]string{}, out.Problems[:min(len(out.Problems), maxEvents)]...)
	for i := range out.Events {
		for k := range out.Events[i].Functions {
			fn := &out.Events[i].Functions[k]
			fn.Function = clip(fn.Function, maxText)
		}
	}
	for i := range out.Problems {
		out.Problems[i] = clip(out.Problems[i], maxText)
	}
	for len(out.Events) > 0 {
		if b, _ := json.Marshal(out); len(b) <= maxAnswer {
			break
		}
		out.Events = out.Events[:len(out.Events)-1]
	}
	return &answer{value: out}, nil
}

// profile makes the profile of a recording, or returns the last one if it is of this file.
func (s *Server) profile(ctx context.Context, f *file) (*trace.Profile, error) {
	s.profiles.mu.Lock()
	defer s.profiles.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	last := &s.profiles
	if last.profile != nil && last.path == f.path && isSame(last.info, f.info) {
		return last.profile, nil
	}
	j := job.NewProfile()
	view, err := s.targets.engine.With(j.Engine(s.targets.options))
	if err != nil {
		return nil, err
	}
	defer view.Close()
	// By its path, beside which programs are looked for.
	p, err := view.Profile(ctx, f.path, trace.ProfileOptions{JoinWindow: job.DefaultJoinWindow})
	if err != nil {
		return nil, fmt.Errorf("%w: give the path of a recording of perf", err)
	}
	if now, err := os.Lstat(f.path); err != nil || !isSame(now, f.info) {
		return nil, fmt.Errorf("%s has changed meanwhile: ask again", f.path)
	}
	last.path, last.info, last.profile = f.path, f.info, p
	return p, nil
}
