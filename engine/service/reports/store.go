// SPDX-License-Identifier: Apache-2.0

// Package reports keeps reports on disk, each under an ID that nobody guesses. A store has a
// bounded number of reports and of bytes: the oldest go first. It is whole however a process
// that writes to it ends.
package reports

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/service/bounded"
)

// A Store is a folder of reports. It may be used concurrently.
type Store struct {
	dir      string
	maxBytes int64
	maxCount int

	mu  sync.Mutex
	has bounded.Amount
}

// Open opens the store in a folder, which is made where it is not there. maxBytes and
// maxCount are how many bytes and reports it may have: what is more is removed.
func Open(dir string, maxBytes int64, maxCount int) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, maxBytes: maxBytes, maxCount: maxCount}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.evict(bounded.Amount{})
}

// Head is what is known of a report. It stands before it in its file, on a line of JSON.
type Head struct {
	Name string `json:"name"` // of what it is a report of
	Type string `json:"type"` // of its content, as HTTP has it
}

// maxHead bounds the bytes of a Head.
const maxHead = 4 << 10

// ErrTooLarge says that a report has more bytes than the store may have.
var ErrTooLarge = errors.New("the report has more bytes than all that are kept may have")

// ErrNone says that there is no report of an ID.
var ErrNone = errors.New("no report of this ID is kept here: it was removed, or made room for newer ones")

// partPrefix begins the names of files that are not whole. No ID has such a character.
const partPrefix = "part-"

// maxPartAge is how old a file is that a process left which was killed.
const maxPartAge = time.Hour

// Keep keeps what is read to its end, and returns its ID: all of it, or nothing.
func (s *Store) Keep(h Head, content io.Reader) (id string, size int64, err error) {
	line, err := json.Marshal(h)
	if err != nil || len(line) >= maxHead {
		return "", 0, errors.Join(err, fmt.Errorf("a head of %d bytes, expected less than %d", len(line), maxHead))
	}
	part, err := os.CreateTemp(s.dir, partPrefix)
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(part.Name()) // where it is not whole
	defer part.Close()
	if _, err := part.Write(append(line, '\n')); err != nil {
		return "", 0, err
	}
	most := s.maxBytes - int64(len(line)) - 1
	if size, err = io.Copy(part, io.LimitReader(content, most+1)); err != nil {
		return "", 0, err
	}
	if size > most {
		return "", 0, ErrTooLarge
	}
	if err := part.Sync(); err != nil {
		return "", 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added := bounded.Amount{Files: 1, Bytes: size + int64(len(line)) + 1}
	if err := s.evict(added); err != nil {
		return "", 0, err
	}
	id = rand.Text()
	if err := os.Rename(part.Name(), filepath.Join(s.dir, id)); err != nil {
		return "", 0, err
	}
	s.has = s.has.Plus(added)
	return id, size, nil
}

// IsID says whether a text may be the ID of a report: characters of base 32, of 128 bits
// or more.
func IsID(id string) bool {
	return len(id) == 26 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// A Report is one that is read.
type Report struct {
	Head
	io.Reader
	file *os.File
}

// Close ends reading it.
func (r *Report) Close() error { return r.file.Close() }

// Open opens a report. It stays whole while it is read, even where it is removed.
func (s *Store) Open(id string) (*Report, error) {
	if !IsID(id) {
		return nil, ErrNone
	}
	f, err := os.Open(filepath.Join(s.dir, id))
	if err != nil {
		return nil, absent(err)
	}
	b := bufio.NewReaderSize(f, maxHead)
	line, err := b.ReadSlice('\n')
	r := &Report{Reader: b, file: f}
	if err == nil {
		err = json.Unmarshal(line, &r.Head)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the report's file: expected a line of JSON: %w", err)
	}
	return r, nil
}

// Remove removes a report.
func (s *Store) Remove(id string) error {
	if !IsID(id) {
		return ErrNone
	}
	path := filepath.Join(s.dir, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		s.has = s.has.Minus(bounded.Amount{Files: 1, Bytes: info.Size()})
	}
	return absent(err)
}

// Amount is how many reports are kept, and their bytes.
func (s *Store) Amount() bounded.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	return err
}

// evict removes the oldest reports until there is room for more.
func (s *Store) evict(more bounded.Amount) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var list []*bounded.File
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil: // it is not there any more
		case strings.HasPrefix(e.Name(), partPrefix):
			if time.Since(info.ModTime()) > maxPartAge {
				_ = os.Remove(path)
			}
		case IsID(e.Name()):
			list = append(list, &bounded.File{Paths: []string{path}, Size: info.Size(), Used: info.ModTime()})
		}
	}
	s.has, err = bounded.Evict(list, more, bounded.Amount{Files: int64(s.maxCount), Bytes: s.maxBytes})
	return err
}
