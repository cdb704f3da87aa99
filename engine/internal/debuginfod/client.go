// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"net/url"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

// Options sets the servers and limits of requests. The zero value has no servers.
type Options = download.Options

// Transfer is a file in transfer.
type Transfer = download.Transfer

// The values of Options that elfutils' clients have by default.
const (
	DefaultTimeout = download.DefaultTimeout
	DefaultRetries = download.DefaultRetries
)

// maxSource bounds source files, in bytes.
const maxSource = 64 << 20

// Client requests files from servers. It may be used concurrently, and is an object.Remote:
// Fetch returns the path of the file in the cache.
type Client struct{ *download.Client }

// New makes a Client. It does not connect yet.
func New(o Options) *Client { return &Client{download.New(protocol, o)} }

// Fetch implements object.Remote. Servers have no PDB files.
func (c *Client) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if f.Kind == object.RemotePDB {
		return "", nil
	}
	return c.Client.Fetch(f)
}

var protocol = download.Protocol{
	Name:    "debuginfod",
	Timeout: "DEBUGINFOD_TIMEOUT", MaxTime: "DEBUGINFOD_MAXTIME",
	NoCache:    "it is in DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME or HOME, of which none is set",
	SizeHeader: "X-Debuginfod-Size", MaxSizeHeader: "X-Debuginfod-Maxsize", // debuginfod(8)
	IsDir: isIDName, IsFile: isCacheName,
	Place: cacheName,
	URLs:  func(server *url.URL, f object.RemoteFile) []*url.URL { return []*url.URL{fileURL(server, f)} },
	Check: check,
	MaxSize: func(f object.RemoteFile) int64 {
		if isSource(f) {
			return maxSource
		}
		return 0
	},
	NeedsSize: isSource,
}

// isSource reports whether a file is a source file, for which only the size is known.
func isSource(f object.RemoteFile) bool { return f.Kind == object.RemoteSource }

// isIDName reports whether a name is that of a build ID's directory.
func isIDName(name string) bool {
	return len(name) >= 2 && len(name) <= 2*maxID && len(name)%2 == 0 && strings.Trim(name, "0123456789abcdef") == ""
}

// isCacheName reports whether a name is that of a file, or a part of one, that some client put
// into the cache.
func isCacheName(name string) bool {
	for _, kind := range []string{"debuginfo", "executable"} {
		if name == kind || strings.HasPrefix(name, kind+".") && len(name) == len(kind)+download.TemporaryBytes {
			return true
		}
	}
	return strings.HasPrefix(name, "source#") || strings.HasPrefix(name, "source-") || strings.HasPrefix(name, "section-") || strings.HasPrefix(name, "hdr-")
}
