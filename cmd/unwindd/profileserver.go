// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/job"
)

// This file has a server make the profile. The recording, and files beside it, go there; of the files of its
// processes, those in which stacks lie.

// checkElsewhere refuses flags that need the profile on this machine.
func (f *profileFlags) checkElsewhere(c *service.Client) error {
	wrong := func(flag string) error {
		return usageError{fmt.Errorf("%s needs the profile on this machine, and the server at %s makes it: --server '' asks none", flag, c.Address())}
	}
	switch {
	case c == nil:
		return nil
	case f.http != "":
		return wrong("--http " + f.http)
	case f.otlp != "":
		return wrong("--otlp " + f.otlp)
	}
	for _, name := range f.objects {
		if _, isProcess := processID(name); isProcess && !isThere(name) {
			return wrong("--objects " + name + ", a process,")
		}
	}
	return refuseDisassembler(c, f.program)
}

// secondFiles are the files beside the recording that the flags name.
func (f *profileFlags) secondFiles() (list []service.SecondFile) {
	add := func(role service.SecondRole, paths ...string) {
		for _, path := range paths {
			list = append(list, service.SecondFile{Role: role, Path: path, Name: path})
		}
	}
	add(service.GPUFile, f.gpu...)
	add(service.ObjectsFile, f.objects...)
	add(service.TraceFile, f.traces...)
	if f.kallsyms != "" {
		add(service.KallsymsFile, f.kallsyms)
	}
	for _, pid := range slices.Sorted(maps.Keys(f.maps)) {
		add(service.PerfMapFile, f.maps[pid])
		list[len(list)-1].PID = pid
	}
	return list
}

// profileElsewhere has a server make the profile, and writes it when it is whole.
func (f *profileFlags) profileElsewhere(ctx context.Context, c *service.Client, e *engine.Engine, source *recording) error {
	r := &service.Recorded{
		Path: source.path, Name: source.path, Roots: f.roots, Second: f.secondFiles(),
		Options: &service.RecordedOptions{
			Profile: f.job.ProfileOptions, JoinWindow: uint64(max(f.window, 0)), ColoredSummary: f.colors(os.Stderr), Problems: source.problems, //nolint:gosec // not negative
			EveryEvent: f.format == "folded" && f.output != "" && !isStream(f.output),
		},
		Write: job.WriteOptions{Verbose: f.verbose, Color: f.writesColors()},
	}
	if source.file != nil {
		r.Name = source.subject
	}
	input, err := openInput(source.path)
	if err != nil {
		return err
	}
	if input != nil { // a pipe is read once
		copied, err := temporaryInput(source.path, func(file *os.File) error { return f.copyFrom(input, source.path, file) })
		if err := errors.Join(err, input.Close()); err != nil {
			return err
		}
		defer copied.Close()
		r.Path = copied.path
	}
	r.Options.Profile.Name = r.Name
	made, err := temporaryInput("profile", func(file *os.File) error {
		end, err := c.Profile(ctx, e, r, file)
		if err != nil {
			return f.noRecording(ofServer(err))
		}
		f.saySent(c, r.Name)
		if source.wasEnded && end.GetStacks() == 0 {
			return statusError{fmt.Errorf("%s: %w", source.subject, errNothingRecorded), exitSignal + int(syscall.SIGINT)}
		}
		f.sections = end.GetSections()
		return relayText(stderr, string(end.GetSummary()), f.colors(os.Stderr))
	})
	if err != nil {
		return err
	}
	defer made.Close()
	return f.copyReport(made.File)
}

// copyReport writes a report that a server made.
func (f *profileFlags) copyReport(file *os.File) error {
	if len(f.sections) > 1 {
		return f.writeSections(file)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return f.write(func(w *writer) error {
		if f.format == "text" {
			return report.Relay(w, file, w.isColored)
		}
		_, err := io.Copy(w, file)
		return err
	})
}

// writeSections writes a file for each of several events.
func (f *profileFlags) writeSections(file io.ReaderAt) error {
	var events []string
	offset := int64(0)
	parts := map[string]io.Reader{}
	for _, s := range f.sections {
		size := int64(s.GetSize()) //nolint:gosec // a reader of a size that is not there reads less
		events = append(events, s.GetName())
		parts[s.GetName()] = io.NewSectionReader(file, offset, size)
		offset += size
	}
	return f.writeEvents(events, func(w *writer, event string) error {
		_, err := io.Copy(w, parts[event])
		return err
	})
}

// writesColors reports whether the text of the output has colours.
func (g *globals) writesColors() bool {
	toStdout := g.output == "" || g.output == stdoutName
	return g.format == "text" && (toStdout && g.colors(os.Stdout) || g.color == "always")
}
