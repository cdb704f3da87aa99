// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/unwindd/unwindd/engine/object"
)

// Options name the servers and say how they are asked. The zero value asks no server.
type Options struct {
	// URLs are the servers, in the order in which they are asked.
	URLs []*url.URL
	// Cache is the directory in which files are kept.
	Cache string
	// Timeout bounds the time in which 100 KiB, or the rest of an answer, has to come; 0:
	// it is not bounded.
	Timeout time.Duration
	// MaxTime bounds the time of a whole file; 0: it is not bounded.
	MaxTime time.Duration
	// MaxSize is the size of the largest file, in bytes; 0 is DefaultMaxSize.
	MaxSize int64
	// MaxFiles bounds how many files servers are asked for as long as the Client lives; 0
	// is DefaultMaxFiles. Below 0 the Client has no bound: its caller bounds each task.
	MaxFiles int
	// Retries is how often a server that did not answer is asked again.
	Retries int
	// Headers are sent with every request to a server, but not where it redirects to
	// another host.
	Headers http.Header
	// Progress, where it is not nil, is called at the beginning of a transfer, after every
	// part and, with Done set, at the end.
	Progress func(Transfer)
	// Log, where it is not nil, gets a sentence for each request and for its outcome.
	// Several goroutines may call it at once.
	Log func(text string)
}

// The values of Options that elfutils' clients have by default, and the bound of files.
const (
	DefaultTimeout = 90 * time.Second
	DefaultRetries = 2
	DefaultMaxSize = 16 << 30 // bytes
)

// DefaultMaxFiles bounds the files that servers are asked for. Hostile cores and debug
// information may name any number of them.
const DefaultMaxFiles = 20_000

// Transfer is a file on its way.
type Transfer struct {
	object.RemoteFile
	Server      string // the host
	Bytes, Size int64  // received, and in all; Size is 0 where it is not known
	Done        bool   // nothing more will come
}

// Protocol describes servers of one kind.
type Protocol struct {
	// Name is the asking program's name in messages.
	Name string
	// Timeout and MaxTime name the settings behind the same fields of Options, for
	// messages; "": there are none.
	Timeout, MaxTime string
	// NoCache is the error of a Client without a cache: it tells where the cache would be.
	NoCache string
	// SizeHeader of an answer is the size of the file in bytes; MaxSizeHeader of a request
	// is the largest size that is wanted; "": there are none.
	SizeHeader, MaxSizeHeader string
	// IsDir and IsFile are passed to the Cache.
	IsDir, IsFile func(name string) bool
	// Place returns the place of a file in the cache. Its parts come from files, so it
	// refuses any that would be a path of its own.
	Place func(f object.RemoteFile) (Name, error)
	// URLs lists the places where a server may have a file, one at least.
	URLs func(server *url.URL, f object.RemoteFile) []*url.URL
	// Check checks a downloaded file. The error wraps a WrongError where it is another
	// file.
	Check func(path string, f object.RemoteFile) error
	// IsPacked reports whether a downloaded file has the file packed, which Unpack then writes: it
	// has at most so many bytes. nil: files come as they are.
	IsPacked func(path string, f object.RemoteFile) bool
	Unpack   func(w io.Writer, path string, f object.RemoteFile, most int64) error
	// MaxSize bounds the size of some files further, in bytes; 0: it does not.
	MaxSize func(f object.RemoteFile) int64
	// NeedsSize reports whether an answer has to tell its length, since Check would not
	// notice that a part is missing.
	NeedsSize func(f object.RemoteFile) bool
}

// Client asks servers for files. It may be used concurrently.
type Client struct {
	options  Options
	protocol Protocol
	cache    Cache
	http     *http.Client
	servers  []*server

	underway singleflight.Group // by the files' paths in the cache

	mu       sync.Mutex
	requests int
	missed   misses

	hits, misses atomic.Uint64 // of the cache
}

// server is one of the servers.
type server struct {
	url *url.URL

	mu      sync.Mutex
	silent  time.Time // it is not asked until then, since it did not answer
	because error     // the last error, where it is silent
}

// silence is how long a server that did not answer is not asked. A target has a hundred
// modules, and each would wait for it.
const silence = 10 * time.Minute

// New makes a Client. It does not connect to a server yet.
func New(p Protocol, o Options) *Client {
	if o.MaxSize <= 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	c := &Client{
		options: o, protocol: p, http: newHTTP(&o),
		cache: Cache{Dir: o.Cache, IsDir: p.IsDir, IsFile: p.IsFile},
	}
	seen := map[string]bool{}
	for _, u := range o.URLs {
		if key := u.String(); !seen[key] {
			seen[key] = true
			c.servers = append(c.servers, &server{url: u})
		}
	}
	return c
}

// Close closes the connections that are kept for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Fetch implements object.Remote. The path is the file's in the cache.
func (c *Client) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if len(c.servers) == 0 {
		return "", nil
	}
	name, err := c.protocol.Place(f)
	if err != nil {
		return "", []object.Attempt{{Path: c.label(c.servers[0], f), Reason: err.Error(), Kind: object.Unreadable}}
	}
	type outcome struct {
		path  string
		tried []object.Attempt
	}
	o, _, _ := c.underway.Do(name.Path(), func() (any, error) { // others that want the file wait for it
		path, tried := c.find(f, name)
		return outcome{path, tried}, nil
	})
	return o.(outcome).path, o.(outcome).tried
}

