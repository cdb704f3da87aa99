// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

// Bounds of requests, as in elfutils' clients.
const (
	maxID   = 63   // bytes of a build ID
	maxPath = 4095 // bytes of a source file's path
)

// maxName bounds the names of files; the name of a partial file is download.TemporaryBytes
// longer.
const maxName = 255

// cacheName returns the place of a file in the cache. As its parts come from files, it refuses
// parts that would lead elsewhere.
func cacheName(f object.RemoteFile) (download.Name, error) {
	if len(f.BuildID) == 0 || len(f.BuildID) > maxID {
		return download.Name{}, fmt.Errorf("build ID has %d bytes, expected 1 to %d", len(f.BuildID), maxID)
	}
	n := download.Name{Dir: hex.EncodeToString(f.BuildID)}
	switch f.Kind {
	case object.RemoteDebuginfo, object.RemoteExecutable:
		n.Names = []string{string(f.Kind)}
		return n, nil
	case object.RemoteSource:
	default:
		return download.Name{}, fmt.Errorf("%q is nothing that servers have", f.Kind)
	}
	switch {
	case !strings.HasPrefix(f.Source, "/"):
		return download.Name{}, errors.New("the path of the source file is not absolute")
	case len(f.Source) > maxPath || strings.ContainsRune(f.Source, 0):
		return download.Name{}, fmt.Errorf("the path of the source file has %d bytes, expected at most %d without a NUL", len(f.Source), maxPath)
	}
	if name := "source" + escaped(f.Source); len(name) <= maxName-download.TemporaryBytes {
		n.Names = append(n.Names, name)
	}
	n.Names = append(n.Names, "source-"+hashed(f.Source))
	return n, nil
}

// escaped returns a path as a part of a file's name in the style of elfutils 0.179 to 0.191.
func escaped(path string) string {
	return strings.NewReplacer("/", "##", "#", "#_").Replace(path)
}

// keptOfPath is the number of bytes at the end of a path that hashed keeps: names have at most
// half the bytes that file systems allow.
const keptOfPath = maxName/2 - len("01234567-") - 1

// hashed returns a path as a part of a file's name in the style of elfutils 0.192 and later: a
// hash (djb2), and the end of the path with characters that are not plain replaced.
func hashed(path string) string {
	hash := uint32(5381)
	for i := range len(path) {
		hash = hash*33 + uint32(int8(path[i])) //nolint:gosec // char has a sign on most machines
	}
	b := []byte(path[max(0, len(path)-keptOfPath):])
	for i, c := range b {
		if !isPlain(c) {
			b[i] = '#'
		}
	}
	return fmt.Sprintf("%08x-%s", hash, b)
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}

// fileURL returns a server's URL of a file (debuginfod(8), WEBAPI): /buildid/ID/KIND, followed
// by the path of a source file, in which characters that are not plain are escaped.
func fileURL(server *url.URL, f object.RemoteFile) *url.URL {
	u := *server
	tail := fmt.Sprintf("/buildid/%x/%s", f.BuildID, f.Kind)
	raw := strings.TrimSuffix(u.EscapedPath(), "/") + tail
	u.Path = strings.TrimSuffix(u.Path, "/") + tail
	if f.Kind == object.RemoteSource {
		u.Path += f.Source
		raw += percent(f.Source)
	}
	u.RawPath = raw
	return &u
}

// percent escapes a path as curl does.
func percent(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; isPlain(c) || c == '/' || c == '~' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
