// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/internal/unpack"
)

// FileKind is a kind of file, told by its first bytes.
type FileKind struct {
	// What describes the kind, with an article: "a recording of perf"; "": it is not known.
	What string
	// Command is the command of unwindd whose argument such a file is: "stack"; "": there is none.
	Command string
	// IsProgram is true for executables and shared libraries, IsELF for ELF files.
	IsProgram, IsELF bool

	kind filekind.Kind
}

// Sentence describes a file of the kind and gives advice about it; "" for an unknown kind. command is
// the command that was to read it.
func (k *FileKind) Sentence(command, path string) string { return k.kind.Sentence(command, path) }

// newFileKind is the FileKind of a kind.
func newFileKind(kind filekind.Kind) FileKind {
	return FileKind{What: kind.What, Command: kind.Command, IsProgram: kind.IsProgram, IsELF: kind.IsELF, kind: kind}
}

// KindOf tells the kind of the regular file at a path, as it is, or unpacked where it is packed, or of
// a folder. It is the zero FileKind where the kind is not known, or the file cannot be read.
func KindOf(path string) FileKind {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return newFileKind(filekind.OfFolder(path))
	case err != nil || !info.Mode().IsRegular():
		return FileKind{}
	}
	head, err := unpack.HeadOf(path, filekind.HeadSize)
	if err != nil {
		return FileKind{}
	}
	return newFileKind(filekind.Of(head))
}

// wrongFile is the error for a file of another kind than a command reads. Its text
// describes the file and gives advice.
type wrongFile struct {
	text string
	errs []error // that it wraps
}

func (e *wrongFile) Error() string   { return e.text }
func (e *wrongFile) Unwrap() []error { return e.errs }

// unknownTarget is the error for a file that is no target: err is its reader's, and head its first
// bytes.
func unknownTarget(name, head string, err error) error {
	kind := filekind.Of([]byte(head))
	text := err.Error()
	switch {
	case head == "":
		text = name + ": the file is empty, expected a core, a minidump or a snapshot"
	case kind.Command == "stack": // it is one, and damaged: the reader says where
	case kind.Command == "profile" && isPacked(name):
		text = packedRecording(name)
	case kind.What != "":
		text = kind.Sentence("stack", name)
	case !strings.HasPrefix(head, elf.ELFMAG):
		text = fmt.Sprintf("%s: not a core, minidump or snapshot (%s)", name, filekind.Begins([]byte(head)))
	}
	return &wrongFile{text, []error{ErrUnknownTarget, err}}
}

// notRecording completes the error of a recording that cannot be opened: what else the file is.
func notRecording(path string, err error) error {
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() && errors.Is(err, fs.ErrNotExist) {
		return &wrongFile{path + ": a folder is a recording where it has a file named data, as perf record --kcore makes it", []error{err}}
	}
	if !errors.Is(err, perfdata.ErrNotPerfData) {
		return err
	}
	if kind := KindOf(path); kind.What != "" && kind.Command != "profile" {
		return &wrongFile{kind.Sentence("profile", path), []error{err}}
	}
	return err
}

// packedRecording is the sentence about a packed recording, which is no target.
func packedRecording(path string) string {
	return path + " is a recording of perf, packed: use `unwindd profile " + path + "`"
}

// isPacked reports whether a file is of a kind inside and of another one as it is.
func isPacked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 8)
	n, _ := f.ReadAt(head, 0)
	return filekind.Of(head[:n]).Command != "profile"
}
