// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Mapped has the files of a recording of another machine.
type Mapped interface {
	// Find returns what that machine found for a mapping of a path, whose build ID the recording has or not.
	// It is false for a mapping of which that machine says nothing.
	Find(path string, buildID []byte) (found object.Found, ok bool)
	// Owner has the separate debug files of those files.
	Owner() object.Owner
}

// File is a file that processes of a recording had mapped.
type File struct {
	Path    string // in the recording
	BuildID []byte // in the recording; nil: it has none
	Module  *code.Module
	// IsChecked: there is evidence that the file was the mapped one.
	IsChecked bool
}

// Files are the files with code that the processes with samples of a recording had mapped, as they are found on
// this machine.
type Files struct {
	List []File

	recording *recording
	file      *perfdata.File
}

// Close closes the files.
func (f *Files) Close() error {
	f.recording.close()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// maxFiles bounds the files of a recording.
const maxFiles = 1 << 14

// Files finds the files of a recording, and those that files of samples of accelerators name. Of a file of another
// profiler there are none, nor where the path is "".
func (k *Maker) Files(ctx context.Context, path string, o trace.ProfileOptions) (*Files, error) {
	stacks, in, err := k.openAllStacks(path, &trace.ProfileOptions{})
	if err != nil {
		return nil, err
	}
	files := &Files{}
	if path != "" && len(stacks) == 0 {
		if files.file, _, err = k.openFrom(ctx, path, in, &o); err != nil {
			return nil, err
		}
	}
	files.recording = k.newRecording(files.file)
	if files.file != nil {
		err = files.find(ctx)
	}
	if err := cmp.Or(err, files.findGPU(o.GPU)); err != nil {
		return nil, errors.Join(err, files.Close())
	}
	files.sort()
	return files, nil
}

// findGPU finds the code that was loaded into accelerators.
func (f *Files) findGPU(paths []string) error {
	list, err := openAllGPU(paths)
	if err != nil {
		return err
	}
	r := f.recording
	seen := map[string]bool{}
	for _, one := range list {
		facts := one.Facts()
		finder := r.maker.Finder(facts.Path)
		for i := range facts.Modules {
			recorded := &facts.Modules[i]
			path := gpuPath(recorded)
			key := path + "\x00" + string(recorded.BuildID)
			if recorded.Path == "" || seen[key] || r.objects[objectKey{"", path, string(recorded.BuildID)}] != nil || len(f.List) >= maxFiles {
				continue
			}
			seen[key] = true
			found := r.findGPU(&finder, recorded)
			t := &target.Module{Module: trace.Module{Path: path, Arch: recorded.Arch, File: found.Path, Problem: found.Problem}, Object: found.Object}
			if found.Object != nil {
				r.opened = append(r.opened, found.Object)
			}
			f.List = append(f.List, File{path, recorded.BuildID, r.process.AddModule(t, nil), found.Checked})
		}
	}
	return closeAllGPU(list)
}

func (f *Files) find(ctx context.Context) error {
	r := f.recording
	seen := map[uint64]bool{}
	for in := f.file.Reader(); ; {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		for i := range b.Samples {
			if s := b.Samples[i].Space; s != nil && !seen[s.Code] {
				seen[s.Code] = true
				r.space(s)
			}
		}
		b.Release()
	}
	for key, m := range r.objects {
		if len(f.List) == maxFiles {
			break
		}
		f.List = append(f.List, File{key.path, []byte(key.buildID), m, !r.unchecked[m]})
	}
	return nil
}

// sort puts the files into an order that does not depend on chance.
func (f *Files) sort() {
	slices.SortFunc(f.List, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(string(a.BuildID), string(b.BuildID)), cmp.Compare(a.Module.File, b.Module.File))
	})
}

// findMapped finds the file of a mapping on the machine of the recording.
func (r *recording) findMapped(m *perfdata.Mapping) (found object.Found, ok bool) {
	if r.maker.Mapped == nil {
		return found, false
	}
	return r.maker.Mapped.Find(m.Path, m.BuildID)
}
