// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/disassembler"
	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// Maker makes profiles with an engine's plugins and files.
type Maker struct {
	Shared  *walk.Shared
	Plugins *plugin.Manager
	// Finder returns where the files of a recording at a path are looked for.
	Finder func(path string) object.Finder
	// Mapped has the files of a recording of another machine; nil: it is of this one.
	Mapped Mapped
	// Names are the names there of files that came from there, by their paths here.
	Names map[string]string
	// Sysroot is where paths of a recording are looked up; "" is "/".
	Sysroot string
	// Unpacking bounds recordings that are unpacked, or come from a pipe.
	Unpacking unpack.Options
	// Disassembler gives the text of instructions of annotations; nil: architectures do.
	Disassembler *disassembler.Program
	// RuntimeNames returns the names of the language runtimes that modules have; nil: none is known.
	RuntimeNames func(modules []*code.Module) []string
}

// Make walks the stacks of all samples of a perf.data file, and joins samples of accelerators
// to them. The path may be "" where there are such. A problem with a single sample is the
// reason why its stack ends; the error is that there is no file, that it is no recording, or
// that a file became shorter meanwhile (object.ErrFileShrank).
func (k *Maker) Make(ctx context.Context, path string, o trace.ProfileOptions) (*trace.Profile, error) {
	gpu, err := openAllGPU(o.GPU)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAllGPU(gpu) }()
	stacks, in, err := k.openAllStacks(path, &o)
	if err != nil {
		return nil, err
	}
	if len(stacks) > len(o.Traces) {
		path = "" // it was one of them
	}
	var f *perfdata.File
	var packaging []string
	if path != "" || len(gpu) == 0 && len(stacks) == 0 {
		if f, packaging, err = k.openFrom(ctx, path, in, &o); err != nil {
			return nil, err
		}
		defer f.Close()
	} else if err := cmp.Or(openRoots(o.Roots), openPerfMaps(o.PerfMaps)); err != nil {
		return nil, err
	}
	kernel, err := openKernelNames(o.Kallsyms)
	if err != nil {
		return nil, err
	}
	r := k.newRecording(f)
	defer r.close()
	r.problems = append(r.problems, packaging...)
	r.generated.provided = o.PerfMaps
	if f != nil {
		r.sched = newSchedReader(f)
	}
	b := newProfileBuilder(r)
	b.hasKernelNames = kernel != nil
	b.progress = newProgress(o.Progress, f, gpu)
	prepared := b.prepareNames()
	defer prepared() // before the files it reads are closed
	if f != nil {
		if err := b.addAll(ctx, &o); err != nil {
			return nil, err
		}
		r.checkRoots(o.Roots)
	} else if len(stacks) > 0 {
		b.out.Path = stacks[0].Path
	} else {
		b.out.Path = gpu[0].Facts().Path
	}
	if err := b.addOthers(ctx, stacks, kernel, gpu, &o); err != nil {
		return nil, err
	}
	b.offCPU.end()
	prepared()
	if !k.Shared.Options().NoSymbols {
		b.name(ctx, o.Jobs, kernel)
		r.checkPerfMaps()
	}
	b.waits.name(b)
	if err := b.annotate(ctx, o.Annotate); err != nil {
		return nil, err
	}
	if err := object.Shrunk(); err != nil { // before its files are closed
		return nil, err
	}
	return b.profile(), nil
}

// addOthers adds the stacks of other profilers, and samples of accelerators, both of which may be in
// code objects that the user provides.
func (b *profileBuilder) addOthers(ctx context.Context, stacks []*stacktree.File, kernel *kallsyms.Table, gpu []gpusamples.File, o *trace.ProfileOptions) error {
	if len(gpu) == 0 && !slices.ContainsFunc(stacks, hasObjectIDs) {
		if len(o.Objects) > 0 {
			b.recording.problem("%s was not looked at: nothing was sampled on an accelerator", strings.Join(o.Objects, ", "))
		}
		return b.addStacks(ctx, stacks, kernel, nil)
	}
	provided, err := b.openProvided(o.Objects)
	if err != nil {
		return err
	}
	if err := b.addStacks(ctx, stacks, kernel, provided); err != nil {
		return err
	}
	if err := b.addGPU(ctx, gpu, provided, o); err != nil {
		return err
	}
	b.recording.addProblems(provided.unused())
	return nil
}

// addAll adds all samples of the recording: walked here, or with the stacks from its parts.
func (b *profileBuilder) addAll(ctx context.Context, o *trace.ProfileOptions) error {
	if len(o.Parts) > 0 {
		return b.join(ctx, o.Parts)
	}
	return b.recording.walkAll(ctx, o.Jobs, nil, b.add)
}
