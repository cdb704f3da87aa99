// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"time"
	"unsafe"
)

var pageSize = uintptr(os.Getpagesize())

// A Mapping is a regular file, mapped read-only. To close nil, or to release its pages, does
// nothing: whoever reads a file that is mapped reads bytes in memory, too.
type Mapping struct {
	path     string
	resolved string // path without symbolic links; "" when it was not asked for or is not known
	data     []byte
	id       identity
	open     openFile
	// isElsewhere: path belongs to another machine, and no file here is beside it.
	isElsewhere bool

	mu         sync.Mutex
	closed     bool
	whenClosed []func()
}

// A fileID tells files apart whatever their paths.
type fileID struct{ device, inode uint64 }

// An identity tells files apart, and the contents of one file at different times: the kernel sets
// ctime whenever contents change, and no program can set it back.
type identity struct {
	fileID
	size         int64
	mtime, ctime int64 // nanoseconds since 1970
}

// Data returns the bytes of the file, as long as they were when it was mapped.
// They are read inside Guard.
func (m *Mapping) Data() []byte { return m.data }

// ModTime returns when the file had been written to last, at the time of Map.
func (m *Mapping) ModTime() time.Time { return time.Unix(0, m.id.mtime) }

// ReadFile reads a regular file of any size, as Map does.
func ReadFile(path string) (b []byte, err error) {
	m, err := Map(path)
	if errors.Is(err, ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer m.Close()
	err = Guard(func() error { b = bytes.Clone(m.Data()); return nil })
	return b, err
}

// Path returns the path that the file was opened by.
func (m *Mapping) Path() string { return m.path }

func (m *Mapping) start() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.data))) }

// Close unmaps the file. Bytes of it must not be used any more. A second Close
// does nothing.
func (m *Mapping) Close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	// Out of the list first: from here on a fault in it is a defect, and
	// another mapping may get the addresses.
	removeLive(m)
	err := m.unmap()
	for _, f := range m.whenClosed {
		f()
	}
	return err
}

// WhenClosed has a function called once the file is not mapped any more.
func (m *Mapping) WhenClosed(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whenClosed = append(m.whenClosed, f)
}
