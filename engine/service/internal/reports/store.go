// SPDX-License-Identifier: Apache-2.0

// Package reports keeps reports on disk, each under an ID that cannot be guessed. A store
// has a bounded number of reports and of bytes: the oldest go first. It stays whole however
// a process that writes to it ends.
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

	"github.com/unwindd/unwindd/engine/service/internal/bounded"
)

// Store is a folder of reports. It may be used concurrently.
type Store struct {
	dir      string
	maxBytes int64
	maxCount int

	mu  sync.Mutex
	has bounded.Amount
}

// Open opens the store in a folder, which it makes if necessary. maxBytes and maxCount
// bound its bytes and reports: the oldest beyond them are removed.
func Open(dir string, maxBytes int64, maxCount int) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, maxBytes: maxBytes, maxCount: maxCount}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.evict(bounded.Amount{})
}

// Header describes a report. It precedes the report in its file, as a line of JSON.
type Header struct {
	Name string `json:"name"` // of the report's target
	Type string `json:"type"` // of the content, in HTTP's syntax
}

// maxHeader bounds the bytes of a Header.
const maxHeader = 4 << 10

// ErrTooLarge is the error of a report that has more bytes than the store may have.
var ErrTooLarge = errors.New("the report has more bytes than all that are kept may have")

// ErrNone is the error of an ID without a report.
var ErrNone = errors.New("no report of this ID is kept here: it was removed, or made room for newer ones")

// partPrefix begins the names of files that are not whole. No ID has such a character.
const partPrefix = "part-"

// maxPartAge is the age of a part that a killed process must have left.
const maxPartAge = time.Hour

// Keep stores a report that can be read to its end, and returns its ID and size.
func (s *Store) Keep(h Header, content io.Reader) (id string, size int64, err error) {
	line, err := json.Marshal(h)
	if err != nil || len(line) >= maxHeader {
		return "", 0, errors.Join(err, fmt.Errorf("a head of %d bytes, expected less than %d", len(line), maxHeader))
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

// IsID reports whether a text may be the ID of a report: characters of base 32, of 128 bits
// or more.
func IsID(id string) bool {
	return len(id) == 26 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// Report is an open report.
type Report struct {
	Header
	io.Reader
	file *os.File
}

// Close closes the report.
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
	b := bufio.NewReaderSize(f, maxHeader)
	line, err := b.ReadSlice('\n')
	r := &Report{Reader: b, file: f}
	if err == nil {
		err = json.Unmarshal(line, &r.Header)
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

// Amount returns the number of reports and their bytes.
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
