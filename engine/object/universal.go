// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// UniversalError is the error of a universal file of macOS, from which one of the files in it has to be
// chosen, by the name of its machine.
type UniversalError struct {
	Path     string
	Machines []string // in the file's order
}

func (e *UniversalError) Error() string {
	return fmt.Sprintf("%s: %v, but a universal file: name one of its machines, %s, as %s#%s", e.Path, ErrNotELF, strings.Join(e.Machines, ", "), e.Path, e.Machines[0])
}

// Is reports whether the error is ErrNotELF, too.
func (e *UniversalError) Is(target error) bool { return target == ErrNotELF }

// isUniversal reports whether the bytes begin as a universal file.
func isUniversal(data []byte) (is bool) {
	_ = Guard(func() error { is = macho.IsUniversal(data); return nil })
	return is
}

// universalSlices returns the files of 64 bits in a universal file.
func universalSlices(name string, data []byte) (list []macho.Slice, err error) {
	err = Guard(func() error {
		all, err := macho.Slices(data)
		for _, s := range all {
			if macho.IsMachO(data[s.Offset : s.Offset+s.Size]) {
				list = append(list, s)
			}
		}
		if len(list) > 0 { // the others are cut
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(list) == 0:
		return nil, fmt.Errorf("%s: %w, but a universal file, or a class of Java, without a program of 64 bits", name, ErrNotELF)
	}
	return list, nil
}

// newUniversal makes an object of the only file in a universal file.
func newUniversal(name string, data []byte) (*Object, error) {
	list, err := universalSlices(name, data)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		e := &UniversalError{Path: name}
		for i := range list {
			e.Machines = append(e.Machines, list[i].Name())
		}
		return nil, e
	}
	return newMachO(name, data[list[0].Offset:list[0].Offset+list[0].Size])
}

// universal yields the files in a universal file.
func (w *bundleWalk) universal(data []byte) {
	list, err := universalSlices(w.name, data)
	if err != nil {
		w.stopped = !w.yield(Nested{}, err)
		return
	}
	for i := range list {
		s := &list[i]
		w.emit(Nested{Name: s.Name(), Format: "universal file", Offset: s.Offset, Data: data[s.Offset : s.Offset+s.Size]})
	}
}

// slices returns the places of the files in the universal file of an error; none where it is another error.
func (p *place) slices(err error) (list []place) {
	var universal *UniversalError
	if p.entry != "" || !errors.As(err, &universal) {
		return nil
	}
	for _, name := range universal.Machines {
		one := *p
		one.entry = name
		list = append(list, one)
	}
	return list
}

var errNoMachine = errors.New("there is none")

// OpenMachine is OpenNested, but of a universal file it opens the file for a machine, by its name: arm64.
// "" is none.
func OpenMachine(path, machine string, formats Formats) (*Object, error) {
	o, err := OpenNested(path, formats)
	var universal *UniversalError
	if machine == "" || !errors.As(err, &universal) {
		return o, err
	}
	o, err = OpenNested(universal.Path+"#"+machine, formats)
	if errors.Is(err, ErrNoNested) {
		return nil, fmt.Errorf("%s: a universal file for %s: %w for %s", path, strings.Join(universal.Machines, ", "), errNoMachine, machine)
	}
	return o, err
}

// CutMachine splits the path of a file in a universal file, FILE:MACHINE; machine is "" where the path is of a
// file itself, or ends in no name of a machine.
func CutMachine(path string) (file, machine string) {
	i := strings.LastIndexByte(path, ':')
	if i <= 0 || !macho.IsMachineName(path[i+1:]) {
		return path, ""
	}
	if _, err := identify(path); !errors.Is(err, fs.ErrNotExist) {
		return path, ""
	}
	return path[:i], path[i+1:]
}
