// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/elfcore"
	"github.com/unwindd/unwindd/engine/unpack"
)

// This file opens packed targets, and keeps the labels and problems of their packaging.

// input has the labels and problems of the packaging of a target.
type input struct {
	problems []string
	labels   []unpack.Label
}

func (e *Engine) unpacking() unpack.Options { return unpack.Options{MaxBytes: e.options.MaxUnpacked} }

// openInput opens the target in an input, if there is one.
func (e *Engine) openInput(name string, packed *unpack.Input, err error) (*Target, error) {
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%w: %s: %w: the file is empty", ErrUnknownTarget, name, elfcore.ErrNotCore)
	}
	if err != nil {
		return nil, err
	}
	o := openerOf(firstBytes(packed.Mapping))
	state, err := o.open(e, packed.Mapping)
	if err != nil && len(packed.Problems) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(packed.Problems, "; "))
	}
	switch {
	case errors.Is(err, o.not):
		return nil, fmt.Errorf("%w: %w", ErrUnknownTarget, err)
	case err != nil:
		return nil, err
	}
	t := e.Attach(state)
	t.input = input{packed.Problems, packed.Labels}
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
		if strings.HasPrefix(head, openers[i].magic) {
			return &openers[i]
		}
	}
	return &openers[len(openers)-1]
}

// firstBytes returns the bytes by which openers tell formats.
func firstBytes(m *object.Mapping) (head string) {
	// A file that is cut meanwhile counts as unreadable.
	_ = object.Guard(func() error { head = string(m.Data()[:min(len(m.Data()), 4)]); return nil })
	return head
}

// elfType is the e_type of an ELF file by its first bytes; ET_NONE for another file.
func elfType(head []byte) elf.Type {
	if len(head) < 18 || string(head[:4]) != elf.ELFMAG {
		return elf.ET_NONE
	}
	low, high := head[16], head[17]
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		low, high = high, low
	}
	return elf.Type(uint16(low) | uint16(high)<<8)
}

// IsExecutable reports whether a path names an ELF executable or shared object, by its
// first bytes.
func IsExecutable(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 18)
	n, _ := f.ReadAt(head, 0)
	t := elfType(head[:n])
	return t == elf.ET_EXEC || t == elf.ET_DYN
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
		head, err := unpack.Head(path)
		switch o := openerOf(string(head)); {
		case err != nil:
			others = append(others, err)
		case o.magic == "" && elfType(head) != elf.ET_CORE:
			others = append(others, fmt.Errorf("%s: %w", path, ErrUnknownTarget))
		case o.magic == "" && elfcore.HostCore(path) != "":
			others = append(others, fmt.Errorf("%s: it is read with %s", path, elfcore.HostCore(path)))
		default:
			paths = append(paths, path)
		}
	}
	return paths, others, nil
}

// Info has the facts of the target as a whole, with the labels of its packaging.
func (t *Target) Info() target.Info {
	info := t.Process.Info()
	if len(t.input.labels) > 0 {
		info.Facts = t.input.facts(info.Facts)
	}
	return info
}

// labelFacts has the facts in the labels of systemd-coredump (systemd-coredump(8)) and of
// apport. They are better than a core's, which has 15 characters of a name, 79 of a
// command line, and no time.
var labelFacts = map[string]func(f *target.Facts, value string){
	"coredump.exe":   func(f *target.Facts, value string) { f.Process.Executable = value },
	"ExecutablePath": func(f *target.Facts, value string) { f.Process.Executable = value },
	"ProcCmdline":    func(f *target.Facts, value string) { f.Process.Command = value },
	"coredump.timestamp": func(f *target.Facts, value string) {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 && f.Process.Kept.IsZero() {
			f.Process.Kept = time.UnixMicro(n)
			if n < 1e12 { // its first versions wrote seconds
				f.Process.Kept = time.Unix(n, 0)
			}
		}
	},
	"coredump.pid": func(f *target.Facts, value string) {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && f.Process.ID == 0 {
			f.Process.ID = n
		}
	},
	"Uname": func(f *target.Facts, value string) {
		if words := strings.Fields(value); len(words) > 1 && f.System.Version == "" {
			f.System.OS, f.System.Version = words[0], words[1]
		}
	},
	"DistroRelease": func(f *target.Facts, value string) {
		if id, release, ok := strings.Cut(value, " "); ok && f.Distribution == nil {
			f.Distribution = &target.Distribution{ID: id, Release: release, Description: value}
		}
	},
}

// facts returns the facts of a target, completed from its labels.
func (i *input) facts(own *target.Facts) *target.Facts {
	f := &target.Facts{}
	if own != nil {
		*f = *own
	}
	f.Annotations = f.Annotations[:len(f.Annotations):len(f.Annotations)]
	for _, l := range i.labels {
		if set := labelFacts[l.Name]; set != nil {
			set(f, l.Value)
		}
		f.Annotations = append(f.Annotations, target.Annotation{Name: l.Name, Value: l.Value})
	}
	return f
}
