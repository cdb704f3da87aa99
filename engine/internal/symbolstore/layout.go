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

// tieredParts returns the parts in a store of two tiers, which has a file index2.txt and a folder
// for the first two letters of names.
func (k *key) tieredParts() []string {
	letters := []rune(k.file)
	return append([]string{string(letters[:min(len(letters), 2)])}, k.parts()...)
}

// isMicrosofts reports whether files of a kind lie in Microsoft's stores, in one or two tiers and
// perhaps in cabinets.
func isMicrosofts(f *object.RemoteFile) bool {
	return f.Kind == object.RemoteCode || f.Kind == object.RemotePDB
}

// places returns the parts of the places of a file, the usual one first.
func places(f *object.RemoteFile, keys []key) (list [][]string) {
	for i := range keys {
		list = append(list, keys[i].parts())
	}
	if isMicrosofts(f) {
		list = append(list, cabinets(keys)[0], keys[0].tieredParts(), cabinets(keys)[1])
	}
	return list
}

// cabinets returns the parts of the places of a file's cabinet, in stores of one and two tiers.
func cabinets(keys []key) [2][]string {
	k := keys[0]
	k.leaf = compressed(k.leaf)
	return [2][]string{k.parts(), k.tieredParts()}
}

// keysOf returns the keys of a file, the usual one first: writers of stores differ in the case
// of letters.
func keysOf(f object.RemoteFile) ([]key, error) {
	var k key
	switch f.Kind {
	case object.RemoteSymbols:
		k = key{f.Name, breakpadID(f.ID), object.SymbolFileName(f.Name)}
	case object.RemotePDB:
		k = key{f.Name, breakpadID(f.ID), f.Name}
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
	if f.Kind == object.RemoteSymbols || isMicrosofts(&f) {
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
