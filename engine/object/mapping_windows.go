// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

const openFlags, openDirFlags = os.O_RDONLY, os.O_RDONLY

// openFile is the file that a mapping has open: one that goes when it is closed has to stay until
// its pages are unmapped.
type openFile = windows.Handle

// identityOfFile returns the identity of an open file.
func identityOfFile(f *os.File) (id identity, err error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return id, err
	}
	id.fileID = fileID{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}
	id.size, id.mtime = int64(info.FileSizeHigh)<<32|int64(info.FileSizeLow), info.LastWriteTime.Nanoseconds()
	var times struct {
		created, accessed, written, changed windows.Filetime
		attributes, _                       uint32
	}
	err = windows.GetFileInformationByHandleEx(windows.Handle(f.Fd()), windows.FileBasicInfo, (*byte)(unsafe.Pointer(&times)), uint32(unsafe.Sizeof(times)))
	if id.ctime = times.changed.Nanoseconds(); err != nil { // not all file systems have it
		id.ctime = id.mtime
	}
	return id, nil
}

// Map maps a regular file. Anything else (a directory or device) gives ErrNotRegular without
// being opened for reading, an empty file ErrEmpty.
func Map(path string) (*Mapping, error) { return mapPath(path, false) }

// mapPath is Map. Where resolve is set the mapping knows its path without links.
func mapPath(path string, resolve bool) (*Mapping, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := MapFile(f, path)
	if err == nil && resolve {
		m.resolved, _ = filepath.EvalSymlinks(path)
	}
	return m, err
}

// identify gives the identity of the regular file at a path.
func identify(path string) (identity, error) {
	f, err := openRegular(path)
	if err != nil {
		return identity{}, err
	}
	defer f.Close()
	return identityOfFile(f)
}

// openRegular opens the regular file at a path. Opening a device may act on it, so the type is
// checked before.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: inWords(err)}
	}
	if err := checkRegular(path, info); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// missing is the error of a file that does not exist, in the words of other systems.
type missing struct{}

func (missing) Error() string        { return "no such file or directory" }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// inWords returns an error of a file without its path.
func inWords(err error) error {
	var inner *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing{}
	case errors.As(err, &inner):
		return inner.Err
	}
	return err
}

func checkRegular(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s: %w (a directory)", path, ErrNotRegular)
	default:
		return fmt.Errorf("%s: %w (a device)", path, ErrNotRegular)
	}
}

// MapFile maps the regular file that f is open on; path is its name in messages. The
// mapping outlives f.
func MapFile(f *os.File, path string) (*Mapping, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	if info.Size() > math.MaxInt {
		return nil, fmt.Errorf("%s: %d bytes cannot be mapped", path, info.Size())
	}
	m := &Mapping{path: path}
	if m.id, err = identityOfFile(f); err == nil {
		err = m.mapView(windows.Handle(f.Fd()), int(info.Size()))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	addLive(m)
	return m, nil
}

// mapView maps the first bytes of a file, and keeps it open.
func (m *Mapping) mapView(file windows.Handle, size int) error {
	section, err := windows.CreateFileMapping(file, nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(section) }() // a view keeps its section
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return err
	}
	// The address is no pointer into the heap: it does not change between these expressions.
	m.data = unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size)
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, file, self, &m.open, 0, false, windows.DUPLICATE_SAME_ACCESS); err != nil {
		_ = windows.UnmapViewOfFile(address)
		return err
	}
	return nil
}

// unmap unmaps the file, and closes it.
func (m *Mapping) unmap() error {
	err := windows.UnmapViewOfFile(m.start())
	_ = windows.CloseHandle(m.open)
	if err != nil {
		return &fs.PathError{Op: "unmap", Path: m.path, Err: err}
	}
	return nil
}

// removePages does nothing: the system removes pages that are not used.
func removePages([]byte) {}
