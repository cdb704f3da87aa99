// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/unwindd/unwindd/engine/object"
)

// FileError is the error of a file that cannot be opened. Its text is llvm-symbolizer's,
// where that has a sentence for the reason.
type FileError struct {
	Name string // as the question has it
	Err  error
}

// Error returns the name of the file and the reason.
func (e *FileError) Error() string { return fmt.Sprintf("'%s': %s", e.Name, reason(e.Name, e.Err)) }

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// reason is the text of an error of opening a file, in llvm-symbolizer's words where it has
// some.
func reason(name string, err error) string {
	var number syscall.Errno
	var universal *object.UniversalError
	switch {
	case errors.As(err, &universal):
		return "a universal file: name one of its machines with --default-arch, or as FILE:MACHINE: " + strings.Join(universal.Machines, ", ")
	case errors.Is(err, ErrNoBuildID):
		return ErrNoBuildID.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	case errors.Is(err, object.ErrNotRegular) && isDirectory(name):
		return "Is a directory"
	case errors.Is(err, object.ErrNotELF), errors.Is(err, object.ErrEmpty):
		return "The file was not recognized as a valid object file"
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
