// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/internal/profile"
	"github.com/unwindd/unwindd/engine/trace"
)

// Profile walks the stacks of all samples of a perf.data file, as it is or packed, and joins samples of
// accelerators to them. The path may be "" where there are samples of accelerators. A
// problem with one sample is the reason that its stack ends; the error means that there
// is no file, or that it is not a recording.
func (e *Engine) Profile(ctx context.Context, path string, o trace.ProfileOptions) (*trace.Profile, error) {
	p, err := e.profileMaker().Make(ctx, path, o)
	if err != nil {
		return nil, notRecording(path, err)
	}
	return p, nil
}

// ProfilePart walks the samples of one part of a perf.data file, and writes the input of
// ProfileOptions.Parts for the whole. It returns the errors of Profile, and of w.
func (e *Engine) ProfilePart(ctx context.Context, path string, part trace.ProfilePart, o trace.ProfileOptions, w io.Writer) error {
	return e.profileMaker().MakePart(ctx, path, part, o, w)
}

// RecordedFiles finds the files of code that the processes with samples of a recording had mapped. Its type is
// internal: it is for packages of unwindd, and promises nothing.
func (e *Engine) RecordedFiles(ctx context.Context, path string, o trace.ProfileOptions) (*profile.Files, error) {
	files, err := e.profileMaker().Files(ctx, path, o)
	if err != nil {
		return nil, notRecording(path, err)
	}
	return files, nil
}

// ProfileElsewhere is Profile of a recording of another machine, which has the files; names are the names there of
// files of the options, by their paths. The type of files is internal: it is for packages of unwindd, and promises
// nothing.
func (e *Engine) ProfileElsewhere(ctx context.Context, path string, o trace.ProfileOptions, files profile.Mapped, names map[string]string) (*trace.Profile, error) {
	k := e.profileMaker()
	k.Mapped, k.Names = files, names
	p, err := k.Make(ctx, path, o)
	if err != nil {
		return nil, notRecording(path, err)
	}
	return p, nil
}

func (e *Engine) profileMaker() *profile.Maker {
	return &profile.Maker{
		Shared: e.shared, Plugins: e.plugins, Finder: e.Finder, Sysroot: e.options.Sysroot, Unpacking: e.unpacking(), Disassembler: e.program,
		RuntimeNames: func(modules []*code.Module) []string { return managed.Names(e.runtimes(), modules, false) },
	}
}