// find looks in the cache, and asks the servers for a file that is not there.
func (c *Client) find(f object.RemoteFile, name Name) (path string, tried []object.Attempt) {
	if err := c.prepare(); err != nil {
		return "", []object.Attempt{{Path: c.cache.Dir, Reason: "no cache for " + c.protocol.Name + ": " + err.Error(), Kind: object.Unreadable}}
	}
	path, state := c.cache.look(name)
	switch state {
	case cached:
		err := c.protocol.Check(path, f)
		if err == nil {
			c.hits.Add(1)
			c.cache.used(path)
			return path, nil
		}
		// Another client may have cached a wrong file; a server may have the right one.
		tried = append(tried, object.Attempt{Path: path, Reason: err.Error(), Kind: kindOf(err)})
	case missed:
		c.log("%s is remembered: no server had the file; it is asked for again when that is %v old", path, c.cache.missAge())
		return "", []object.Attempt{{Path: path, Reason: object.NotThereLately, Kind: object.Absent}}
	}
	if err := c.mayAsk(); err != nil {
		return "", append(tried, object.Attempt{Path: path, Reason: err.Error(), Kind: object.Unreadable})
	}
	c.misses.Add(1)
	found, more := c.ask(f, name)
	return found, append(tried, more...)
}

// Uses counts the files that were found in the cache, and the files that servers were asked
// for.
func (c *Client) Uses() (hits, misses uint64) { return c.hits.Load(), c.misses.Load() }

// prepare creates the cache's folder.
func (c *Client) prepare() error {
	if c.cache.Dir == "" {
		return errors.New(c.protocol.NoCache)
	}
	return c.cache.Prepare()
}

func (c *Client) mayAsk() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.MaxFiles > 0 && c.requests >= c.options.MaxFiles {
		return fmt.Errorf("not asked for: %d files were asked for already", c.options.MaxFiles)
	}
	c.requests++
	return nil
}

// ask asks one server after the other. If none of them has the file, the cache records
// that.
func (c *Client) ask(f object.RemoteFile, name Name) (path string, tried []object.Attempt) {
	ctx := context.Background()
	if c.options.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.options.MaxTime, fmt.Errorf("it was not there after %v%s", c.options.MaxTime, inBrackets(c.protocol.MaxTime)))
		defer cancel()
	}
	absent := 0
	for _, s := range c.servers {
		label := c.label(s, f)
		path, err := c.askServer(ctx, s, f, name)
		if err == nil {
			c.log("%s: taken, as %s", label, path)
			return path, tried
		}
		if errors.Is(err, errAbsent) {
			absent++
		}
		c.log("%s: %v", label, err)
		tried = append(tried, object.Attempt{Path: label, Reason: err.Error(), Kind: kindOf(err)})
	}
	if absent == len(c.servers) {
		c.cache.miss(name)
		c.missed.add(&c.cache, name)
	}
	return "", tried
}

// askServer asks one server, several times where no answer comes.
func (c *Client) askServer(ctx context.Context, s *server, f object.RemoteFile, name Name) (path string, err error) {
	if err := s.silenced(); err != nil {
		return "", err
	}
	for n := 0; ; n++ {
		if path, err = c.get(ctx, s, f, name); err == nil {
			return path, nil
		}
		var later *laterError
		if !errors.As(err, &later) || ctx.Err() != nil {
			return "", err
		}
		if n >= c.options.Retries {
			if later.isSilent {
				s.silence(err)
			}
			return "", err
		}
		time.Sleep(100 * time.Millisecond << min(n, 5))
	}
}

// get downloads a file into the cache.
func (c *Client) get(ctx context.Context, s *server, f object.RemoteFile, name Name) (path string, err error) {
	part, err := c.cache.create(name)
	if err != nil {
		return "", err
	}
	defer part.discard()
	modified, err := c.downloadAny(ctx, s, f, part.file)
	if err != nil {
		return "", err
	}
	if c.protocol.IsPacked != nil && c.protocol.IsPacked(part.open(), f) {
		whole, err := c.cache.create(name)
		if err != nil {
			return "", err
		}
		defer whole.discard()
		if err := c.protocol.Unpack(whole.file, part.open(), f, c.maxSize(f)); err != nil {
			return "", err
		}
		part = whole
	}
	if !modified.IsZero() {
		_ = os.Chtimes(part.open(), time.Time{}, modified) // the time of a source tells whether it is newer than the program
	}
	return part.keep(func(path string) error { return c.protocol.Check(path, f) })
}

// downloadAny tries the places where the server may have a file, and downloads from the
// first that has it.
func (c *Client) downloadAny(ctx context.Context, s *server, f object.RemoteFile, file *os.File) (modified time.Time, err error) {
	for _, u := range c.protocol.URLs(s.url, f) {
		if modified, err = c.download(ctx, u, f, file); !errors.Is(err, errAbsent) {
			break
		}
	}
	return modified, err
}

// inBrackets formats the name of the setting behind a bound, for a message.
func inBrackets(setting string) string {
	if setting == "" {
		return ""
	}
	return " (" + setting + ")"
}

// silence keeps a server from being asked for a while.
func (s *server) silence(because error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent, s.because = time.Now().Add(silence), because
}

func (s *server) silenced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.silent) {
		return fmt.Errorf("not asked again, since it did not answer: %w", s.because)
	}
	return nil
}

func (c *Client) log(format string, args ...any) {
	if c.options.Log != nil {
		c.options.Log(fmt.Sprintf(format, args...))
	}
}

// label names a file of a server in messages: its URL, without a password.
func (c *Client) label(s *server, f object.RemoteFile) string {
	return c.protocol.URLs(s.url, f)[0].Redacted()
}
