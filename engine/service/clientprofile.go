// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/profile"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file has a server make profiles of recordings.

// SecondFile is a file of a profile: its role, its path, and its name in messages.
type SecondFile struct {
	Role SecondRole
	PID  int // of a perf map
	Path string
	Name string
}

// SecondRole tells the files of a profile apart.
type SecondRole = remote.Role

// The roles: files of --gpu, of --objects, further traces, and files of --kallsyms and --perf-map.
const (
	GPUFile      = remote.GPUFile
	ObjectsFile  = remote.ObjectsFile
	TraceFile    = remote.TraceFile
	KallsymsFile = remote.KallsymsFile
	PerfMapFile  = remote.PerfMapFile
)

type (
	// RecordedOptions select the report of a recording.
	RecordedOptions = pb.RecordedOptions
	// ReportSection is a part of a report.
	ReportSection = pb.ReportSection
)

// Recorded is a recording whose profile a server makes.
type Recorded struct {
	// Path is the recording, a regular file, and Name its name; "": there are samples of accelerators alone.
	Path, Name string
	Roots      map[int]string // of processes, as of trace.ProfileOptions
	Second     []SecondFile
	Options    *RecordedOptions
	Write      job.WriteOptions // of text
}

// Profile has the server make the profile of a recording, and writes the report. The server gets the recording, its
// second files, and of the files of its processes those in which stacks lie. Engine e finds these. The report's end
// has the summary.
func (c *Client) Profile(ctx context.Context, e *engine.Engine, r *Recorded, w io.Writer) (*pb.ReportEnd, error) {
	options := trace.ProfileOptions{Roots: r.Roots}
	for _, s := range r.Second {
		if s.Role == GPUFile {
			options.GPU = append(options.GPU, s.Path)
		}
	}
	found, err := e.RecordedFiles(ctx, r.Path, options)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	files := &recordedFiles{list: found.List}
	second := r.Second
	if r.Path != "" {
		second = append([]SecondFile{{Role: remote.RecordingFile, Path: r.Path, Name: r.Name}}, second...)
	}
	var described []remote.SecondFile
	for _, s := range second {
		info, err := os.Stat(s.Path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: it is no regular file, and cannot be sent to a server", s.Name)
		}
		files.paths = append(files.paths, s.Path)
		described = append(described, remote.SecondFile{Role: s.Role, PID: s.PID, Name: s.Name, Size: uint64(info.Size())}) //nolint:gosec // not negative
	}
	recording, err := remote.RecordingOf(files.list, described)
	if err != nil {
		return nil, err
	}
	head, err := recording.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: its head: %w", r.Name, err)
	}
	o := &pb.WalkOptions{Profile: r.Options, Verbose: r.Write.Verbose, Color: r.Write.Color}
	return c.answering(ctx, o, head, files.responder, &notStacks{Writer: w, client: c})
}

// recordedFiles are the files that a server may ask for.
type recordedFiles struct {
	list  []profile.File
	paths []string
}

func (f *recordedFiles) responder() *remote.Responder {
	return remote.NewRecordingResponder(f.list, f.paths)
}
