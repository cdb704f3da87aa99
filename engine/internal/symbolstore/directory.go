// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

// directory is a store on this machine.
type directory struct {
	path    string
	unpacks Store // files that are in cabinets, into the cache
}

func newDirectory(path string, o download.Options) directory {
	d := directory{path: path}
	if absolute, err := filepath.Abs(path); err == nil {
		d.unpacks = newServer(&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute)}, o)
	}
	return d
}

func (d directory) Close() {}

// Fetch looks for a file at the places of the layout, and in the directory itself. It does not
// follow symbolic links out of the directory; a file.ptr of Microsoft's stores may lead there.
func (d directory) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	keys, err := keysOf(f)
	if err != nil {
		return "", refused(d.path, err)
	}
	var names []string
	for _, parts := range places(&f, keys) {
		names = append(names, filepath.Join(parts...))
	}
	if f.Kind != object.RemoteDebuginfo {
		names = append(names, keys[0].leaf)
	}
	for _, name := range names {
		path, _, err := object.Locate(d.path, name)
		switch {
		case err == nil && isPacked(path, f): // some stores have cabinets under the names of what they pack
			path, more := d.unpack(f, name)
			if tried = append(tried, more...); path != "" {
				return path, tried
			}
			continue
		case err == nil:
			err = check(path, f)
		}
		if err == nil {
			return path, tried
		}
		if a := attempt(filepath.Join(d.path, name), err); a.Kind != object.Absent && !errors.Is(err, object.ErrNotRegular) {
			tried = append(tried, a)
		}
	}
	if isMicrosofts(&f) {
		for _, parts := range [][]string{keys[0].parts(), keys[0].tieredParts()} {
			path, more := d.pointed(f, filepath.Join(append(parts[:len(parts)-1], pointer)...))
			if tried = append(tried, more...); path != "" {
				return path, tried
			}
		}
	}
	if len(tried) == 0 {
		tried = []object.Attempt{{Path: filepath.Join(d.path, names[0]), Reason: "no such file", Kind: object.Absent}}
	}
	return "", tried
}

// unpack returns the file of a cabinet, unpacked in the cache.
func (d directory) unpack(f object.RemoteFile, name string) (path string, tried []object.Attempt) {
	if d.unpacks == nil {
		return "", []object.Attempt{{Path: filepath.Join(d.path, name), Reason: "it is a cabinet, and no cache is known to unpack it in", Kind: object.Unreadable}}
	}
	return d.unpacks.Fetch(f)
}

// pointer is the name of the file that a store has in the place of one that lies elsewhere: a path
// behind PATH:, or behind MSG: why there is none.
const (
	pointer     = "file.ptr"
	maxPointer  = 4096
	pointedPath = "PATH:"
	pointedWhy  = "MSG:"
)

// pointed returns the file that a file.ptr leads to.
func (d directory) pointed(f object.RemoteFile, name string) (path string, tried []object.Attempt) {
	place, size, err := object.Locate(d.path, name)
	if err != nil {
		return "", nil
	}
	fails := func(format string, args ...any) []object.Attempt {
		return []object.Attempt{{Path: filepath.Join(d.path, name), Reason: fmt.Sprintf(format, args...), Kind: object.Unreadable}}
	}
	if size > maxPointer {
		return "", fails("it has %d bytes, expected at most %d", size, maxPointer)
	}
	b, err := object.ReadFile(place)
	if err != nil {
		return "", fails("%v", download.WithoutPath(err))
	}
	text := strings.TrimSpace(string(b))
	if why, ok := strings.CutPrefix(text, pointedWhy); ok {
		return "", fails("the store does not have the file: %.200q", strings.TrimSpace(why))
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, pointedPath))
	if !filepath.IsAbs(text) {
		return "", fails("it leads to %.200q, which is no path of this machine", text)
	}
	if err := check(text, f); err != nil {
		a := attempt(text, err)
		a.Reason = "a file.ptr of the store leads to it: " + a.Reason
		return "", []object.Attempt{a}
	}
	return text, nil
}
