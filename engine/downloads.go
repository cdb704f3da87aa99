// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/http"
	"time"

	"github.com/unwindd/unwindd/engine/internal/debuginfod"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/object"
)

// Downloads names servers and stores that have files which are not on this machine. The zero
// value names none.
type Downloads struct {
	// Debuginfod are debuginfod servers, which have code, debug information and sources by
	// build ID.
	Debuginfod Servers
	// Stores are stores of symbol files and code, in the layouts of Breakpad and Microsoft:
	// servers, folders, and single symbol files.
	Stores Servers
	// MaxFiles bounds how many files are asked for until the end; 0 is 20 000. Below 0 the
	// caller bounds each task.
	MaxFiles int
	// Progress, where it is not nil, is called at the beginning of a transfer, after every
	// part and, with Done set, at the end.
	Progress func(Transfer)
	// Log, where it is not nil, gets a sentence for each request and for its outcome.
	// Several goroutines may call it at once.
	Log func(text string)
}

// Servers are servers of one kind, and the bounds of their answers.
type Servers struct {
	// URLs are the servers, in the order in which they are asked. Stores may be paths, too.
	URLs []string
	// Cache is the folder in which files are kept; "": no server is asked.
	Cache string
	// Timeout bounds the time in which 100 KiB, or the rest of an answer, has to come; 0:
	// it is not bounded.
	Timeout time.Duration
	// MaxTime bounds the time of a whole file; 0: it is not bounded.
	MaxTime time.Duration
	// MaxSize is the size of the largest file, in bytes; 0 is 16 GiB.
	MaxSize int64
	// Retries is how often a server that did not answer is asked again.
	Retries int
	// Headers are sent with every request to a server, but not where it redirects to
	// another host.
	Headers http.Header
}

// Transfer is a file on its way.
type Transfer struct {
	File        string // the source file, or the kind of file and its code object
	Server      string // the host
	Bytes, Size int64  // received, and in all; Size is 0 where it is not known
	Done        bool   // nothing more will come
}

// EnvironmentDownloads returns the settings of the environment, which getenv reads: the servers
// and settings of DEBUGINFOD_URLS and the other variables of debuginfod's clients
// (debuginfod-client-config(7)), and the cache of stores. It names no store. The error joins the
// errors of invalid servers, which are left out.
func EnvironmentDownloads(getenv func(string) string) (Downloads, error) {
	o, err := debuginfod.FromEnvironment(getenv)
	d := Downloads{
		Debuginfod: Servers{Cache: o.Cache, Timeout: o.Timeout, MaxTime: o.MaxTime, MaxSize: o.MaxSize, Retries: o.Retries, Headers: o.Headers},
		Stores:     Servers{Cache: symbolstore.CacheDir(getenv), Timeout: download.DefaultTimeout, Retries: download.DefaultRetries},
	}
	for _, u := range o.URLs {
		d.Debuginfod.URLs = append(d.Debuginfod.URLs, u.String())
	}
	return d, err
}

// ServerError is the error of a server or a store that cannot be asked.
type ServerError struct {
	IsStore bool // it is one of Downloads.Stores
	Err     error
}

func (e *ServerError) Error() string {
	if e.IsStore {
		return "Downloads.Stores: " + e.Err.Error()
	}
	return "Downloads.Debuginfod: " + e.Err.Error()
}

func (e *ServerError) Unwrap() error { return e.Err }

// Remotes fetch files from the servers and stores of Downloads. They may be used concurrently.
type Remotes struct {
	Debuginfod, Stores object.Remote // nil: none is asked

	closers []func()
}

// Close closes idle connections.
func (r *Remotes) Close() {
	for _, end := range r.closers {
		end()
	}
}

// Connect makes the clients of the servers, which an Engine does itself for its
// Options.Downloads. It does not connect yet. The error wraps a ServerError.
func (d *Downloads) Connect() (*Remotes, error) {
	r := &Remotes{}
	if len(d.Debuginfod.URLs) > 0 {
		o := d.options(&d.Debuginfod)
		for _, text := range d.Debuginfod.URLs {
			u, err := debuginfod.ParseURL(text)
			if err != nil {
				return nil, &ServerError{Err: err}
			}
			o.URLs = append(o.URLs, u)
		}
		c := debuginfod.New(o)
		r.Debuginfod, r.closers = c, append(r.closers, c.Close)
	}
	if len(d.Stores.URLs) > 0 {
		c, err := symbolstore.New(d.Stores.URLs, d.options(&d.Stores))
		if err != nil {
			r.Close()
			return nil, &ServerError{IsStore: true, Err: err}
		}
		r.Stores, r.closers = c, append(r.closers, c.Close)
	}
	return r, nil
}

// options returns the options of a client without its servers.
func (d *Downloads) options(s *Servers) download.Options {
	o := download.Options{
		Cache: s.Cache, Timeout: s.Timeout, MaxTime: s.MaxTime, MaxSize: s.MaxSize, MaxFiles: d.MaxFiles, Retries: s.Retries, Headers: s.Headers, Log: d.Log,
	}
	if d.Progress != nil {
		o.Progress = func(t download.Transfer) {
			d.Progress(Transfer{File: fileName(&t.RemoteFile), Server: t.Server, Bytes: t.Bytes, Size: t.Size, Done: t.Done})
		}
	}
	return o
}

// fileName describes a file for Transfer.
func fileName(f *object.RemoteFile) string {
	switch {
	case f.Source != "":
		return f.Source
	case len(f.BuildID) == 0:
		return fmt.Sprintf("%s of %s", f.Kind, f.Name)
	}
	return fmt.Sprintf("%s of %.8x", f.Kind, f.BuildID)
}
