// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/cabinet"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
)

// check returns an error if a fetched file is not the requested one.
func check(path string, f object.RemoteFile) error {
	switch f.Kind {
	case object.RemoteSymbols:
		return checkSymbols(path, f.ID)
	case object.RemoteCode:
		return checkCode(path, f.ID)
	case object.RemotePDB:
		return checkPDB(path, f.ID)
	}
	o, err := object.Open(path)
	if err != nil {
		return fmt.Errorf("what came is no code object: %w", download.WithoutPath(err))
	}
	defer o.Close()
	return sameID("build ID", fmt.Sprintf("%x", o.BuildID()), fmt.Sprintf("%x", f.BuildID))
}

func sameID(what, got, want string) error {
	if strings.EqualFold(got, want) {
		return nil
	}
	return download.WrongError{Err: fmt.Errorf("its %s is %.80q, expected %s", what, got, want)}
}

// checkSymbols checks the identifier in the MODULE record. Only the size that the server tells
// can show that a file is truncated.
func checkSymbols(path, id string) error {
	m, err := breakpad.Identify(path)
	if err != nil {
		return fmt.Errorf("what came is no symbol file: %s", strings.TrimPrefix(err.Error(), path+": "))
	}
	return sameID("identifier in MODULE", m.ID, id)
}

// checkPDB checks the GUID and the age of a PDB file.
func checkPDB(path, id string) error {
	o, err := object.Open(path)
	switch {
	case errors.Is(err, object.ErrNotELF):
		return errors.New("what came is no PDB file")
	case err != nil:
		return fmt.Errorf("what came cannot be read as a PDB file: %w", download.WithoutPath(err))
	}
	defer o.Close()
	if !o.IsPDB() {
		return errors.New("what came is code, expected a PDB file")
	}
	return sameID("GUID and age", o.SymbolName(), id)
}

// checkCode checks the identifier in the headers of a PE file, or the build ID of an ELF file.
func checkCode(path, id string) error {
	m, err := object.Map(path)
	if err != nil {
		return download.WithoutPath(err)
	}
	defer m.Close()
	return object.Guard(func() error {
		switch data := m.Data(); {
		case cabinet.Is(data):
			return errors.New("what came is a cabinet, expected the file itself under its name")
		case bytes.HasPrefix(data, []byte("\x7fELF")):
			o, err := object.New(path, data)
			if err != nil {
				return err
			}
			return sameID("build ID", fmt.Sprintf("%x", o.BuildID()), id)
		default:
			f, err := pe.New("what came", data)
			if err != nil {
				return err
			}
			// Also with an error it has the members of the headers.
			identity, _ := f.Identity()
			return sameID("time and size", identity.CodeID(), id)
		}
	})
}
