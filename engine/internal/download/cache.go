// SPDX-License-Identifier: Apache-2.0

package download

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/unwindd/unwindd/internal/host"
)

// Cache is a directory of directories of files, as clients of elfutils' debuginfod share it,
// and three files of settings (debuginfod-client-config(7), CACHE). An empty file records
// that no server had it when it was made.
type Cache struct {
	Dir string
	// IsDir and IsFile report whether a name is one of the cache's directories and files:
	// others are not cleaned away.
	IsDir, IsFile func(name string) bool
}

// Name is the place of a file in the cache: a directory, and in it one name for each rule
// that clients have for it. Callers get the first.
type Name struct {
	Dir   string
	Names []string
}

// Path returns the path of the file, relative to the cache's directory.
func (n *Name) Path() string { return n.Dir + "/" + n.Names[0] }

// TemporaryBytes is the number of bytes by which the name of a part of a file is longer
// than the file's name.
const TemporaryBytes = len(".XXXXXX")

// setting is a number of seconds in a file, and the value that is written where the file is
// absent (debuginfod-client-config(7), CACHE).
type setting struct {
	file  string
	usual time.Duration
}

var (
	cleanInterval = setting{"cache_clean_interval_s", 24 * time.Hour}
	maxUnused     = setting{"max_unused_age_s", 7 * 24 * time.Hour}
	missAge       = setting{"cache_miss_s", 10 * time.Minute}
)

// maxSetting bounds the bytes that are read of such a file.
const maxSetting = 64

// Prepare makes the directory, and removes from it files that were not used for long.
func (c *Cache) Prepare() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	interval := c.setting(cleanInterval)
	path := filepath.Join(c.Dir, cleanInterval.file)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if now := time.Now(); now.Sub(info.ModTime()) >= interval {
		_ = os.Chtimes(path, now, now) // before, so that no other one cleans at the same time
		c.clean(now.Add(-c.setting(maxUnused)))
	}
	return nil
}

// setting reads a setting, and writes its file where there is none.
func (c *Cache) setting(s setting) time.Duration {
	f, err := os.OpenFile(filepath.Join(c.Dir, s.file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // as other clients make it
	if err == nil {
		_, _ = fmt.Fprintf(f, "%d", int64(s.usual/time.Second))
		_ = f.Close()
	}
	return c.read(s)
}

// read reads a setting. The usual value stands in for a text that is no number of seconds.
func (c *Cache) read(s setting) time.Duration {
	f, err := os.OpenFile(filepath.Join(c.Dir, s.file), os.O_RDONLY|host.WithoutWaiting, 0)
	if err != nil {
		return s.usual
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSetting))
	if err != nil {
		return s.usual
	}
	return ParseSeconds(string(b), s.usual)
}

// ParseSeconds reads the number at the start of a text, as scanf does: what follows it
// does not matter.
func ParseSeconds(text string, usual time.Duration) time.Duration {
	text = strings.TrimLeft(text, " \t\r\n\v\f")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[end] == '-' || text[end] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return usual
	}
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

func (c *Cache) missAge() time.Duration { return c.read(missAge) }

// state is the cache's knowledge of a file.
type state int

const (
	unknown state = iota
	cached        // the file
	missed        // the record that no server has it
)

// look looks for a file under each of its names. It does not open it: records of missing
// files had no rights once. A record that is too old is removed.
func (c *Cache) look(name Name) (path string, s state) {
	path = filepath.Join(c.Dir, name.Path())
	for _, n := range name.Names {
		other := filepath.Join(c.Dir, name.Dir, n)
		info, err := os.Stat(other)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case info.Size() > 0:
			return other, cached
		case time.Since(info.ModTime()) <= c.setting(missAge):
			path, s = other, missed
		default:
			_ = os.Remove(other)
		}
	}
	return path, s
}

// used records that a file was used, where the file system does not.
func (c *Cache) used(path string) { _ = os.Chtimes(path, time.Now(), time.Time{}) }

