// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

// check returns an error if a fetched file is not the requested one: a code object must have the
// build ID, and all the bytes that its headers name. For a source file only the size is known,
// which the download checks.
func check(path string, f object.RemoteFile) error {
	if f.Kind == object.RemoteSource {
		info, err := os.Stat(path)
		if err == nil && info.Size() > maxSource {
			err = fmt.Errorf("it has %d bytes, expected at most %d of a source file", info.Size(), maxSource)
		}
		return err
	}
	o, err := object.Open(path)
	if err != nil {
		return fmt.Errorf("what came is no code object: %w", download.WithoutPath(err))
	}
	defer o.Close()
	if id := o.BuildID(); !bytes.Equal(id, f.BuildID) {
		return download.WrongError{Err: fmt.Errorf("build ID is %x, expected %x", id, f.BuildID)}
	}
	return isWhole(o)
}

// isWhole returns an error if a code object's file lacks a part. Program headers of a file of
// debug information are not checked: they describe the file that it was made from.
func isWhole(o *object.Object) error {
	if problems := o.Problems(); len(problems) > 0 {
		return fmt.Errorf("it is damaged: %s", problems[0])
	}
	size := uint64(len(o.Data()))
	for _, s := range o.Sections() {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL && (s.Offset > size || s.Size > size-s.Offset) {
			return fmt.Errorf("it is cut: section %s (%d): offset %#x: size %#x is not in the %d bytes of the file", s.Name, s.Index, s.Offset, s.Size, size)
		}
	}
	return nil
}
