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

// maxID bounds identifiers, in digits: a build ID has at most 128.
const maxID = 128

// elfNote is the number of bytes of a build ID in a key: shorter build IDs are padded with zeros
// (ELF-buildid).
const elfNote = 20

// debugFile is the name in keys of all files with the debug information of ELF files
// (ELF-buildid-sym).
const debugFile = "_.debug"

// errOther means that stores do not have files of a kind.
var errOther = errors.New("stores of symbols have no such files")

// key is the place of a file in a store.
type key struct{ file, id, leaf string }

func (k *key) parts() []string { return []string{k.file, k.id, k.leaf} }

// keysOf returns the keys of a file, the usual one first: writers of stores differ in the case
// of letters.
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

// breakpadID returns a debug identifier in the style of Breakpad's tools: the GUID in upper case
// and the age in lower case.
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

// isID reports whether an identifier consists of hexadecimal digits.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
}

// compressed returns the name of a leaf whose file is in a cabinet: "_" replaces its last letter.
func compressed(leaf string) string { return leaf[:len(leaf)-1] + "_" }
