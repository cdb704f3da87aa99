// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/internal/packaging"
	"github.com/unwindd/unwindd/engine/internal/target/elfcore"
	"github.com/unwindd/unwindd/engine/internal/target/machocore"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file opens packed targets, and keeps the labels and problems of their packaging.

// input has the labels and problems of the packaging of a target.
type input struct {
	problems []string
	labels   []unpack.Label
}

func (e *Engine) unpacking() unpack.Options {
	return unpack.Options{MaxBytes: e.options.MaxUnpacked, Create: e.options.Unpack}
}

// openInput opens the target in an input, if there is one.
func (e *Engine) openInput(name string, packed *unpack.Input, err error) (*Target, error) {
	if errors.Is(err, object.ErrEmpty) {
		return nil, unknownTarget(name, "", elfcore.ErrNotCore)
	}
	if err != nil {
		return nil, err
	}
	head := firstBytes(packed.Mapping)
	o := openerOf(head)
	state, err := o.open(e, packed.Mapping)
	if err != nil && len(packed.Problems) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(packed.Problems, "; "))
	}
	switch {
	case errors.Is(err, o.not):
		return nil, unknownTarget(name, head, err)
	case err != nil:
		return nil, err
	}
	state, problems := e.withDevices(state)
	t := e.Attach(state)
	t.input = input{slices.Concat(packed.Problems, problems), packed.Labels}
	return t, nil
}

// mapPacked maps a file that belongs to a target, as it is or unpacked.
func (e *Engine) mapPacked(path string) (m *object.Mapping, problems []string, err error) {
	in, err := unpack.Open(path, e.unpacking())
	if err != nil {
		return nil, nil, err
	}
	return in.Mapping, in.Problems, nil
}

// openerOf is the opener of a format, by the first bytes of the file.
func openerOf(head string) *opener {
	for i := range openers {
		o := &openers[i]
		if is := o.is; is != nil && is(head) || is == nil && strings.HasPrefix(head, o.magic) {
			return o
		}
	}
	return &openers[len(openers)-1]
}

// firstBytes returns the bytes by which openers tell formats.
func firstBytes(m *object.Mapping) (head string) {
	// A file that is cut meanwhile counts as unreadable.
	_ = object.Guard(func() error { head = string(m.Data()[:min(len(m.Data()), filekind.HeadSize)]); return nil })
	return head
}

// TargetsIn lists the paths of the files in a folder that are targets by their first
// bytes, packed ones too, by name. A core of other processors beside its process's core
// is not a target of its own. others are the errors of other files, and of files that
// cannot be read. It skips subfolders, and files whose names begin with a dot, which are
// incomplete.
func TargetsIn(dir string) (paths []string, others []error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range list {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if strings.HasPrefix(entry.Name(), ".") || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err := targetIn(path); err != nil {
			others = append(others, err)
		} else {
			paths = append(paths, path)
		}
	}
	return paths, others, nil
}

// targetIn returns nil for the path of a target in a folder, else why the file is none.
func targetIn(path string) error {
	head, err := unpack.HeadOf(path, filekind.HeadSize)
	switch o := openerOf(string(head)); {
	case err != nil:
		return err
	case o == &openers[len(openers)-1] && !elfcore.IsCore(head), errors.Is(o.not, machocore.ErrNotCore) && !machocore.IsCore(head):
		return fmt.Errorf("%s: %w", path, ErrUnknownTarget)
	case o == &openers[len(openers)-1]:
		if host := hostBeside(path); host != "" {
			return fmt.Errorf("%s: it is read with %s", path, host)
		}
	}
	return nil
}

// Info has the facts of the target as a whole, with the labels of its packaging.
func (t *Target) Info() trace.Target {
	info := t.process.Info()
	if len(t.input.labels) > 0 {
		info.Facts = packaging.Facts(info.Facts, t.input.labels)
	}
	return info
}
