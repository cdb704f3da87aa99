package debuginfod

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A cache is a directory of files, as clients of elfutils share it: BUILDID/debuginfo,
// BUILDID/executable and BUILDID/source..., and three files of settings. A file without
// bytes says that no server had it when it was made.
type cache struct{ dir string }

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

// prepare makes the directory, and removes from it what was not used for long.
func (c *cache) prepare() error {
	if c.dir == "" {
		return errors.New("it is in DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME or HOME, of which none is set")
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	interval := c.setting(cleanInterval)
	path := filepath.Join(c.dir, cleanInterval.file)
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
func (c *cache) setting(s setting) time.Duration {
	f, err := os.OpenFile(filepath.Join(c.dir, s.file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // as other clients make it
	if err == nil {
		_, _ = fmt.Fprintf(f, "%d", int64(s.usual/time.Second))
		_ = f.Close()
	}
	return c.read(s)
}

// read reads a setting. What is no number of seconds is the usual one.
func (c *cache) read(s setting) time.Duration {
	f, err := os.OpenFile(filepath.Join(c.dir, s.file), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return s.usual
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSetting))
	if err != nil {
		return s.usual
	}
	return parseSeconds(string(b), s.usual)
}

// parseSeconds reads the number at the start of a text, as scanf does: what follows it
// does not matter.
func parseSeconds(text string, usual time.Duration) time.Duration {
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

func (c *cache) missAge() time.Duration { return c.read(missAge) }

// A state says what the cache has of a file.
type state int

const (
	unknown state = iota
	cached        // the file
	missed        // that no server has it
)

// look looks for a file under each of its names. It does not open it: files that say
// that there is none had no rights once. One that is too old is removed.
func (c *cache) look(name fileName) (path string, s state) {
	path = filepath.Join(c.dir, name.path())
	for _, n := range name.names {
		at := filepath.Join(c.dir, name.dir, n)
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
func (c *cache) used(path string) { _ = os.Chtimes(path, time.Now(), time.Time{}) }

// miss notes that no server has a file.
func (c *cache) miss(name fileName) {
	_ = os.MkdirAll(filepath.Join(c.dir, name.dir), 0o700)
	for _, n := range name.names {
		f, err := os.OpenFile(filepath.Join(c.dir, name.dir, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // it has no bytes
		if err == nil {
			_ = f.Close()
		}
	}
}

// A part is a file that is not whole yet. It has no name as long as it is written, where
// the file system can do that: a process that is killed leaves nothing.
type part struct {
	file  *os.File
	cache *cache
	name  fileName
	at    string // its path; "" where it has none yet
}

// create begins a file.
func (c *cache) create(name fileName) (*part, error) {
	dir := filepath.Join(c.dir, name.dir)
	var err error
	for range 2 { // another client may remove an empty directory
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		var fd int
		if fd, err = unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o400); err == nil {
			return &part{file: os.NewFile(uintptr(fd), dir), cache: c, name: name}, nil //nolint:gosec // a descriptor
		}
		at := filepath.Join(dir, temporaryName(name.names[0]))
		var f *os.File
		if f, err = os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o400); err == nil {
			return &part{file: f, cache: c, name: name, at: at}, nil
		}
	}
	return nil, err
}

// temporaryName is a name for a part of a file, of the form that other clients give them.
func temporaryName(name string) string { return name + "." + rand.Text()[:temporaryLen-1] }

// open is a path that leads to the file as long as it is open.
func (p *part) open() string { return fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()) }

// keep gives the file its names, if check finds nothing wrong with it, and returns its
// path.
func (p *part) keep(check func(path string) error) (path string, err error) {
	dir := filepath.Join(p.cache.dir, p.name.dir)
	if p.at == "" {
		at := filepath.Join(dir, temporaryName(p.name.names[0]))
		if err := unix.Linkat(unix.AT_FDCWD, p.open(), unix.AT_FDCWD, at, unix.AT_SYMLINK_FOLLOW); err != nil {
			return "", &os.LinkError{Op: "link", Old: p.open(), New: at, Err: err}
		}
		p.at = at
	}
	if err := check(p.at); err != nil {
		return "", err
	}
	for _, n := range p.name.names[1:] {
		other := filepath.Join(dir, temporaryName(n))
		if os.Link(p.at, other) == nil && os.Rename(other, filepath.Join(dir, n)) != nil {
			_ = os.Remove(other)
		}
	}
	path = filepath.Join(dir, p.name.names[0])
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
	_ = os.Remove(filepath.Join(p.cache.dir, p.name.dir))
}

// clean removes the files that were not used since a time, and directories without any.
// A cache may be any directory that a user names, so nothing else is touched.
func (c *cache) clean(since time.Time) {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, d := range entries(root, ".") {
		if !d.IsDir() || !isIDName(d.Name()) {
			continue
		}
		for _, e := range entries(root, d.Name()) {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && isCacheName(e.Name()) && accessed(info).Before(since) {
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

// isIDName says whether a name is that of a build ID's directory.
func isIDName(name string) bool {
	return len(name) >= 2 && len(name) <= 2*maxID && len(name)%2 == 0 && strings.Trim(name, "0123456789abcdef") == ""
}

// isCacheName says whether a name is that of a file that some client put into the cache,
// or left a part of.
func isCacheName(name string) bool {
	for _, kind := range []string{"debuginfo", "executable"} {
		if name == kind || strings.HasPrefix(name, kind+".") && len(name) == len(kind)+temporaryLen {
			return true
		}
	}
	return strings.HasPrefix(name, "source#") || strings.HasPrefix(name, "source-") || strings.HasPrefix(name, "section-") || strings.HasPrefix(name, "hdr-")
}

// accessed is when a file was read last.
func accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atim.Unix())
	}
	return info.ModTime()
}
