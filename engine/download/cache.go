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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Cache is a directory of directories of files, as clients of elfutils' debuginfod share
// it, and three files of settings (debuginfod-client-config(7), CACHE). A file without bytes
// says that no server had it when it was made.
type Cache struct {
	Dir string
	// IsDir and IsFile say whether names are those of directories and files of the cache:
	// others are not cleaned away.
	IsDir, IsFile func(name string) bool
}

// A Name is where a file is in the cache: a directory, and in it one name for each rule
// that clients have for it, the first of which is the one that is given out.
type Name struct {
	Dir   string
	Names []string
}

// Path is the path of the file, from the cache's directory on.
func (n *Name) Path() string { return n.Dir + "/" + n.Names[0] }

// TemporaryBytes is how many bytes the names of parts of files have more than those of
// files.
const TemporaryBytes = len(".XXXXXX")

// The settings, each a number of seconds in a file, and what is written where there is
// none (debuginfod-client-config(7), CACHE).
type setting struct {
	file  string
	usual time.Duration
}

var (
	cleanInterval = setting{"cache_clean_interval_s", 24 * time.Hour}
	maxUnused     = setting{"max_unused_age_s", 7 * 24 * time.Hour}
	missAge       = setting{"cache_miss_s", 10 * time.Minute}
)

// maxSetting bounds what is read of such a file.
const maxSetting = 64

// Prepare makes the directory, and removes from it what was not used for long.
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

// read reads a setting. What is no number of seconds is the usual one.
func (c *Cache) read(s setting) time.Duration {
	f, err := os.OpenFile(filepath.Join(c.Dir, s.file), os.O_RDONLY|unix.O_NONBLOCK, 0)
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

// A state says what the cache has of a file.
type state int

const (
	unknown state = iota
	cached        // the file
	missed        // that no server has it
)

// look looks for a file under each of its names. It does not open it: files that say
// that there is none had no rights once. One that is too old is removed.
func (c *Cache) look(name Name) (path string, s state) {
	path = filepath.Join(c.Dir, name.Path())
	for _, n := range name.Names {
		at := filepath.Join(c.Dir, name.Dir, n)
		info, err := os.Stat(at)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case info.Size() > 0:
			return at, cached
		case time.Since(info.ModTime()) <= c.setting(missAge):
			path, s = at, missed
		default:
			_ = os.Remove(at)
		}
	}
	return path, s
}

// used notes that a file was used, where the file system does not.
func (c *Cache) used(path string) { _ = os.Chtimes(path, time.Now(), time.Time{}) }

// miss notes that no server has a file.
func (c *Cache) miss(name Name) {
	_ = os.MkdirAll(filepath.Join(c.Dir, name.Dir), 0o700)
	for _, n := range name.Names {
		f, err := os.OpenFile(filepath.Join(c.Dir, name.Dir, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // it has no bytes
		if err == nil {
			_ = f.Close()
		}
	}
}

// forget takes away that no server has a file.
func (c *Cache) forget(name Name) {
	for _, n := range name.Names {
		at := filepath.Join(c.Dir, name.Dir, n)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			_ = os.Remove(at)
		}
	}
	_ = os.Remove(filepath.Join(c.Dir, name.Dir)) // which fails where it has anything in it
}

// maxMisses is how many files a Client remembers at a time that no server has.
const maxMisses = 10_000

// misses are what a Client has noted in its cache that no server has, the oldest first. A
// Client may live for long, and is asked for what strangers name: what it notes is bounded,
// and does not stay when it is too old to be of use.
type misses struct {
	mu   sync.Mutex
	list []miss
}

type miss struct {
	name Name
	at   time.Time
}

// add adds one that was noted, and takes away what is too old or too much.
func (m *misses) add(c *Cache, name Name) {
	now, age := time.Now(), c.missAge()
	m.mu.Lock()
	m.list = append(m.list, miss{name, now})
	old := 0
	for old < len(m.list)-1 && (len(m.list)-old > maxMisses || now.Sub(m.list[old].at) > age) {
		old++
	}
	gone := m.list[:old]
	m.list = m.list[old:]
	m.mu.Unlock()
	for i := range gone {
		c.forget(gone[i].name)
	}
}

// A part is a file that is not whole yet. It has no name as long as it is written, where
// the file system can do that: a process that is killed leaves nothing.
type part struct {
	file  *os.File
	cache *Cache
	name  Name
	at    string // its path; "" where it has none yet
}

// create begins a file.
func (c *Cache) create(name Name) (*part, error) {
	dir := filepath.Join(c.Dir, name.Dir)
	var err error
	for range 2 { // another client may remove an empty directory
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		var fd int
		if fd, err = unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o400); err == nil {
			return &part{file: os.NewFile(uintptr(fd), dir), cache: c, name: name}, nil //nolint:gosec // a descriptor
		}
		at := filepath.Join(dir, temporaryName(name.Names[0]))
		var f *os.File
		if f, err = os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o400); err == nil {
			return &part{file: f, cache: c, name: name, at: at}, nil
		}
	}
	return nil, err
}

// temporaryName is a name for a part of a file, of the form that other clients give them.
func temporaryName(name string) string { return name + "." + rand.Text()[:TemporaryBytes-1] }

// open is a path that leads to the file as long as it is open.
func (p *part) open() string { return fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()) }

// keep gives the file its names, if check finds nothing wrong with it, and returns its
// path.
func (p *part) keep(check func(path string) error) (path string, err error) {
	dir := filepath.Join(p.cache.Dir, p.name.Dir)
	if p.at == "" {
		at := filepath.Join(dir, temporaryName(p.name.Names[0]))
		if err := unix.Linkat(unix.AT_FDCWD, p.open(), unix.AT_FDCWD, at, unix.AT_SYMLINK_FOLLOW); err != nil {
			return "", &os.LinkError{Op: "link", Old: p.open(), New: at, Err: err}
		}
		p.at = at
	}
	if err := check(p.at); err != nil {
		return "", err
	}
	for _, n := range p.name.Names[1:] {
		other := filepath.Join(dir, temporaryName(n))
		if os.Link(p.at, other) == nil && os.Rename(other, filepath.Join(dir, n)) != nil {
			_ = os.Remove(other)
		}
	}
	path = filepath.Join(dir, p.name.Names[0])
	if err := os.Rename(p.at, path); err != nil {
		return "", err
	}
	p.at = ""
	return path, nil
}

// discard closes the file, and removes it where keep did not keep it. A directory that
// has nothing in it goes too.
func (p *part) discard() {
	_ = p.file.Close()
	if p.at != "" {
		_ = os.Remove(p.at)
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
			if err == nil && info.Mode().IsRegular() && c.IsFile(e.Name()) && accessed(info).Before(since) {
				_ = root.Remove(filepath.Join(d.Name(), e.Name()))
			}
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(since) {
			_ = root.Remove(d.Name()) // which fails where it has anything in it
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

// accessed is when a file was read last.
func accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atim.Unix())
	}
	return info.ModTime()
}
