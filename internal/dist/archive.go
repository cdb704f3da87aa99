// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// tarGz packs files and their directories, in the order of their names: owned by root, and
// all with one modification time.
func tarGz(files []file, modified time.Time) ([]byte, error) {
	all := map[string]file{}
	for _, f := range files {
		all[f.path] = f
		for i := range len(f.path) {
			if f.path[i] == '/' { // path.Dir would take "./" away, and put directories behind their contents
				all[f.path[:i+1]] = file{f.path[:i+1], 0o755, nil}
			}
		}
	}
	var packed bytes.Buffer
	t := tar.NewWriter(&packed)
	for _, name := range sortedKeys(all) {
		f := all[name]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return compressed(packed.Bytes())
}

// zipped packs files for Windows, in the order of their names, all with one modification time.
func zipped(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.path, b.path) }) {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: modified}
		h.SetMode(fs.FileMode(f.mode)) //nolint:gosec // permissions
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return packed.Bytes(), err
}

// compressed packs bytes like `gzip -9n`: without a name and a time.
func compressed(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
