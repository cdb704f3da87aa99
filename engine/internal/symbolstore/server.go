// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/cabinet"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// CacheDir returns the directory of the cache: beneath XDG_CACHE_HOME, or .cache of HOME; "" if
// neither is set. getenv reads a variable.
func CacheDir(getenv func(string) string) string {
	base := host.CacheDir(getenv)
	if base == "" {
		return ""
	}
	return filepath.Join(base, "unwindd", "symbols")
}

// MaxSize bounds a file from a server, in bytes: the symbol files of browsers have one to two GB.
const MaxSize = 8 << 30

// server is a store that is reached by HTTP. Each has its own cache, which also records missing
// files: a file that one lacks is requested from the next.
type server struct{ *download.Client }

func newServer(u *url.URL, o download.Options) Store {
	o.URLs = []*url.URL{u}
	if o.Cache != "" {
		o.Cache = filepath.Join(o.Cache, serverName(u))
	}
	if o.MaxSize == 0 {
		o.MaxSize = MaxSize
	}
	return server{download.New(protocol, o)}
}

// Fetch requests a file from the server, unless its names could lead elsewhere.
func (s server) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if _, err := keysOf(f); err != nil {
		return "", refused(f.Name, err)
	}
	return s.Client.Fetch(f)
}

// serverName returns the directory of a server in the cache: its host, for readers, and a hash of
// its URL.
func serverName(u *url.URL) string {
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(u.Host))
	bare := *u
	bare.User = nil
	sum := sha256.Sum256([]byte(bare.String()))
	return fmt.Sprintf("%.100s-%x", host, sum[:8])
}

var protocol = download.Protocol{
	Name:    "symbol stores",
	NoCache: "it is in XDG_CACHE_HOME or HOME, of which neither is set",
	IsDir:   isCacheDir,
	IsFile:  func(string) bool { return true },
	Place:   place,
	URLs:    urls,
	Check:   check,
	// Files of Microsoft's stores may be in cabinets.
	IsPacked: isPacked,
	Unpack:   unpack,
	// A truncated symbol file has no other sign.
	NeedsSize: func(f object.RemoteFile) bool { return f.Kind == object.RemoteSymbols },
}

// place returns the place of a file in the cache, by its identifier and name.
func place(f object.RemoteFile) (download.Name, error) {
	keys, err := keysOf(f)
	if err != nil {
		return download.Name{}, err
	}
	return download.Name{Dir: keys[0].id, Names: []string{keys[0].leaf}}, nil
}

// isPacked reports whether what came for a file is a cabinet.
func isPacked(path string, f object.RemoteFile) (is bool) {
	m, err := object.Map(path)
	if err != nil {
		return false
	}
	defer m.Close()
	_ = object.Guard(func() error { is = cabinet.Is(m.Data()) && isMicrosofts(&f); return nil })
	return is
}

// unpack writes the file that is in a cabinet.
func unpack(w io.Writer, path string, f object.RemoteFile, most int64) error {
	m, err := object.Map(path)
	if err != nil {
		return download.WithoutPath(err)
	}
	defer m.Close()
	return object.Guard(func() error { return cabinet.Unpack(w, m.Data(), f.Name, most) })
}

// isCacheDir reports whether a name is that of an identifier's directory.
func isCacheDir(name string) bool {
	return isID(strings.TrimPrefix(strings.TrimPrefix(name, "elf-buildid-"), "sym-"))
}

// urls returns a server's URLs of a file: the server's URL with the parts of a place appended.
func urls(server *url.URL, f object.RemoteFile) []*url.URL {
	keys, err := keysOf(f)
	if err != nil {
		return nil
	}
	var list []*url.URL
	for _, parts := range places(&f, keys) {
		for i := range parts {
			parts[i] = url.PathEscape(parts[i])
		}
		list = append(list, server.JoinPath(parts...))
	}
	return list
}
