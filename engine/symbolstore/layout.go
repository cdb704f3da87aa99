// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// maxID bounds identifiers, in digits: a build ID has 128 at most.
const maxID = 128

// elfNote is how many bytes of a build ID a key has: shorter ones are filled with zeros
// (ELF-buildid).
const elfNote = 20

// debugFile is what the files with the debug information of ELF files are called, whatever
// their names (ELF-buildid-sym).
const debugFile = "_.debug"

// errOther says that stores do not have files of a kind.
var errOther = errors.New("stores of symbols have no such files")

// A key is where stores have a file.
type key struct{ file, id, leaf string }

func (k *key) parts() []string { return []string{k.file, k.id, k.leaf} }

// keysOf are the keys of a file, the usual one first: writers of stores differ in whether
// letters are small.
func keysOf(f object.RemoteFile) ([]key, error) {
	var k key
	switch f.Kind {
	case object.RemoteSymbols:
		k = key{f.Name, breakpadID(f.ID), object.SymbolFileName(f.Name)}
	case object.RemoteCode:
		k = key{f.Name, f.ID, f.Name}
	case object.RemoteExecutable:
		k = key{f.Name, elfID("elf-buildid-", f.BuildID), f.Name}
	case object.RemoteDebuginfo:
		k = key{debugFile, elfID("elf-buildid-sym-", f.BuildID), debugFile}
	default:
		return nil, errOther
	}
	if !object.IsPlainName(k.file) {
		return nil, fmt.Errorf("%.80q is no plain name of a file", k.file)
	}
	if isELF := f.Kind == object.RemoteExecutable || f.Kind == object.RemoteDebuginfo; isELF && len(f.BuildID) == 0 || !isELF && !isID(f.ID) {
		return nil, fmt.Errorf("%.80q is no identifier: expected 1 to %d hexadecimal digits", f.ID, maxID)
	}
	keys := []key{k}
	add := func(k key) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if f.Kind == object.RemoteSymbols || f.Kind == object.RemoteCode {
		add(key{k.file, strings.ToUpper(k.id), k.leaf})
	}
	add(key{strings.ToLower(k.file), strings.ToLower(k.id), strings.ToLower(k.leaf)})
	return keys, nil
}

// breakpadID is a debug identifier as Breakpad's tools write it: the GUID in large letters
// and the age in small ones.
func breakpadID(id string) string {
	const guid = 32
	if len(id) <= guid {
		return id
	}
	return strings.ToUpper(id[:guid]) + strings.ToLower(id[guid:])
}

func elfID(prefix string, buildID []byte) string {
	note := slices.Clone(buildID)
	for len(note) < elfNote {
		note = append(note, 0)
	}
	return prefix + hex.EncodeToString(note)
}

// isID says whether an identifier has digits only.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
}

// compressed is what a leaf is called whose file is in a cabinet: "_" takes the place of its
// last letter.
func compressed(leaf string) string { return leaf[:len(leaf)-1] + "_" }