// miss records that no server has a file.
func (c *Cache) miss(name Name) {
	_ = os.MkdirAll(filepath.Join(c.Dir, name.Dir), 0o700)
	for _, n := range name.Names {
		f, err := os.OpenFile(filepath.Join(c.Dir, name.Dir, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // it has no bytes
		if err == nil {
			_ = f.Close()
		}
	}
}

// forget removes the record that no server has a file.
func (c *Cache) forget(name Name) {
	for _, n := range name.Names {
		path := filepath.Join(c.Dir, name.Dir, n)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			_ = os.Remove(path)
		}
	}
	_ = os.Remove(filepath.Join(c.Dir, name.Dir)) // fails where it is not empty
}

// maxMisses bounds the records of missing files that a Client keeps.
const maxMisses = 10_000

// misses are a Client's own records of missing files in its cache, the oldest first. A
// Client may live for long, and strangers choose the files: its records are bounded, and
// removed when they are too old to be of use.
type misses struct {
	mu   sync.Mutex
	list []miss
}

type miss struct {
	name Name
	time time.Time
}

// add adds a record, and removes those that are too old or too many.
func (m *misses) add(c *Cache, name Name) {
	now, age := time.Now(), c.missAge()
	m.mu.Lock()
	m.list = append(m.list, miss{name, now})
	old := 0
	for old < len(m.list)-1 && (len(m.list)-old > maxMisses || now.Sub(m.list[old].time) > age) {
		old++
	}
	gone := m.list[:old]
	m.list = m.list[old:]
	m.mu.Unlock()
	for i := range gone {
		c.forget(gone[i].name)
	}
}

// part is a file that is not whole yet. It has no name as long as it is written, where
// the file system can do that: a process that is killed leaves nothing.
type part struct {
	file  *os.File
	cache *Cache
	name  Name
	path  string // "" where it has no name yet
}

// create begins a part of a file.
func (c *Cache) create(name Name) (*part, error) {
	dir := filepath.Join(c.Dir, name.Dir)
	var err error
	for range 2 { // another client may remove an empty directory
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		var f *os.File
		if f, err = host.Nameless(dir, dir, 0o400); err == nil {
			return &part{file: f, cache: c, name: name}, nil
		}
		path := filepath.Join(dir, temporaryName(name.Names[0]))
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			return &part{file: f, cache: c, name: name, path: path}, nil
		}
	}
	return nil, err
}

// temporaryName makes a name for a part of a file, in the format of other clients.
func temporaryName(name string) string { return name + "." + rand.Text()[:TemporaryBytes-1] }

// open returns a path that leads to the file as long as it is open.
func (p *part) open() string {
	if p.path != "" {
		return p.path
	}
	return fmt.Sprintf("/proc/self/fd/%d", p.file.Fd())
}

// keep links the file under its names, if check finds nothing wrong with it, and returns
// its path.
func (p *part) keep(check func(path string) error) (path string, err error) {
	dir := filepath.Join(p.cache.Dir, p.name.Dir)
	if p.path == "" {
		temporary := filepath.Join(dir, temporaryName(p.name.Names[0]))
		if err := host.Link(p.file, temporary); err != nil {
			return "", err
		}
		p.path = temporary
	}
	if err := check(p.path); err != nil {
		return "", err
	}
	_ = p.file.Close() // Windows renames no open file
	for _, n := range p.name.Names[1:] {
		other := filepath.Join(dir, temporaryName(n))
		if os.Link(p.path, other) == nil && os.Rename(other, filepath.Join(dir, n)) != nil {
			_ = os.Remove(other)
		}
	}
	path = filepath.Join(dir, p.name.Names[0])
	if err := os.Rename(p.path, path); err != nil {
		return "", err
	}
	p.path = ""
	return path, nil
}

// discard closes the file, and removes it unless keep kept it. An empty directory is
// removed too.
func (p *part) discard() {
	_ = p.file.Close()
	if p.path != "" {
		_ = os.Remove(p.path)
	}
	_ = os.Remove(filepath.Join(p.cache.Dir, p.name.Dir))
}

// clean removes the files that were not used since a time, and directories without any.
// A cache may be any directory that a user names, so nothing else is touched.
func (c *Cache) clean(since time.Time) {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, d := range entries(root, ".") {
		if !d.IsDir() || !c.IsDir(d.Name()) {
			continue
		}
		for _, e := range entries(root, d.Name()) {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && c.IsFile(e.Name()) && host.Accessed(info).Before(since) {
				_ = root.Remove(filepath.Join(d.Name(), e.Name()))
			}
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(since) {
			_ = root.Remove(d.Name()) // fails where it is not empty
		}
	}
}

func entries(root *os.Root, dir string) []fs.DirEntry {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(-1)
	return list
}
